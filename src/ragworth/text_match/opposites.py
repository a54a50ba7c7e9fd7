"""Pairs of words that say the opposite of each other."""

from __future__ import annotations

from collections.abc import Collection

from ragworth.text_match.directions import DIRECTIONS
from ragworth.text_match.plurals import singular

# Each line: words on one side of the bar are opposites of those on the other.
_TABLE = """
above over | below under
more most greater | less least fewer fewest
longer longest | shorter shortest
larger largest bigger biggest greater big large | smaller smallest small
high higher highest | low lower lowest
maximum max | minimum min
before prior | after
win won winner | lose lost loser
qualify qualified pass passed succeed succeeded | fail failed
first | last
early earlier | late later
true | false
same | different
open opened | close closed shut
allow allowed permit permitted legal | ban banned prohibit prohibited forbid forbidden forbade disallowed illegal
approve approved accept accepted | reject rejected block blocked deny denied refuse refused veto vetoed decline declined
include included | exclude excluded
strong stronger healthy | weak weaker
positive | negative
buy bought purchase purchased | sell sold
profitable profit | loss
alive living | dead
rich richer | poor poorer
fast faster quick quicker | slow slower
miss missed | meet met beat exceed exceeded surpass surpassed
safe | dangerous hazardous harmful
raise raised hike hiked | cut
cheap cheaper cheapest | expensive costlier dearer
hot hotter warm warmer | cold colder cool cooler
mandatory compulsory required | optional voluntary
guilty | innocent acquitted
enable enabled | disable disabled
left | right
north northern | south southern
east eastern | west western
best better | worst worse
always | never
all every | none
upper | lower
inner inside | outer outside
male | female
older oldest old elder | younger youngest young
taller tallest tall | shorter shortest short
heavier heaviest heavy | lighter lightest light
deeper deepest deep | shallower shallowest shallow
wider widest wide broader | narrower narrowest narrow
alter alteste | junger jungste
grosser grosste | kleiner kleinste
schneller schnellste | langsamer langsamste
teurer teuerste | billiger gunstiger billigste
hoher hochste | niedriger tiefer niedrigste
langer langste | kurzer kurzeste
mayor | menor
grand grande | petit petite
groter grootste | kleiner kleinste
vor vorher | nach nachher danach
voor | na
avant | apres
antes | despues depois apos
prima | dopo
przed | po
前 | 後
左 | 右
links | rechts
gauche | droite
izquierda esquerda | derecha direita
lewo lewa lewy | prawo prawa prawy
"""
_PREFIXES = ("in", "im", "un", "dis", "non", "ir", "il")
_STEM = 6
_MIN_PREFIXED = 4


def _read_table() -> dict[str, frozenset[str]]:
    opposites: dict[str, set[str]] = {}
    for line in _TABLE.strip().splitlines():
        one, other = (side.split() for side in line.split("|"))
        for word in one:
            opposites.setdefault(word, set()).update(other)
        for word in other:
            opposites.setdefault(word, set()).update(one)
    # Texts are compared with their words in the singular.
    return {singular(word): frozenset(map(singular, others)) for word, others in opposites.items()}


_OPPOSITES = _read_table()


def has_opposite(word: str, words: Collection[str]) -> bool:
    """Whether the opposite of a word is among others: "lower" of "higher", "illegal" of "legal"."""
    direction = DIRECTIONS.get(word, 0)
    opposites = _OPPOSITES.get(word, frozenset())
    return any(
        other in opposites
        or (direction and DIRECTIONS.get(other, 0) == -direction)
        or _negates(other, word)
        or _negates(word, other)
        for other in words
    )


def _negates(longer: str, word: str) -> bool:
    return len(word) >= _MIN_PREFIXED and any(longer.startswith(prefix + word[:_STEM]) for prefix in _PREFIXES)
