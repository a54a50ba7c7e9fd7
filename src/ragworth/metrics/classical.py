"""The metrics of trec_eval, with equal results on any qrels and run, and the share of judged passages.

Unjudged passages count as irrelevant. The order within a context is the order shown (for runs: score descending, then
passage id descending).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ragworth.core.errors import MetricError
from ragworth.metrics.blocks import Block, Bools, Floats, Ints, sum_by_row
from ragworth.metrics.declaration import Parameter, ParameterInput, ParameterValue, declare, format_number

NO_GAINS = "none"


@dataclass(frozen=True)
class GainsParameter(Parameter):
    """Gains of relevance levels in trec_eval's syntax: ``1=3,2=9``. In Python also ``{1: 3, 2: 9}``."""

    default: ParameterValue = NO_GAINS
    doc: str = ""

    @property
    def takes(self) -> str:
        return "LEVEL=GAIN, separated by commas and in quotes; levels from 0"

    @property
    def example(self) -> str:
        return '"1=3,2=9"'

    def parse(self, text: str) -> ParameterValue:
        quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
        return self.check(text[1:-1] if quoted else text)

    def check(self, value: ParameterInput) -> ParameterValue:
        """Normalize the gains: levels ascending, numbers as short as possible."""
        if value == NO_GAINS:
            return NO_GAINS
        if isinstance(value, Mapping):
            pairs = [(float(level), float(gain)) for level, gain in value.items()]
        elif isinstance(value, str):
            parts = [part.split("=") for part in value.split(",")]
            pairs = [(float(level), float(gain)) for level, gain in parts]
        else:
            raise ValueError
        levels = [level for level, _ in pairs]
        # Relevance below 0 means that the passage is unjudged.
        if not pairs or len(set(levels)) < len(levels) or not np.isfinite(pairs).all() or min(levels) < 0:
            raise ValueError
        return ",".join(f"{format_number(level)}={format_number(gain)}" for level, gain in sorted(pairs))


@lru_cache(maxsize=64)
def gain_table(gains: str) -> Mapping[float, float]:
    """Level → gain."""
    pairs = (part.split("=") for part in gains.split(",")) if gains != NO_GAINS else ()
    return {float(level): float(gain) for level, gain in pairs}


def may_gain(relevance: Floats, gains: str) -> Bools:
    """Where relevance can have a gain; NaN and negative relevance never do."""
    return np.asarray(relevance >= 0 if 0.0 in gain_table(gains) else relevance > 0)


def passage_gains(relevance: Floats, gain: str, gains: str) -> Floats:
    """Gains of passages with this relevance, which isn't negative."""
    if gain == "exponential" and relevance.max(initial=0.0) > 1000:
        raise MetricError(
            f"nDCG(gain=exponential): 2 to the power of relevance {relevance.max():g} is too large",
            remedy="use gain=linear, or a smaller scale of relevance",
        )
    worth = np.exp2(relevance) - 1 if gain == "exponential" else relevance.copy()
    for level, given in gain_table(gains).items():
        worth[relevance == level] = given
    return worth


REL = Parameter("rel", 1.0, "lowest relevance that counts as relevant")
IDEAL = Parameter(
    "ideal",
    "judged",
    "passages in the best possible ranking: all judged passages of the query, or only those of the context",
    choices=("judged", "retrieved"),
)
NEEDS = ("relevance",)


def unit_bounds(_: Mapping[str, Any], __: float) -> tuple[float, float]:
    """0 and 1, whatever the parameters."""
    return 0.0, 1.0


CLASSICAL_FACTS = {"needs": NEEDS, "range": "0 to 1", "bounds": unit_bounds}


def ratio(above: Floats, below: Floats | float) -> Floats:
    """``above / below``, or 0 if ``below`` is 0."""
    below = np.broadcast_to(np.asarray(below, dtype=np.float64), above.shape)
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)


def precision_divisor(block: Block, k: float) -> Floats | float:
    """Divisor of precision: the cutoff, or without one the number of passages shown."""
    return k if np.isfinite(k) else block.within(k)


@declare(
    name="P",
    default=4,
    title="precision: share of relevant passages among the first k",
    formula="P@k = n_p / k",
    paper="trec_eval P_k; without cutoff set_P",
    parameters=(REL,),
    order_free=True,
    whole_query=False,
    **CLASSICAL_FACTS,
)
def precision(block: Block, k: float, rel: float) -> Floats:
    """Number of relevant passages among the first k, divided by k.

    Divides by k even if fewer were shown; without a cutoff, by the number shown.
    An empty context scores 0.
    """
    return ratio(block.hits(rel).count(k), precision_divisor(block, k))


