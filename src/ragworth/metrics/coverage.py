"""Coverage, ranked coverage and density of contexts for long answers, from ratings of sub-questions.

A passage answers a sub-question if its rating is at least η; an unrated passage answers nothing. The answerable
sub-questions of a query are those that some rated passage answers. The required subset answers exactly these.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from ragworth.metrics.blocks import Block, Bools, Floats, Ints, Truth, sum_by_row
from ragworth.metrics.classical import ratio, unit_bounds
from ragworth.metrics.declaration import MetricResult, Need, Parameter, declare

PAPER = "Ju, Verberne, de Rijke and Yates: Controlled Retrieval-augmented Context Evaluation for Long-form RAG"
ETA = Parameter("eta", 3.0, "lowest rating that counts as answered (1 for TREC sub-topic qrels)")
NEEDS: tuple[Need, ...] = ("ratings",)


def required_subset(ratings: Floats, eta: float) -> list[int]:
    """Rows of the required passages: repeatedly, the one that answers most open sub-questions.

    Ties go to the earlier row; stops when no passage answers another one. A failed rating (NaN) answers nothing.
    """
    answers = ratings >= eta
    open_ = np.ones(answers.shape[1], dtype=bool)
    chosen: list[int] = []
    while len(answers):
        gain = (answers & open_).sum(axis=1)
        best = int(gain.argmax())
        if gain[best] == 0:
            break
        chosen.append(best)
        open_ &= ~answers[best]
    return chosen


class AnswerableSubquestions(NamedTuple):
    """Which sub-questions of each query can be answered, and whether a failed rating leaves that open."""

    which: Bools
    unsure: Bools


def answerable_subquestions(truth: Truth, eta: float, width: int) -> AnswerableSubquestions:
    """Which sub-questions of each query some rated passage answers."""

    def make() -> AnswerableSubquestions:
        which = np.zeros((truth.size, width), dtype=bool)
        unsure = np.zeros(truth.size, dtype=bool)
        for i, ratings in enumerate(truth.rated):
            known = (ratings >= eta).any(axis=0)
            which[i, : ratings.shape[1]] = known
            unsure[i] = bool((np.isnan(ratings).any(axis=0) & ~known).any())
        return AnswerableSubquestions(which, unsure)

    return truth.once(("answerable", eta), make)


class CoveredShare(NamedTuple):
    share: Floats
    missing: tuple[tuple[Bools, str], ...]


def covered_share(block: Block, k: float, eta: float) -> CoveredShare:
    """Share of the answerable sub-questions that the first k passages answer."""
    assert block.ratings is not None
    can = answerable_subquestions(block.truth, eta, block.ratings.shape[2])
    shown = block.ratings[:, : block.upto(k)]
    answered = np.asarray((shown >= eta).any(axis=1))
    failed = np.asarray(np.isnan(shown).any(axis=1))
    unsure = np.asarray((failed & ~answered).any(axis=1)) | can.unsure
    total = can.which.sum(axis=1).astype(np.float64)
    share = ratio((answered & can.which).sum(axis=1).astype(np.float64), total)
    return CoveredShare(share, ((unsure, "unjudged"), (total == 0, "no-answerable")))


@declare(
    name="Cov",
    title="coverage: share of the answerable sub-questions that the context answers",
    formula="Cov(η)@k = |answerable sub-questions with a rating ≥ η among the first k| / |answerable sub-questions|",
    needs=NEEDS,
    range="0 to 1",
    bounds=unit_bounds,
    paper=PAPER,
    parameters=(ETA,),
    order_free=True,
)
def coverage(block: Block, k: float, eta: float) -> MetricResult:
    """Share of the answerable sub-questions that the shown passages answer.

    Unrated passages count 0. The value is missing for a query without answerable sub-questions (``no-answerable``)
    and for a context where a failed rating leaves a sub-question open (``unjudged``).
    An empty context scores 0.
    """
    return MetricResult(*covered_share(block, k, eta))


def alpha_ndcg_bounds(values: Mapping[str, Any], shown: float) -> tuple[float, float]:
    """0, and the most by which the best order of k passages can exceed the greedy one: 1 / (1 − (1 − 1/k)^k).

    The joint gain of r passages is submodular, so the first r greedy ones gain at least 1 − (1 − 1/r)^r of the best r
    (Nemhauser, Wolsey and Fisher 1978). Discounts decrease, so α-DCG is a sum of these gains with non-negative weights,
    and the smallest share, that of r = k, holds for it. With α = 1 the bound is approached for many passages:
    e / (e − 1) ≈ 1.58. With α = 0 gains just add up, and the greedy order is the best.
    """
    if values["alpha"] == 0 or shown <= 1:
        return 0.0, 1.0
    return 0.0, 1 / (1 - (math.exp(-1) if math.isinf(shown) else (1 - 1 / shown) ** shown))


@declare(
    name="alpha_nDCG",
    title="ranked coverage: novelty of what each passage answers, discounted by rank",
    formula="α-nDCG@k = α-DCG@k / ideal α-DCG@k; gain(r) = Σ_i answers(r, i)·(1 − α)^(earlier passages that answer i)",
    needs=NEEDS,
    range="0 to 1 (above 1 if the greedy ideal is not the best, at most 1.59)",
    bounds=alpha_ndcg_bounds,
    paper="Clarke et al. 2008, as in ndeval; " + PAPER,
    parameters=(
        Parameter("alpha", 0.5, "how much a repeated answer loses", low=0, high=1),
        ETA,
        Parameter(
            "at",
            "k",
            "where rankings end. k: at @k; required: at the size of the query's required subset, and at most at @k",
            choices=("k", "required"),
        ),
    ),
)
def alpha_ndcg(block: Block, k: float, alpha: float, eta: float, at: str) -> MetricResult:
    """α-nDCG with the sub-questions as sub-topics and discount log2(r + 1), equal to ndeval.

    The ideal order is greedy over all rated passages. Gains are compared exactly. Ties are broken as in ndeval:
    by the rounded sums, added in the order of the sub-questions, and then by passage id, descending. The order
    of the rows doesn't matter. The best order isn't always greedy, so a context can exceed 1.
    With ``at=required``, the context and the ideal order are cut at the size of the query's required subset, as in
    the paper.
    The value is missing for a query without answerable sub-questions (``no-answerable``) and for one with a failed
    rating (``unjudged``), which could change the ideal. An empty context scores 0.
    """
    assert block.ratings is not None
    shown = block.ratings[:, : block.upto(k)]
    limits = np.full(block.size, k)
    if at == "required":
        limits = np.minimum(k, block.truth.once(("required sizes", eta), lambda: _required_sizes(block.truth, eta)))
    answers: Bools = (shown >= eta) & (np.arange(shown.shape[1]) < limits[:, None])[:, :, None]
    before: Ints = np.cumsum(answers, axis=1) - answers
    query, rank, _ = found = np.nonzero(answers)
    place, depth = query * answers.shape[1] + rank, block.size * answers.shape[1]
    gain = sum_by_row(place, np.power(1 - alpha, before[found].astype(np.float64)), depth).reshape(answers.shape[:2])
    query, rank = np.nonzero(gain)
    dcg = sum_by_row(query, gain[query, rank] / np.log2(rank + 2), block.size)
    key = ("alpha", alpha, eta, k, at)
    ideal = block.truth.once(key, lambda: _ideal_alpha_dcg(block.truth, limits, alpha, eta))
    failed = np.isnan(shown).any(axis=(1, 2)) | failed_ratings(block.truth)
    return MetricResult(ratio(dcg, ideal), ((failed, "unjudged"), (ideal == 0, "no-answerable")))


def failed_ratings(truth: Truth) -> Bools:
    """Which queries have a failed rating."""
    return truth.once("failed", lambda: np.array([bool(np.isnan(rated).any()) for rated in truth.rated], dtype=bool))


def _sequential_sum(answers: Bools, worth: Floats) -> Floats:
    """Sum over sub-questions one after the other, like ndeval."""
    gain = np.zeros(len(answers))
    for column, value in zip(answers.T, worth, strict=True):
        gain += column * value
    return gain


NEAR = 1e-9
"""Gains closer than this, relative to the largest, are compared exactly. Rounding errors are far smaller."""


NEVER = np.iinfo(np.int64).max
"""Marks a sub-question that a passage doesn't answer."""


