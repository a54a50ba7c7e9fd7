"""How similar a text is to the most similar of some others: by BERTScore, ROUGE-L or token F1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ragworth.calls.programs import NoValue
from ragworth.errors import format_count
from ragworth.tasks.options import option
from ragworth.text_match.overlap import COMPARISONS

if TYPE_CHECKING:
    from ragworth.text_match.bertscore import BERTScore, BERTScorePair

DEFAULT_ENCODER = "bert-large-uncased"


def baseline_option() -> str:
    """The setting of graders that rescale BERTScore."""
    return option(
        "",
        "what unrelated texts score, which becomes 0 while 1 stays 1: a number, or a file as bert-score has them "
        "(LAYER,P,R,F); by default scores stay as they are",
    )


class BestSimilarity(NamedTuple):
    """The greatest similarity, to which of the texts, and whether one of the two was longer than the encoder reads."""

    value: float
    place: int
    cut: bool
    skipped: int = 0
    """How many of the texts could not be compared."""


class OverlapSimilarity:
    """Similarity by a comparison of texts."""

    def __init__(self, name: str) -> None:
        self.name = name

    def learn(self, pairs: Iterable[tuple[str, Sequence[str]]]) -> None:
        """Nothing to compute beforehand."""

    def best(self, text: str, others: Sequence[str]) -> BestSimilarity:
        values = [COMPARISONS[self.name](text, [other]) for other in others]
        place = max(range(len(values)), key=lambda n: (values[n], -n))
        return BestSimilarity(values[place], place, False)

    def notes(self) -> list[str]:
        return []


class BERTScoreSimilarity:
    """Similarity by BERTScore-F1. Pairs are scored together by `learn`; each distinct one once."""

    def __init__(self, scorer: BERTScore) -> None:
        self.name = scorer.identity
        self._scorer = scorer
        self._known: dict[tuple[str, str], BERTScorePair] = {}
        self._skipped: dict[str, str] = {}
        """Texts that could not be compared while others of the same answer could, with the reason."""

    def learn(self, pairs: Iterable[tuple[str, Sequence[str]]]) -> None:
        new = dict.fromkeys((text, other) for text, others in pairs for other in others)
        missing = [pair for pair in new if pair not in self._known]
        if missing:
            found = self._scorer.score([text for text, _ in missing], [other for _, other in missing])
            self._known.update(zip(missing, found, strict=True))

    def best(self, text: str, others: Sequence[str]) -> BestSimilarity:
        """`NoValue` where the encoder has nothing to compare: a text of which it knows no token."""
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
        """How many texts the encoder did not read to their end, and how many not at all."""
        notes = []
        if self._skipped:
            words = ", ".join(
                f"{status} {number:,}" for status, number in Counter(self._skipped.values()).most_common()
            )
            number = format_count(len(self._skipped), "reference text")
            notes.append(f"{number} could not be compared by BERTScore ({words}); the best of the others counts")
        answers = len({text for (text, _), pair in self._known.items() if pair.candidate_cut})
        others = len({other for (_, other), pair in self._known.items() if pair.reference_cut})
        if answers or others:
            texts = f"{format_count(answers, 'answer')} and {format_count(others, 'reference text')}"
            notes.append(f"{texts} longer than the encoder reads were cut for BERTScore")
        return notes


Similarity = OverlapSimilarity | BERTScoreSimilarity


def build_bertscore_similarity(
    encoder: str, *, layer: int, corpus: Sequence[str] | None, baseline: str, device: str, download: bool
) -> BERTScoreSimilarity:
    """BERTScore with an encoder; ``layer`` −1 takes the one known to be best.

    ``corpus``: texts in which tokens are counted for idf, so that a score does not depend on what else is scored.
    ``baseline``: a number in words, a file, or nothing.
    """
    from ragworth.text_match.bertscore import BERTScore

    idf: Sequence[str] | bool = corpus if corpus is not None else False
    known = layer if layer >= 0 else None
    low = _number_or_text(baseline) if baseline else None
    return BERTScoreSimilarity(
        BERTScore(encoder, layer=known, idf=idf, baseline=low, device=device or None, download=download)
    )


def _number_or_text(text: str) -> float | str:
    """The number that a text is, or else the text, which then names a file."""
    try:
        return float(text)
    except ValueError:
        return text