@declare(
    name="R",
    default=5,
    title="recall: share of the relevant passages found among the first k",
    formula="R@k = n_p / N_p",
    paper="trec_eval recall_k; without cutoff set_recall",
    parameters=(REL,),
    order_free=True,
    **CLASSICAL_FACTS,
)
def recall(block: Block, k: float, rel: float) -> Floats:
    """Number of relevant passages among the first k, divided by the number in the qrels.

    A query without relevant passages scores 0, and so does an empty context.
    """
    return ratio(block.hits(rel).count(k), block.truth.relevant(rel))


@declare(
    name="F1",
    title="harmonic mean of precision and recall",
    formula="F1@k = 2 · P@k · R@k / (P@k + R@k) = 2 n_p / (k + N_p)",
    paper="trec_eval set_F (without cutoff)",
    parameters=(REL,),
    order_free=True,
    **CLASSICAL_FACTS,
)
def f1(block: Block, k: float, rel: float) -> Floats:
    """Harmonic mean of P@k and R@k; 0 if both are 0.

    As in P@k, divides by k even if fewer passages were shown; without a cutoff, by the number shown.
    An empty context scores 0.
    """
    return ratio(2 * block.hits(rel).count(k), precision_divisor(block, k) + block.truth.relevant(rel))


@declare(
    name="AP",
    title="average precision",
    formula="AP@k = Σ over relevant ranks r ≤ k of P@r, divided by N_p",
    paper="trec_eval map, map_cut_k",
    parameters=(REL, IDEAL),
    **CLASSICAL_FACTS,
)
def average_precision(block: Block, k: float, rel: float, ideal: str) -> Floats:
    """Mean of the precision at each relevant passage; relevant passages not retrieved count 0.

    ``ideal=retrieved`` divides by the number of relevant passages in the context instead of the qrels.
    A query without relevant passages scores 0, and so does an empty context.
    """
    hits = block.hits(rel)
    total = hits.sum(hits.sequence() / hits.rank, k)
    return ratio(total, hits.count(k) if ideal == "retrieved" else block.truth.relevant(rel))


@declare(
    name="RR",
    default=6,
    title="reciprocal rank of the first relevant passage",
    formula="RR@k = 1 / (rank of the first relevant passage), 0 if it is beyond k",
    paper="trec_eval recip_rank",
    parameters=(REL,),
    whole_query=False,
    **CLASSICAL_FACTS,
)
def reciprocal_rank(block: Block, k: float, rel: float) -> Floats:
    """One divided by the rank of the first relevant passage; 0 if none is among the first k.

    An empty context scores 0.
    """
    hits = block.hits(rel)
    return hits.sum((hits.sequence() == 1) / hits.rank, k)


def ndcg_bounds(values: Mapping[str, Any], shown: float) -> tuple[float, float]:
    """0 and 1, unless some level has a negative gain."""
    return (-np.inf if any(gain < 0 for gain in gain_table(values["gains"]).values()) else 0.0), 1.0


@declare(
    name="nDCG",
    default=3,
    title="normalised discounted cumulative gain",
    formula="nDCG@k = DCG@k / DCG@k of the ideal ranking; DCG@k = Σ_{r ≤ k} gain(r) / log2(r + 1)",
    needs=NEEDS,
    range="0 to 1; below 0 if a gain is negative",
    bounds=ndcg_bounds,
    paper="trec_eval ndcg, ndcg_cut_k; Järvelin and Kekäläinen 2002",
    parameters=(
        Parameter(
            "gain",
            "linear",
            "linear: the relevance itself; exponential: 2^relevance − 1",
            choices=("linear", "exponential"),
        ),
        GainsParameter("gains", doc='gains of some levels, as in trec_eval: "1=3,2=9"; the others follow `gain`'),
        IDEAL,
    ),
)
def ndcg(block: Block, k: float, gain: str, gains: str, ideal: str) -> Floats:
    """Gain of the passages, discounted by the logarithm of their rank, relative to the best possible order.

    Negative relevance and unjudged passages gain nothing. Relevance may be any real number.
    ``gains`` overrides the gain of some levels, including level 0. A gain may be negative; the ideal ranking leaves
    such passages out. The ideal ranking is that of all judged passages, or with ``ideal=retrieved`` of the passages
    shown.
    **Choice**: a context without relevant passages, or an empty context, scores 0 under both.
    """
    shown = block.relevance[:, : block.upto(k)]
    query, rank = np.nonzero(may_gain(shown, gains))
    worth = passage_gains(shown[query, rank], gain, gains)
    dcg = sum_by_row(query, worth / np.log2(rank + 2), block.size)
    if ideal == "judged":
        best = block.truth.once(("ideal", gain, gains, k), lambda: _ideal_dcg(block, k, gain, gains))
        return ratio(dcg, best)
    return ratio(dcg, _best_dcg(query, worth, block.size, k))