def _best_passage(gain: Floats, answers: Bools, seen: Ints, keep: Fraction) -> int:
    """The passage with the largest gain: exactly, then as rounded, then the first.

    A sub-question already answered c times is worth ``keep`` to the power of c.
    """
    most = gain.max()
    near = np.flatnonzero(gain >= most * (1 - NEAR))
    # A gain depends only on how often its sub-questions were answered before.
    times = np.sort(np.where(answers[near], seen, NEVER), axis=1)
    if most > 0 and bool((times != times[0]).any()):
        kinds, kind = np.unique(times, axis=0, return_inverse=True)
        exact = [sum((keep ** int(c) for c in each if c != NEVER), Fraction()) for each in kinds]
        best = np.array([value == max(exact) for value in exact])
        near = near[best[kind.ravel()]]
    return int(near[gain[near].argmax()])


def _exact_fraction(number: float) -> Fraction:
    """The intended number: 9/10 for 0.9, and 1/3 for the nearest float."""
    simple = Fraction(number).limit_denominator(10**6)
    return simple if float(simple) == number else Fraction(repr(float(number)))


def _required_sizes(truth: Truth, eta: float) -> Floats:
    return np.array([float(len(required_subset(ratings, eta))) for ratings in truth.rated])


def _ideal_alpha_dcg(truth: Truth, limits: Floats, alpha: float, eta: float) -> Floats:
    ideal = np.zeros(truth.size)
    keep = 1 - _exact_fraction(alpha)
    for i, (ratings, order) in enumerate(zip(truth.rated, truth.rated_by_id, strict=True)):
        left = ratings[order] >= eta
        left = left[left.any(axis=1)]
        worth, seen = np.ones(ratings.shape[1]), np.zeros(ratings.shape[1], dtype=np.int64)
        rank = 1
        while len(left) and rank <= limits[i]:
            gain = _sequential_sum(left, worth)
            best = _best_passage(gain, left, seen, keep)
            ideal[i] += gain[best] / np.log2(rank + 1)
            worth[left[best]] *= 1 - alpha
            seen[left[best]] += 1
            left = np.delete(left, best, axis=0)
            rank += 1
    return ideal


