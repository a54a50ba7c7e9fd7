"""Do the metrics predict what came of the contexts? Rank correlations with intervals over queries or conversations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ragworth.comparison import correlate, higher_is_better
from ragworth.conversations import cluster_labels
from ragworth.stats.clustered import FEWEST_CLUSTERS
from ragworth.stats.correlation import ResampledRanks, pearson, spearman
from ragworth.stats.influence import spearman_influence
from ragworth.stats.large_samples import LARGE, bootstrap_quantiles
from ragworth.stats.pooled import differing_units
from ragworth.stats.resampling import ConfidenceInterval, expanded_interval
from ragworth.stats.student import student_quantile
from ragworth.tables import Outcomes, Scores

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

RESAMPLES = 400
LEVEL = 0.95
SCHEMA = {
    "metric": pl.String,
    "outcome": pl.String,
    "rho": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "apart": pl.Boolean,
    "reliable": pl.Boolean,
    "n": pl.Int64,
    "queries": pl.Int64,
}


def scores_with_outcomes(scores: Scores, outcomes: Outcomes | None, metrics: list[str]) -> Scores:
    """Scores, and outcomes as if they were scores, in one table; an outcome is called after its aspect."""
    chosen = scores.having("metric", metrics)
    if outcomes is None:
        return Scores.of_parts(chosen.parts)
    others = outcomes.having("system", scores.distinct("system")).frame.select(
        "system", "query", pl.format("outcome: {}", "aspect").alias("metric"), "value", "status"
    )
    return Scores.of_parts([*chosen.parts, others])


def metric_correlations(scores: Scores, outcomes: Outcomes | None, metrics: list[str]) -> pl.DataFrame:
    """Spearman's ρ of every two metrics, and of metrics with outcomes, over all (system, query).

    Returns first, second, value and n.
    """
    found = correlate(scores_with_outcomes(scores, outcomes, metrics), over="queries", measures=("spearman",))
    return found.select("first", "second", pl.col("spearman").alias("value"), "n")


class OutcomeCorrelation(NamedTuple):
    """A correlation, its values in the resamples, and the queries that these draw from.

    ``up`` is −1 where a lower value of the metric is better: it predicts what it should by a negative correlation.
    ``units`` is what is drawn: queries, or the conversations that they are turns of; ``differing`` those on which the
    values rest, if most are the same. More than :data:`LARGE` units are not resampled. ``draws`` then has a number for
    each unit, and their mean is the correlation.
    """

    metric: str
    up: int
    rho: float
    draws: Floats
    queries: pl.Series
    units: int
    differing: int
    n: int

    def span(self, draws: Floats) -> ConfidenceInterval | None:
        """The interval of a statistic from its draws."""
        if self.units < min(FEWEST_CLUSTERS, len(self.queries)):
            return None
        if self.units <= LARGE:
            return expanded_interval(draws, self.differing, LEVEL)
        return ConfidenceInterval(*bootstrap_quantiles(draws, (1 - LEVEL) / 2, RESAMPLES, seed=0))


def outcome_predictions(
    scores: Scores, outcomes: Outcomes, metrics: list[str], seed: int, conversations: Mapping[str, str] | None = None
) -> pl.DataFrame:
    """How well each metric predicts each outcome: Spearman's ρ over all (system, query), best first: the
    highest, or the lowest if the metric or the outcome, and not both, is better if lower.

    The interval is an expanded percentile bootstrap that draws whole queries, because contexts of one query are not
    independent, and whole ``conversations`` where queries are their turns; for more than :data:`LARGE` queries it is
    the limit of that. Returns metric, outcome, rho, low, high, apart, reliable, n (contexts) and queries. ``apart``
    says whether the interval of the difference from the best, in the same resamples, lies above 0: null for the best
    itself, and where a metric has values for other queries. ``reliable``: the metric predicts the outcome as it should,
    also with an interval that allows for the number of metrics (Bonferroni's), of which the highest would be chosen.
    """
    rows: list[dict[str, object]] = []
    for (aspect,), part in outcomes.frame.filter(pl.col("value").is_not_null()).group_by("aspect", maintain_order=True):
        right = part.select("system", "query", pl.col("value").alias("outcome"))
        every = [
            resample_correlation(
                metric, _known_scores(scores, metric).join(right, on=["system", "query"]), seed, conversations or {}
            )
            for metric in metrics
        ]
        if not higher_is_better(str(aspect)):
            every = [None if each is None else each._replace(up=-each.up) for each in every]
        found = sorted((each for each in every if each is not None), key=lambda each: -each.up * each.rho)
        rows += [{"outcome": aspect, **_row(each, found[0], len(found))} for each in found]
    return pl.DataFrame(rows, schema=SCHEMA)


def _known_scores(scores: Scores, metric: str) -> pl.DataFrame:
    """The scores of one metric that have a value."""
    return scores.having("metric", [metric]).frame.filter(pl.col("value").is_not_null())


def _row(each: OutcomeCorrelation, best: OutcomeCorrelation, metrics: int) -> dict[str, object]:
    span = each.span(each.draws)
    behind = best.up * best.draws - each.up * each.draws if each.queries.equals(best.queries) else None
    apart = None
    if behind is not None and each is not best:
        gap = each.span(behind)
        copy = not np.nan_to_num(behind).any()  # equal in every resample, which gives no interval
        apart = gap.low > 0 if gap is not None else False if copy else None
    return {
        "metric": each.metric,
        "rho": each.rho,
        "low": span.low if span is not None else None,
        "high": span.high if span is not None else None,
        "apart": apart,
        "reliable": _is_reliable(each, span, metrics),
        "n": each.n,
        "queries": len(each.queries),
    }


def _is_reliable(each: OutcomeCorrelation, span: ConfidenceInterval | None, metrics: int) -> bool:
    """Whether an interval widened for so many metrics still lies on the right side of 0.

    A perfect correlation has no interval, and is reliable. Nothing is with fewer units than clusters need.
    """
    right, freedom = each.up * each.rho, each.differing - 1
    if each.differing < FEWEST_CLUSTERS or span is None:
        return right > 1 - 1e-9 and each.differing >= FEWEST_CLUSTERS
    wider = student_quantile(freedom, 1 - (1 - LEVEL) / metrics) / student_quantile(freedom, LEVEL)
    return right > wider * (right - (span.low if each.up > 0 else -span.high))


def resample_correlation(
    metric: str, both: pl.DataFrame, seed: int, conversations: Mapping[str, str]
) -> OutcomeCorrelation | None:
    """Spearman's ρ of ``value`` and ``outcome`` in resamples of the units; None where there is none."""
    ordered = both.sort("query")
    labels = cluster_labels(ordered["query"], conversations)
    units = ordered["query"] if labels is None else pl.Series("unit", labels)
    if labels is not None:
        order = units.arg_sort()
        ordered, units = ordered[order], units[order]
    x, y = ordered["value"].to_numpy(), ordered["outcome"].to_numpy()
    rho = spearman(x, y) if len(x) else float("nan")
    if np.isnan(rho):
        return None
    starts = np.flatnonzero(units.is_first_distinct().to_numpy())
    make = _resampled if len(starts) <= LARGE else _influences
    up = 1 if higher_is_better(metric) else -1
    queries = ordered["query"].unique(maintain_order=True)
    unit = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(x))))
    differing = min(differing_units(side, unit) for side in (x, y))
    return OutcomeCorrelation(metric, up, rho, make(x, y, starts, seed), queries, len(starts), differing, len(x))


def _resampled(x: Floats, y: Floats, starts: Ints, seed: int) -> Floats:
    """The correlation in resamples of the units, whose rows begin at ``starts``."""
    sizes = np.diff(np.append(starts, len(x)))
    a, b = ResampledRanks(x), ResampledRanks(y)
    rng = np.random.default_rng(seed)
    draws = []
    for _ in range(RESAMPLES):
        drawn = rng.integers(0, len(starts), len(starts))
        before = np.cumsum(sizes[drawn]) - sizes[drawn]  # rows of the queries drawn earlier
        rows = np.repeat(starts[drawn] - before, sizes[drawn]) + np.arange(sizes[drawn].sum())
        draws.append(pearson(a.ranks(rows), b.ranks(rows)))
    return np.array(draws)


def _influences(x: Floats, y: Floats, starts: Ints, _: int) -> Floats:
    """A number for each unit, whose mean is the correlation."""
    sizes = np.diff(np.append(starts, len(x)))
    return spearman_influence(x, y).by_group(np.repeat(np.arange(len(starts)), sizes))
