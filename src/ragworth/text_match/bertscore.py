"""BERTScore: token-level similarity of two texts in an encoder's space (Zhang et al. 2020).

Every token of one text is matched with the token of the other whose vector is nearest by cosine. Precision is the mean
over the candidate's tokens, recall over the reference's, F1 their harmonic mean. As in the authors' package
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
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from ragworth.core.errors import InputError, ModelError, quote_short
from ragworth.data import OK
from ragworth.text_match.token_encoder import EncodedText, Floats, TokenEncoder, TokenVectors

EMPTY_CANDIDATE, EMPTY_REFERENCE = "empty-candidate", "empty-reference"
NO_WEIGHT = "no-weight"
"""Status of a pair in which a text has only tokens that begin or end texts."""
NO_REFERENCE = "no-reference"

MAX_VECTOR_BYTES = 1 << 30
"""Maximum bytes of vectors in memory. Within that, every distinct text is read once."""


CANDIDATES_AT_A_TIME = 64
"""Candidates matched with one reference at a time."""


class BERTScorePair(NamedTuple):
    """Similarity of a candidate and a reference.

    Attributes
    ----------
    precision, recall, f1: None unless the status is ``ok``.
    status: ``ok``, or why there is no score: ``empty-candidate``, ``empty-reference``, ``no-weight``.
    candidate_cut, reference_cut: number of ignored tokens of each beyond the encoder's limit.
    """

    precision: float | None
    recall: float | None
    f1: float | None
    status: str
    candidate_cut: int = 0
    reference_cut: int = 0


class BERTScoreBest(NamedTuple):
    """The best F1 of a candidate against several references.

    Attributes
    ----------
    value: None unless the status is ``ok``.
    status: ``ok``; ``no-reference`` without references; or why the first pair has no score.
    place: index of the best reference; the first among ties.
    scored: number of references with a score; the others were empty.
    candidate_cut: tokens of the candidate beyond the encoder's limit.
    references_cut: number of references beyond the limit.
    """

    value: float | None
    status: str
    place: int | None = None
    scored: int = 0
    candidate_cut: int = 0
    references_cut: int = 0


class BERTScore:
    """Scores pairs of texts with one encoder; by default with the settings of the paper on context utility.

    Parameters
    ----------
    encoder: a name in the local cache of the Hugging Face hub, a folder, or an open encoder, to which ``layer``,
        ``device``, ``batch``, ``revision`` and ``download`` don't apply.
    layer: layer to compare; None uses the one known to be best (18 for bert-large-uncased).
    device, batch, revision, download: see :class:`~ragworth.text_match.token_encoder.TokenEncoder`.
    """

    def __init__(
        self,
        encoder: str | TokenVectors = "bert-large-uncased",
        *,
        layer: int | None = None,
        device: str | None = None,
        batch: int = 64,
        revision: str = "main",
        download: bool = False,
    ) -> None:
        self.encoder: TokenVectors = (
            TokenEncoder(encoder, layer=layer, device=device, batch=batch, revision=revision, download=download)
            if isinstance(encoder, str)
            else encoder
        )

    @property
    def identity(self) -> str:
        """Everything that determines a score, in one line, to be stored with it."""
        return f"bertscore:{self.encoder.name}@{self.encoder.revision} layer={self.encoder.layer}"

    def score(self, candidates: Sequence[str], references: Sequence[str]) -> list[BERTScorePair]:
        """Score each candidate against the reference at the same index.

        Every distinct text is read once (as far as its vectors fit :data:`MAX_VECTOR_BYTES`), in batches of similar
        length. Up to rounding (below 1e-5), scores don't depend on the order of the pairs or the batch size.
        """
        left, right = _check_texts(candidates, "candidates"), _check_texts(references, "references")
        if len(left) != len(right):
            raise InputError(
                f"{len(left):,} candidates and {len(right):,} references", expected="a reference for each candidate"
            )
        distinct = list(dict.fromkeys([*right, *left]))
        tokens = dict(zip(distinct, self.encoder.tokens(distinct), strict=True))
        special = self.encoder.special
        weights = {text: _normalised([float(i not in special) for i in made.ids]) for text, made in tokens.items()}
        found: dict[tuple[str, str], BERTScorePair] = {}
        wanted: list[tuple[str, str]] = []
        # Pairs that share a reference are adjacent, so that few texts are needed at a time.
        first_seen = {text: i for i, text in enumerate(distinct)}
        for pair in sorted(dict.fromkeys(zip(left, right, strict=True)), key=lambda pair: first_seen[pair[1]]):
            status = _status(*(tokens[text] for text in pair))
            if status == OK and not all(any(weights[text]) for text in pair):
                status = NO_WEIGHT
            if status == OK:
                wanted.append(pair)
            else:
                found[pair] = BERTScorePair(None, None, None, status, *(tokens[text].cut for text in pair))
        for pair, precision, recall in self._match_pairs(wanted, tokens, weights):
            found[pair] = self._pair(precision, recall, *(tokens[text].cut for text in pair))
        return [found[pair] for pair in zip(left, right, strict=True)]

    def best(self, candidates: Sequence[str], references: Sequence[Sequence[str]]) -> list[BERTScoreBest]:
        """The highest F1 of each candidate over its references, such as an answer over the relevant passages."""
        groups = [_check_texts(group, "references") for group in references]
        if len(candidates) != len(groups):
            raise InputError(
                f"{len(candidates):,} candidates and {len(groups):,} lists of references",
                expected="a list of references for each candidate",
            )
        flat = [(text, reference) for text, group in zip(candidates, groups, strict=True) for reference in group]
        pairs = iter(self.score([text for text, _ in flat], [reference for _, reference in flat]))
        return [_best([next(pairs) for _ in group]) for group in groups]

    def _match_pairs(
        self,
        pairs: Sequence[tuple[str, str]],
        tokens: Mapping[str, EncodedText],
        weights: Mapping[str, Sequence[float]],
    ) -> Iterator[tuple[tuple[str, str], float, float]]:
        """Precision and recall of each pair."""
        held: dict[str, tuple[Floats, Floats]] = {}
        for window in self._windows(pairs, tokens):
            needed = dict.fromkeys(text for pair in window for text in pair)
            held = {text: kept for text, kept in held.items() if text in needed}
            new = [text for text in needed if text not in held]
            for text, vectors in zip(new, self.encoder.vectors([tokens[text].ids for text in new]), strict=True):
                held[text] = vectors, np.array(weights[text], dtype=np.float32)
            found = [
                _greedy_match([held[left] for left, _ in some], *held[reference])
                for reference, sharing in groupby(window, key=lambda pair: pair[1])
                for some in _slices(list(sharing))
            ]
            for pair, (precision, recall) in zip(window, np.concatenate(found).tolist(), strict=True):
                yield pair, precision, recall

    def _windows(
        self, pairs: Sequence[tuple[str, str]], tokens: Mapping[str, EncodedText]
    ) -> Iterator[list[tuple[str, str]]]:
        """Split pairs into runs whose texts' vectors fit in memory together, with at least one pair each."""
        window: list[tuple[str, str]] = []
        texts: set[str] = set()
        size = 0
        for pair in pairs:
            more = sum(len(tokens[text].ids) for text in set(pair) - texts) * 4 * self.encoder.width
            if window and size + more > MAX_VECTOR_BYTES:
                yield window
                window, texts, size = [], set(), 0
                more = sum(len(tokens[text].ids) for text in set(pair)) * 4 * self.encoder.width
            window.append(pair)
            texts.update(pair)
            size += more
        if window:
            yield window

    def _pair(self, precision: float, recall: float, candidate_cut: int, reference_cut: int) -> BERTScorePair:
        if math.isnan(precision) or math.isnan(recall):
            raise ModelError(
                f"the encoder {self.encoder.name!r} gives vectors that are not numbers", remedy="check its weights"
            )
        f1 = 2 * precision * recall / (precision + recall) if min(precision, recall) > 0 else 0.0
        return BERTScorePair(precision, recall, f1, OK, candidate_cut, reference_cut)


