"""Words that say whether something went up or down; they are the sign of the number beside them."""

from __future__ import annotations

from collections.abc import Sequence

_UP_WORDS = """
rise rose risen rising raise raised increase increased increasing grow grew grown growing growth gain gained climb
climbed jump jumped surge surged expand expanded improve improved improving improvement up higher profit upward
"""
_DOWN_WORDS = """
fall fell fallen falling decrease decreased decreasing decline declined declining drop dropped dropping shrink shrank
shrunk lose lost loss deficit reduce reduced reduction contract contracted down lower dip dipped slip slipped plunge
plunged negative minus worsen worsened deteriorate deteriorated downward
"""
DIRECTIONS = dict.fromkeys(_UP_WORDS.split(), 1) | dict.fromkeys(_DOWN_WORDS.split(), -1)
"""1 for words that go up, −1 for words that go down."""

_NEGATION_WORDS = """
not no never none neither nor without cannot cant dont doesnt didnt isnt arent wasnt werent hasnt havent hadnt wont
wouldnt couldnt shouldnt unable fail failed failing lack lacked lacking
"""
NEGATIONS = frozenset(_NEGATION_WORDS.split())
"""Words that deny what follows, as the tokens of texts are written: without apostrophes."""

_BEFORE, _AFTER, _DENIED = 8, 4, 3
_ENDS = frozenset(".;!?\n")


def direction_at(words: Sequence[str], start: int, end: int) -> int:
    """The direction said of the number at ``start`` to ``end``: the nearest in its sentence; 0 if there is none."""
    for at in range(start - 1, max(-1, start - 1 - _BEFORE), -1):
        if words[at] in _ENDS:
            break
        if words[at] in DIRECTIONS:
            return _unless_denied(words, at)
    for at in range(end, min(len(words), end + _AFTER)):
        if words[at] in _ENDS:
            break
        if words[at] in DIRECTIONS:
            return _unless_denied(words, at)
    return 0


def _unless_denied(words: Sequence[str], at: int) -> int:
    return 0 if NEGATIONS.intersection(words[max(0, at - _DENIED) : at]) else DIRECTIONS[words[at]]
