"""Value of a context from the effect of each of its passages alone: eRAG, and the likelihood of the accepted answer.

The downstream score s of a passage, 0 to 1, is the quality of the model's answer if it is shown only that passage.
The likelihood l of a passage, 0 or below, is the mean log-probability per token that the model then gives to the
accepted answer. Both are judgments of (query, passage). A context with a passage that lacks one has no value.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ragworth.metrics.blocks import Block, Bools, Floats
from ragworth.metrics.classical import IDEAL, ratio, unit_bounds
from ragworth.metrics.declaration import MetricResult, Need, Parameter, declare

PAPER = "Salemi and Zamani: Evaluating Retrieval Quality in Retrieval-Augmented Generation (eRAG)"
NEEDS: tuple[Need, ...] = ("downstream",)


def aggregate_parameter(what: str) -> Parameter:
    """The parameter that chooses how the passages' values are aggregated."""
    return Parameter("of", "mean", f"mean or highest {what} of the passages shown", choices=("mean", "max"))


class DownstreamValues(NamedTuple):
    """Values of the first k passages of each context (0 beyond its end), and contexts that lack one."""

    values: Floats
    filled: Bools
    unknown: Bools


def downstream_values(block: Block, k: float, aspect: str) -> DownstreamValues:
    """Judgments of one aspect for the passages shown."""
    filled = block.filled(k)
    values = block.aspects[aspect][:, : block.upto(k)]
    unknown = np.asarray((np.isnan(values) & filled).any(axis=1))
    return DownstreamValues(np.where(filled, np.nan_to_num(values), 0.0), filled, unknown)


def unknown_reasons(block: Block, shown: DownstreamValues, ideal: str) -> tuple[tuple[Bools, str], ...]:
    """Contexts without a ranked value: the best order may depend on a failed judgment anywhere in the query."""
    failed = shown.unknown
    if ideal == "judged":
        failed = failed | (block.truth.judged("downstream").failed > 0)
    return ((failed, "unjudged"),)


@declare(
    name="eRAG",
    default=7,
    title="quality of the model's answers from each shown passage alone",
    formula="eRAG@k = Σs / K; of=max: the highest s; K = passages shown up to k",
    needs=NEEDS,
    range="0 to 1",
    bounds=unit_bounds,
    paper=PAPER,
    parameters=(aggregate_parameter("downstream score"),),
    order_free=True,
    whole_query=False,
)
def downstream(block: Block, k: float, of: str) -> MetricResult:
    """Mean, or highest, downstream score of the passages shown. With scores of 0 and 1, these are precision and
    success.

    A context with a passage that lacks a downstream score has no value (``unjudged``). **Choice**: the mean is
    over the passages actually shown, up to k. An empty context scores 0.
    """
    shown = downstream_values(block, k, "downstream")
    values = shown.values.max(axis=1, initial=0.0) if of == "max" else ratio(shown.values.sum(axis=1), block.within(k))
    return MetricResult(values, ((shown.unknown, "unjudged"),))


@declare(
    name="eRAG_nDCG",
    title="nDCG with the downstream score of each passage as its gain",
    formula="eRAG_nDCG@k = DCG@k / DCG@k of the ideal ranking; DCG@k = Σ_{r ≤ k} s_r / log2(r + 1)",
    needs=NEEDS,
    range="0 to 1",
    bounds=unit_bounds,
    paper=PAPER,
    parameters=(IDEAL,),
)
def downstream_ndcg(block: Block, k: float, ideal: str) -> MetricResult:
    """Downstream scores discounted by the logarithm of the rank, relative to the best possible order.

    The ideal ranking is that of all passages of the query with a downstream score, whichever system showed them; with
    ``ideal=retrieved``, of the passages shown, which measures the order alone.
    A context with a passage that lacks a downstream score has no value (``unjudged``), nor has one of a query with a
    failed judgment, unless ``ideal=retrieved``. **Choice**: if even the ideal gains nothing, the score is 0. An empty
    context scores 0.
    """
    shown = downstream_values(block, k, "downstream")
    if ideal == "retrieved":
        best = _dcg(-np.sort(-shown.values, axis=1))
    else:
        best = block.truth.once(("downstream ideal", k), lambda: _ideal_dcg(block, k))
    return MetricResult(ratio(_dcg(shown.values), best), unknown_reasons(block, shown, ideal))