def _slices(pairs: list[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    return (pairs[start : start + CANDIDATES_AT_A_TIME] for start in range(0, len(pairs), CANDIDATES_AT_A_TIME))


def _greedy_match(candidates: Sequence[tuple[Floats, Floats]], reference: Floats, weight: Floats) -> Floats:
    """Precision and recall of each candidate, given vectors and weights of its tokens, by greedy matching."""
    starts = np.cumsum([0, *(len(mine) for _, mine in candidates[:-1])])
    alike = np.concatenate([vectors for vectors, _ in candidates]) @ reference.T
    weights = np.concatenate([mine for _, mine in candidates])
    precision = np.add.reduceat(alike.max(axis=1) * weights, starts)
    recall = np.maximum.reduceat(alike, starts, axis=0) @ weight
    return np.stack([precision, recall], axis=1).clip(-1.0, 1.0)  # rounding must not lift a cosine above 1


def _normalised(weights: list[float]) -> list[float]:
    total = sum(weights)
    return [weight / total for weight in weights] if total > 0 else weights


def _status(candidate: EncodedText, reference: EncodedText) -> str:
    if candidate.empty:
        return EMPTY_CANDIDATE
    return EMPTY_REFERENCE if reference.empty else OK


def _best(pairs: Sequence[BERTScorePair]) -> BERTScoreBest:
    if not pairs:
        return BERTScoreBest(None, NO_REFERENCE)
    scored = [(pair.f1, -i) for i, pair in enumerate(pairs) if pair.f1 is not None]
    cuts = pairs[0].candidate_cut, sum(pair.reference_cut > 0 for pair in pairs)
    if not scored:
        return BERTScoreBest(None, pairs[0].status, None, 0, *cuts)
    value, place = max(scored)
    return BERTScoreBest(value, OK, -place, len(scored), *cuts)


def _check_texts(texts: Sequence[str], name: str) -> list[str]:
    """Check a list of texts and strip them, which changes no score."""
    if isinstance(texts, str):
        raise InputError(f"{name} is one text", expected="a list of texts", remedy=f"give [{quote_short(texts, 24)}]")
    for text in texts:
        if not isinstance(text, str):
            raise InputError(
                f"{name} contains {quote_short(text)}, which is not a text", expected="texts; '' for an empty one"
            )
    return [text.strip() for text in texts]