def _ideal_dcg(block: Block, k: float, gain: str, gains: str) -> Floats:
    truth = block.truth
    some = may_gain(truth.judged_value, gains)
    query, worth = truth.judged_query[some], passage_gains(truth.judged_value[some], gain, gains)
    # Judgments are sorted by relevance, which is also the order of their gains unless `gains` is set.
    return _best_dcg(query, worth, truth.size, k) if gain_table(gains) else _sorted_dcg(query, worth, truth.size, k)


def _best_dcg(query: Ints, worth: Floats, n: int, k: float) -> Floats:
    """DCG of the best order of these values, leaving out those that aren't positive."""
    query, worth = query[worth > 0], worth[worth > 0]
    order = np.lexsort((-worth, query))
    return _sorted_dcg(query[order], worth[order], n, k)


def _sorted_dcg(query: Ints, worth: Floats, n: int, k: float) -> Floats:
    """DCG of values already in the best order within each query."""
    first = np.searchsorted(query, np.arange(n))
    place = np.arange(len(query)) - first[query]
    near = place < k
    return sum_by_row(query[near], worth[near] / np.log2(place[near] + 2), n)


@declare(
    name="Success",
    title="whether any of the first k is relevant (hit rate)",
    formula="Success@k = 1 if n_p > 0, else 0",
    paper="trec_eval success_k",
    parameters=(REL,),
    order_free=True,
    whole_query=False,
    **CLASSICAL_FACTS,
)
def success(block: Block, k: float, rel: float) -> Floats:
    """1 if a relevant passage is among the first k, otherwise 0. An empty context scores 0."""
    return (block.hits(rel).count(k) > 0).astype(np.float64)


@declare(
    name="Rprec",
    title="precision at the number of relevant passages",
    formula="Rprec = P@N_p",
    paper="trec_eval Rprec",
    parameters=(REL,),
    takes_cutoff=False,
    **CLASSICAL_FACTS,
)
def r_precision(block: Block, k: float, rel: float) -> Floats:
    """Precision among the first N_p passages, where N_p is the number of relevant passages in the qrels.

    A query without relevant passages scores 0, and so does an empty context.
    """
    wanted = block.truth.relevant(rel)
    return ratio(block.hits(rel).count(wanted), wanted)


@declare(
    name="Bpref",
    title="preference of judged relevant over judged irrelevant passages",
    formula="Bpref = 1/R · Σ over retrieved relevant r of (1 − min(irrelevant above r, R) / min(R, N))",
    paper="trec_eval bpref; Buckley and Voorhees 2004",
    parameters=(REL,),
    takes_cutoff=False,
    **CLASSICAL_FACTS,
)
def bpref(block: Block, k: float, rel: float) -> Floats:
    """How rarely a judged irrelevant passage ranks above a relevant one; unjudged passages are ignored.

    R and N are the judged relevant and irrelevant passages of the query. Negative relevance means that
    a passage was not pooled; it counts as unjudged, as in trec_eval.
    A query without relevant passages scores 0, and so does an empty context.
    """
    hits, truth = block.hits(rel), block.truth
    wrong = np.cumsum((block.relevance < rel) & (block.relevance >= 0), axis=1)
    above = wrong[hits.query, hits.rank - 1].astype(np.float64)
    relevant = truth.relevant(rel)
    fewer = np.minimum(relevant, truth.irrelevant(rel))[hits.query]
    return ratio(hits.sum(1 - ratio(np.minimum(above, relevant[hits.query]), fewer), np.inf), relevant)


@declare(
    name="Judged",
    title="share of the first k passages that are judged",
    formula="Judged@k = judged among the first k / passages shown up to k",
    paper="ir_measures Judged",
    order_free=True,
    irrelevant_never_raises=False,
    whole_query=False,
    minds_failures=False,
    **CLASSICAL_FACTS,
)
def judged_share(block: Block, k: float) -> Floats:
    """Share of the shown passages that have a relevance judgment. It tells how far to trust the other metrics.

    Divides by the passages actually shown, up to k. A failed judgment doesn't count. An empty context scores 0.
    """
    known = ~np.isnan(block.relevance[:, : block.upto(k)])
    return ratio(known.sum(axis=1).astype(np.float64), block.within(k))
