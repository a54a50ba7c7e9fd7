"""A text with what is read of it: its pieces, quantities, words and yes or no."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

from ragworth.text_match.dates import TextPiece
from ragworth.text_match.matching import LITTLE_WORDS, MatchableText, is_character, matchable_from, stem_of
from ragworth.text_match.negation import NEGATIONS
from ragworth.text_match.normalise import read_pieces, singular
from ragworth.text_match.polarity import StatedPolarity, read_polarity
from ragworth.text_match.quantities import DIRECTIONS, Quantity, QuestionHints, read_hints, read_quantities
from ragworth.text_match.units import UNITS

LONG_ANSWER = 7
"""Words, little ones aside, from which an accepted answer is long: it is matched by its facts."""

_EMPTY_TEXT = """
a an the about around approximately roughly nearly almost over under than more less least most up some total year time
between through there has have had will would been also because due mainly
"""
_NO_FACTS = frozenset(_EMPTY_TEXT.split()) | LITTLE_WORDS | DIRECTIONS.keys()


@dataclass(frozen=True)
class TextFacts:
    """A text with what is read of it, each once."""

    raw: str

    @cached_property
    def pieces(self) -> list[TextPiece]:
        return read_pieces(self.raw)

    @cached_property
    def matchable(self) -> MatchableText:
        return matchable_from(self.raw, self.pieces)

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        return read_quantities(self.pieces)

    @cached_property
    def tokens(self) -> list[str]:
        """The pieces as words and marks, in the positions that quantities have."""
        return [piece.raw if piece.kind == "break" else piece.value for piece in self.pieces]

    @cached_property
    def stems(self) -> frozenset[str]:
        return frozenset(map(stem_of, self.matchable.words))

    @cached_property
    def stemmed(self) -> list[str]:
        """The tokens as stems, with the marks and negations between them."""
        return [token if token in NEGATIONS else stem_of(singular(token)) if token else "" for token in self.tokens]

    @cached_property
    def keywords(self) -> frozenset[str]:
        """The stems by which a text is found in another one: of all words but little ones, unless it has no others."""
        return self.stems - LITTLE_WORDS - NEGATIONS or self.stems

    @cached_property
    def denies(self) -> bool:
        return not NEGATIONS.isdisjoint(self.tokens)

    @cached_property
    def polarity(self) -> StatedPolarity | None:
        return read_polarity(self.raw)

    @cached_property
    def content(self) -> frozenset[str]:
        """Stems that carry facts: of no little words, nor words of direction."""
        return frozenset(stem_of(word) for word in self.words if _carries_fact(word))

    @cached_property
    def words(self) -> list[str]:
        """The words that are not part of a quantity."""
        inside = {place for each in self.quantities for place in range(each.start, each.end)}
        inside |= {each.start - 1 for each in self.quantities if each.start and self._is_currency(each.start - 1)}
        return [
            singular(piece.value)
            for place, piece in enumerate(self.pieces)
            if place not in inside and piece.kind != "break"
        ]

    def _is_currency(self, place: int) -> bool:
        return any(unit.is_money for unit in UNITS.get(self.pieces[place].value, ()))

    @cached_property
    def is_long(self) -> bool:
        return sum(map(_weight, self.words)) >= LONG_ANSWER


def _carries_fact(word: str) -> bool:
    return len(word) > 1 and word[0].isalnum() and word not in _NO_FACTS and not is_character(word)


def _weight(word: str) -> float:
    """How much of a word a token is; of scripts without blanks, two characters make one."""
    return 0.0 if word in LITTLE_WORDS else 0.5 if is_character(word) else 1.0


read_answer = lru_cache(maxsize=8192)(TextFacts)


@dataclass(frozen=True)
class QuestionFacts(TextFacts):
    """A question; the empty text if it isn't known."""

    @cached_property
    def hints(self) -> QuestionHints:
        return read_hints(self.raw)


read_question = lru_cache(maxsize=8192)(QuestionFacts)
