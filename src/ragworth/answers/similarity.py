"""How similar a text is to the most similar of some others: by BERTScore, ROUGE-L or token F1."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ragworth.answers.compare import COMPARISONS
from ragworth.calls.steps import NoValue
from ragworth.errors import counted

if TYPE_CHECKING:
    from ragworth.answers.bertscore import BERTScore, Pair

ENCODER = "bert-large-uncased"


class Best(NamedTuple):
    """The greatest similarity, to which of the texts, and whether one of the two was longer than the encoder reads."""

    value: float
    place: int
    cut: bool


class Compared:
    """Similarity by a comparison of texts."""

    def __init__(self, name: str) -> None:
        self.name = name

    def learn(self, pairs: Iterable[tuple[str, Sequence[str]]]) -> None:
        """Nothing to compute beforehand."""

    def best(self, text: str, others: Sequence[str]) -> Best:
        values = [COMPARISONS[self.name](text, [other]) for other in others]
        place = max(range(len(values)), key=lambda n: (values[n], -n))
        return Best(values[place], place, False)

    def notes(self) -> list[str]:
        return []


class Encoded:
    """Similarity by BERTScore-F1. Pairs are scored together by `learn`; each distinct one once."""

    def __init__(self, scorer: BERTScore) -> None:
        self.name = scorer.identity
        self._scorer = scorer
        self._known: dict[tuple[str, str], Pair] = {}

    def learn(self, pairs: Iterable[tuple[str, Sequence[str]]]) -> None:
        new = dict.fromkeys((text, other) for text, others in pairs for other in others)
        missing = [pair for pair in new if pair not in self._known]
        if missing:
            found = self._scorer.score([text for text, _ in missing], [other for _, other in missing])
            self._known.update(zip(missing, found, strict=True))

    def best(self, text: str, others: Sequence[str]) -> Best:
        """`NoValue` where the encoder has nothing to compare: a text of which it knows no token."""
        self.learn([(text, others)])
        pairs = [self._known[text, other] for other in others]
        values = [(pair.f1, -place) for place, pair in enumerate(pairs) if pair.f1 is not None]
        if not values:
            raise NoValue(pairs[0].status, "BERTScore has nothing to compare")
        value, place = max(values)
        return Best(value, -place, bool(pairs[-place].candidate_cut or pairs[-place].reference_cut))

    def notes(self) -> list[str]:
        """How many texts the encoder did not read to their end."""
        answers = len({text for (text, _), pair in self._known.items() if pair.candidate_cut})
        others = len({other for (_, other), pair in self._known.items() if pair.reference_cut})
        if not answers and not others:
            return []
        texts = f"{counted(answers, 'answer')} and {counted(others, 'reference text')}"
        return [f"{texts} longer than the encoder reads were cut for BERTScore"]


Similarity = Compared | Encoded


def encoded(encoder: str, *, layer: int, corpus: Sequence[str] | None, device: str, download: bool) -> Encoded:
    """BERTScore with an encoder; ``layer`` −1 takes the one known to be best.

    ``corpus``: texts in which tokens are counted for idf, so that a score does not depend on what else is scored.
    """
    from ragworth.answers.bertscore import BERTScore

    idf: Sequence[str] | bool = corpus if corpus is not None else False
    known = layer if layer >= 0 else None
    return Encoded(BERTScore(encoder, layer=known, idf=idf, device=device or None, download=download))
