"""BERTScore: token-level similarity of two texts in an encoder's space (Zhang et al. 2020).

Every token of one text is matched with the token of the other whose vector is nearest by cosine. Precision is
the mean over the candidate's tokens, recall over the reference's, F1 their harmonic mean. As in the authors' package
``bert-score``, the tokens that begin and end a text (CLS, SEP) have no weight in these means, but others may be
matched with them.

Differences from that package, by **Choice**:

- an empty text has no score but a status; there it is 0;
- texts beyond the encoder's limit are truncated as there, and each score reports the number of tokens lost;
- F1 is 0 unless precision and recall are positive, because a harmonic mean of negative numbers is meaningless;
- a best match below 0 stays below 0, whatever else is in the batch; there, padding can lift it to 0.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ragworth.calls.programs import NoValue
from ragworth.core.errors import ModelError, format_count
from ragworth.data import OK
from ragworth.text_match.overlap import BestSimilarity, OverlapSimilarity
from ragworth.text_match.token_encoder import EncodedText, Floats, TokenVectors

EMPTY_CANDIDATE, EMPTY_REFERENCE = "empty-candidate", "empty-reference"
NO_WEIGHT = "no-weight"
"""Status of a pair in which a text has only tokens that begin or end texts."""

PAIRS_AT_A_TIME = 256
"""Pairs whose vectors are in memory together: up to 1 GB with 512 tokens a text. Among them, a text is read once."""

Pair = tuple[str, str]


class BERTScorePair(NamedTuple):
    """Similarity of a candidate and a reference; no scores unless the status is ``ok``.

    ``candidate_cut`` and ``reference_cut`` are the numbers of tokens beyond the encoder's limit, which are ignored.
    """

    precision: float | None
    recall: float | None
    f1: float | None
    status: str
    candidate_cut: int = 0
    reference_cut: int = 0


class BERTScore:
    """Scores pairs of texts with one encoder."""

    def __init__(self, encoder: TokenVectors) -> None:
        self.encoder = encoder

    @property
    def identity(self) -> str:
        """Everything that determines a score, in one line, to be stored with it."""
        return f"bertscore:{self.encoder.name}@{self.encoder.revision} layer={self.encoder.layer}"

    def score(self, candidates: Sequence[str], references: Sequence[str]) -> list[BERTScorePair]:
        """Score each candidate against the reference at the same index.

        Up to rounding (below 1e-5), scores don't depend on the order of the pairs or the batch size.
        """
        pairs = [(one.strip(), other.strip()) for one, other in zip(candidates, references, strict=True)]
        distinct = list(dict.fromkeys([*(other for _, other in pairs), *(one for one, _ in pairs)]))
        tokens = dict(zip(distinct, self.encoder.tokens(distinct), strict=True))
        weights = {text: self._weights(encoded) for text, encoded in tokens.items()}
        scores: dict[Pair, BERTScorePair] = {}
        usable: list[Pair] = []
        # Pairs that share a reference are adjacent, so that few texts are needed at a time.
        order = {text: place for place, text in enumerate(distinct)}
        for pair in sorted(dict.fromkeys(pairs), key=lambda pair: order[pair[1]]):
            status = _status(*(tokens[text] for text in pair))
            if status == OK and not all(weights[text].any() for text in pair):
                status = NO_WEIGHT
            if status == OK:
                usable.append(pair)
            else:
                scores[pair] = BERTScorePair(None, None, None, status, *(tokens[text].cut for text in pair))
        for pair, precision, recall in self._match_pairs(usable, tokens, weights):
            scores[pair] = self._scored(precision, recall, *(tokens[text].cut for text in pair))
        return [scores[pair] for pair in pairs]

    def _weights(self, encoded: EncodedText) -> Floats:
        weights: Floats = np.array([token not in self.encoder.special for token in encoded.ids], dtype=np.float32)
        weights /= max(float(weights.sum()), 1.0)
        return weights

    def _match_pairs(
        self, pairs: Sequence[Pair], tokens: Mapping[str, EncodedText], weights: Mapping[str, Floats]
    ) -> Iterator[tuple[Pair, float, float]]:
        """Compute precision and recall of each pair, some pairs at a time."""
        vectors: dict[str, Floats] = {}
        for start in range(0, len(pairs), PAIRS_AT_A_TIME):
            window = pairs[start : start + PAIRS_AT_A_TIME]
            needed = dict.fromkeys(text for pair in window for text in pair)
            vectors = {text: rows for text, rows in vectors.items() if text in needed}
            new = [text for text in needed if text not in vectors]
            vectors |= zip(new, self.encoder.vectors([tokens[text].ids for text in new]), strict=True)
            for one, other in window:
                cosines = vectors[one] @ vectors[other].T
                means = cosines.max(axis=1) @ weights[one], cosines.max(axis=0) @ weights[other]
                precision, recall = np.clip(means, -1.0, 1.0).tolist()  # rounding must not lift a cosine above 1
                yield (one, other), precision, recall

    def _scored(self, precision: float, recall: float, candidate_cut: int, reference_cut: int) -> BERTScorePair:
        if math.isnan(precision) or math.isnan(recall):
            raise ModelError(
                f"the encoder {self.encoder.name!r} gives vectors that are not numbers", remedy="check its weights"
            )
        f1 = 2 * precision * recall / (precision + recall) if min(precision, recall) > 0 else 0.0
        return BERTScorePair(precision, recall, f1, OK, candidate_cut, reference_cut)


def _status(candidate: EncodedText, reference: EncodedText) -> str:
    if candidate.empty:
        return EMPTY_CANDIDATE
    return EMPTY_REFERENCE if reference.empty else OK


class BERTScoreSimilarity:
    """Similarity by BERTScore-F1. `learn` scores all distinct pairs together."""

    def __init__(self, scorer: BERTScore) -> None:
        self.name = scorer.identity
        self._scorer = scorer
        self._scores: dict[Pair, BERTScorePair] = {}
        self._skipped: dict[str, str] = {}
        """Texts that couldn't be compared while others of the same answer could, with the reason."""

    def learn(self, pairs: Iterable[tuple[str, Sequence[str]]]) -> None:
        new = dict.fromkeys((text, other) for text, others in pairs for other in others)
        missing = [pair for pair in new if pair not in self._scores]
        if missing:
            scores = self._scorer.score([text for text, _ in missing], [other for _, other in missing])
            self._scores.update(zip(missing, scores, strict=True))

    def best(self, text: str, others: Sequence[str]) -> BestSimilarity:
        """Raise `NoValue` if the encoder has nothing to compare: it knows no token of a text."""
        self.learn([(text, others)])
        pairs = [self._scores[text, other] for other in others]
        values = [(pair.f1, -place) for place, pair in enumerate(pairs) if pair.f1 is not None]
        if not values:
            raise NoValue(pairs[0].status, "BERTScore has nothing to compare")
        value, place = max(values)
        lost = {other: pair.status for other, pair in zip(others, pairs, strict=True) if pair.f1 is None}
        self._skipped |= lost
        cut = bool(pairs[-place].candidate_cut or pairs[-place].reference_cut)
        return BestSimilarity(value, -place, cut, len(lost))

    def notes(self) -> list[str]:
        """Count truncated texts, and texts that couldn't be compared."""
        notes = []
        if self._skipped:
            counts = Counter(self._skipped.values()).most_common()
            words = ", ".join(f"{status} {number:,}" for status, number in counts)
            number = format_count(len(self._skipped), "reference text")
            notes.append(f"{number} couldn't be compared by BERTScore ({words}); the best of the others counts")
        answers = len({text for (text, _), pair in self._scores.items() if pair.candidate_cut})
        others = len({other for (_, other), pair in self._scores.items() if pair.reference_cut})
        if answers or others:
            texts = f"{format_count(answers, 'answer')} and {format_count(others, 'reference text')}"
            notes.append(f"{texts} were too long for the encoder and truncated for BERTScore")
        return notes


Similarity = OverlapSimilarity | BERTScoreSimilarity