def _dcg(gains: Floats) -> Floats:
    return np.asarray((gains / np.log2(np.arange(2, gains.shape[1] + 2))).sum(axis=1))


def _ideal_dcg(block: Block, k: float) -> Floats:
    judged = block.truth.judged("downstream")
    place = judged.places()
    return judged.sums(np.where(place <= k, 1 / np.log2(place + 1), 0.0))


@declare(
    name="eRAG_AP",
    title="average precision with the downstream score of each passage as its degree of relevance",
    formula="eRAG_AP@k = Σ_{r ≤ k} 1/r · Σ_{j ≤ r} min(s_j, s_r), divided by Σs of the judged passages",
    needs=NEEDS,
    range="0 to 1",
    bounds=unit_bounds,
    paper=f"{PAPER}; Robertson, Kanoulas and Yilmaz: Extending Average Precision to Graded Relevance Judgments",
    parameters=(IDEAL,),
)
def downstream_ap(block: Block, k: float, ideal: str) -> MetricResult:
    """Average precision where a passage is relevant to the degree s.

    **Choice**: graded average precision. A passage counts as relevant if its s reaches a threshold; with every
    threshold from 0 to 1 equally likely, this is the expected sum of precisions divided by the expected number of
    relevant passages. Scores of 0 and 1 give AP; the best order of all judged passages gives 1, as in nDCG.
    ``ideal=retrieved`` divides by the downstream scores of the context instead of all those of the query.
    A context with a passage that lacks a downstream score has no value (``unjudged``), nor has one of a query with a
    failed judgment, unless ``ideal=retrieved``. If nothing scores above 0, the score is 0. An empty context scores 0.
    """
    shown = downstream_values(block, k, "downstream")
    total = np.zeros(block.size)
    for rank in range(1, shown.values.shape[1] + 1):
        total += np.minimum(shown.values[:, :rank], shown.values[:, rank - 1 : rank]).sum(axis=1) / rank
    if ideal == "retrieved":
        below = shown.values.sum(axis=1)
    else:
        below = block.truth.once("downstream sum", block.truth.judged("downstream").sums)
    return MetricResult(ratio(total, below), unknown_reasons(block, shown, ideal))


@declare(
    name="Likelihood",
    default=8,
    title="how likely each shown passage alone makes the accepted answer",
    formula="Likelihood@k = Σl / K; of=max: the highest l; l = mean log p(answer token | query, passage)",
    needs=("likelihood",),
    range="below 0; 0 if the model is certain of the accepted answer",
    bounds=lambda values, shown: (-np.inf, 1e-6),
    paper="log-likelihood of the accepted answer, as in work on training retrievers with a reader",
    parameters=(aggregate_parameter("log-likelihood"),),
    order_free=True,
    irrelevant_never_raises=False,
    whole_query=False,
)
def likelihood(block: Block, k: float, of: str) -> MetricResult:
    """Mean, or highest, log-likelihood of the accepted answer over the passages shown.

    A context with a passage that lacks a likelihood has no value (``unjudged``). **Choice**: neither has an empty
    context (``empty-context``), because 0 would mean that the answer is certain. Another passage can raise the score,
    because no likelihood stands for irrelevance.
    """
    shown = downstream_values(block, k, "likelihood")
    empty = block.within(k) == 0
    if of == "max":
        values = np.where(shown.filled, shown.values, -np.inf).max(axis=1)
    else:
        values = shown.values.sum(axis=1) / np.maximum(block.within(k), 1)
    return MetricResult(values, ((empty, "empty-context"), (shown.unknown, "unjudged")))
