"""Similarity of a text to the most similar of some others: by BERTScore, ROUGE-L or token F1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ragworth.calls.programs import NoValue
from ragworth.core.errors import format_count
from ragworth.text_match.overlap import COMPARISONS

if TYPE_CHECKING:
    from ragworth.text_match.bertscore import BERTScore, BERTScorePair


class BestSimilarity(NamedTuple):
    """The highest similarity, the index of the text, and whether either text was truncated."""

    value: float
    place: int
    cut: bool
    skipped: int = 0
    """Number of texts that couldn't be compared."""


class OverlapSimilarity:
    """Similarity by overlap."""

    def __init__(self, name: str) -> None:
        self.name = name

    def learn(self, pairs: Iterable[tuple[str, Sequence[str]]]) -> None:
        """Do nothing; there is nothing to compute beforehand."""

    def best(self, text: str, others: Sequence[str]) -> BestSimilarity:
        values = [COMPARISONS[self.name](text, [other]) for other in others]
        place = max(range(len(values)), key=lambda n: (values[n], -n))
        return BestSimilarity(values[place], place, False)

    def notes(self) -> list[str]:
        return []


class BERTScoreSimilarity:
    """Similarity by BERTScore-F1. `learn` scores all distinct pairs together."""

    def __init__(self, scorer: BERTScore) -> None:
        self.name = scorer.identity
        self._scorer = scorer
        self._known: dict[tuple[str, str], BERTScorePair] = {}
        self._skipped: dict[str, str] = {}
        """Texts that couldn't be compared while others of the same answer could, with the reason."""

    def learn(self, pairs: Iterable[tuple[str, Sequence[str]]]) -> None:
        new = dict.fromkeys((text, other) for text, others in pairs for other in others)
        missing = [pair for pair in new if pair not in self._known]
        if missing:
            found = self._scorer.score([text for text, _ in missing], [other for _, other in missing])
            self._known.update(zip(missing, found, strict=True))

    def best(self, text: str, others: Sequence[str]) -> BestSimilarity:
        """Raise `NoValue` if the encoder has nothing to compare: it knows no token of a text."""
        self.learn([(text, others)])
        pairs = [self._known[text, other] for other in others]
        values = [(pair.f1, -place) for place, pair in enumerate(pairs) if pair.f1 is not None]
        if not values:
            raise NoValue(pairs[0].status, "BERTScore has nothing to compare")
        value, place = max(values)
        lost = {other: pair.status for other, pair in zip(others, pairs, strict=True) if pair.f1 is None}
        self._skipped |= lost
        return BestSimilarity(
            value, -place, bool(pairs[-place].candidate_cut or pairs[-place].reference_cut), len(lost)
        )

    def notes(self) -> list[str]:
        """Count truncated texts, and texts that couldn't be compared."""
        notes = []
        if self._skipped:
            words = ", ".join(
                f"{status} {number:,}" for status, number in Counter(self._skipped.values()).most_common()
            )
            number = format_count(len(self._skipped), "reference text")
            notes.append(f"{number} couldn't be compared by BERTScore ({words}); the best of the others counts")
        answers = len({text for (text, _), pair in self._known.items() if pair.candidate_cut})
        others = len({other for (_, other), pair in self._known.items() if pair.reference_cut})
        if answers or others:
            texts = f"{format_count(answers, 'answer')} and {format_count(others, 'reference text')}"
            notes.append(f"{texts} were too long for the encoder and truncated for BERTScore")
        return notes


Similarity = OverlapSimilarity | BERTScoreSimilarity