@declare(
    name="Den",
    title="density: coverage per token, relative to the required subset",
    formula="Den(w)@k = ((Cov(Z)/tokens(Z)) / (Cov(Z*)/tokens(Z*)))^w, Z* the required subset",
    needs=("ratings", "tokens"),
    range="0 and up; may exceed 1",
    bounds=lambda values, shown: (0.0, np.inf),
    paper=PAPER,
    parameters=(Parameter("w", 0.5, "weight; 1 is plain density", low=0), ETA),
    order_free=True,
)
def density(block: Block, k: float, w: float, eta: float) -> MetricResult:
    """How little text the context needs for the sub-questions it answers.

    Tokens of unrated passages count. The notes of the result say what counted the tokens.
    The value is missing if there is no answerable sub-question (``no-answerable``), if a rating of the query failed
    (``unjudged``: it could change the required subset), if a passage's length is unknown, or if the answering passages
    have no tokens (``no-tokens``).
    A context that answers nothing, or is empty, scores 0.
    """
    assert block.tokens is not None
    share, missing = covered_share(block, k, eta)
    filled = block.filled(k)
    lengths = block.tokens[:, : block.upto(k)]
    tokens = np.where(filled, np.nan_to_num(lengths), 0).sum(axis=1)
    best = block.truth.once(("required tokens", eta), lambda: _required_tokens(block.truth, eta))
    unknown = (np.isnan(lengths) & filled).any(axis=1) | np.isnan(best) | ((share > 0) & ((tokens == 0) | (best == 0)))
    value = ratio(share * np.nan_to_num(best), tokens) ** w
    missing = (*missing, (failed_ratings(block.truth), "unjudged"), (unknown, "no-tokens"))
    return MetricResult(np.where(share > 0, value, 0.0), missing)


def _required_tokens(truth: Truth, eta: float) -> Floats:
    """Tokens of each query's required subset; NaN if the length of one of its passages is unknown."""
    return np.array(
        [
            float(lengths[required_subset(ratings, eta)].sum()) if len(lengths) else 0.0
            for ratings, lengths in zip(truth.rated, truth.rated_tokens, strict=True)
        ]
    )
