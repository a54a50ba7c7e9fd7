"""Systems by their means over queries: whether a metric ranks them as an outcome does."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ragworth.stats.bootstrap import FEW_CLUSTERS, FEWEST_CLUSTERS, Clusters, cluster_index
from ragworth.stats.correlation import MEASURES, Measure, kendall, missing_reason
from ragworth.stats.estimate import Estimate, Resampling
from ragworth.stats.paired import paired_p
from ragworth.stats.pooled import JACKKNIFED
from ragworth.stats.resampling import fisher_z_interval, fisher_z_p, resample_counts, standard_error, tau_interval
from ragworth.stats.within_query import query_correlations

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Sides = tuple[Floats, Floats]
"""A metric and an outcome, each queries × systems; NaN where there is none."""

FEWEST = 3
"""Fewer systems can't be ranked in a meaningful way."""
FEW = f"fewer than {FEWEST} systems with both values"
NOTHING = "no query has both values for every system"
UNSTEADY = "the means are constant in most resamples, so no interval"
ONE_QUERY = "there is only one query, so no interval"
CHUNK = 512
STEP = 256
"""Resamples whose means are held at a time."""


class CommonGrid(NamedTuple):
    """What two measures (queries × systems) can be compared over.

    ``systems`` have some value of both; ``queries`` have both for all of these systems.
    """

    systems: Bools
    queries: Bools

    def of(self, values: Floats) -> Floats:
        """Those of the values."""
        return values[self.queries][:, self.systems]


def common_grid(x: Floats, y: Floats) -> CommonGrid:
    """The systems and queries of which both measures have values."""
    there = np.asarray(~(np.isnan(x).all(axis=0) | np.isnan(y).all(axis=0)))
    whole = np.asarray(~(np.isnan(x[:, there]).any(axis=1) | np.isnan(y[:, there]).any(axis=1)))
    return CommonGrid(there, whole)


class _Units(NamedTuple):
    """What is drawn: each of the queries, or whole clusters of them. ``place`` has the unit of each query."""

    place: npt.NDArray[np.int64] | None
    number: int

    @classmethod
    def of(cls, clusters: Clusters, used: Bools) -> _Units:
        number = int(used.sum())
        place = cluster_index(None if clusters is None else np.asarray(clusters)[used], number)
        return cls(place, number if place is None else int(place.max()) + 1)

    @property
    def clusters(self) -> int | None:
        return None if self.place is None else self.number

    @property
    def too_few(self) -> bool:
        return self.place is not None and self.number < FEWEST_CLUSTERS

    def weights(self, drawn: Floats) -> Floats:
        """How often each query counts if units are drawn so often."""
        return drawn if self.place is None else drawn[:, self.place]


def rank_systems(x: Floats, y: Floats, plan: Resampling, clusters: Clusters = None) -> Estimate:
    """Kendall's τ-b of the systems' means by two measures (queries × systems); queries are resampled.

    A system without any value takes no part; a query in which some other lacks one is left out, so that all means are
    over the same queries. ``n`` counts queries, ``counts`` the systems. ``clusters`` has the cluster of each query, if
    queries aren't independent.
    """
    both = common_grid(x, y)
    x, y = both.of(x), both.of(y)
    counts, queries, lost = {"systems": x.shape[1]}, len(x), int((~both.queries).sum())
    units = _Units.of(clusters, both.queries)
    none = Estimate(n=queries, n_left_out=lost, counts=counts, clusters=units.clusters)
    if x.shape[1] < FEWEST or not queries:
        return none._replace(reason=FEW if x.shape[1] < FEWEST else NOTHING)
    first, second = x.mean(axis=0).round(12), y.mean(axis=0).round(12)
    if reason := missing_reason(first, second, "kendall", ("the measure of contexts", "the measure of answers")):
        return none._replace(reason=reason)
    none = none._replace(value=kendall(first, second))
    if units.too_few:
        return none._replace(reason=FEW_CLUSTERS)
    # Sums rank systems as means do, also where clusters differ in size.
    draws = [
        _taus(units.weights(drawn) @ x / queries, units.weights(drawn) @ y / queries)
        for drawn in resample_counts(units.number, plan.resamples, plan.seed, CHUNK)
    ]
    span = tau_interval(np.concatenate(draws), units.number, plan.level)
    return none.with_interval(span)


class SeparatedPairs(NamedTuple):
    """How many pairs of systems differ significantly, of all pairs."""

    separated: int
    pairs: int


def separated_pairs(values: Floats, alpha: float, clusters: Clusters = None) -> SeparatedPairs:
    """Pairs of systems whose means (queries × systems) differ by a paired t-test, without correction.

    The order of the others may be chance. A correlation of the systems' means is then mostly nearer to 0 than with more
    queries, and its interval doesn't show that.
    """
    pairs = list(combinations(range(values.shape[1]), 2))
    how: dict[str, Any] = {"resamples": 0, "seed": 0, "bounds": None, "clusters": clusters}
    p = [paired_p(values[:, a] - values[:, b], "t", **how) for a, b in pairs]
    return SeparatedPairs(sum(each < alpha for each in p), len(pairs))


def spread_of_means(values: Floats) -> tuple[float | None, float | None]:
    """Mean and standard deviation of the systems' means (queries × systems); None without enough systems."""
    means = np.array([column[~np.isnan(column)].mean() for column in values.T if not np.isnan(column).all()])
    return float(means.mean()) if len(means) else None, float(means.std(ddof=1)) if len(means) > 1 else None


def correlate_systems(
    sides: Sequence[Sides], measure: Measure, plan: Resampling, clusters: Clusters = None
) -> Estimate:
    """The correlation of the systems' means of a metric and an outcome, averaged over several such pairs.

    The pairs are of the same queries in the same order, which are resampled for all at once. The interval is Student's
    on Fisher's scale, with the standard error of the bootstrap over queries or of the jackknife, as for correlations
    over all rows (:mod:`ragworth.stats.pooled`). ``n`` counts systems. ``clusters`` has the cluster of each query, if
    queries aren't independent.
    """
    known = [common_grid(x, y) for x, y in sides]
    systems = min(int(each.systems.sum()) for each in known)
    some = np.any([each.queries for each in known], axis=0)
    count, lost = int(some.sum()), int((~some).sum())
    parts = [_Part(each.of(x), each.of(y), each.queries[some]) for (x, y), each in zip(sides, known, strict=True)]
    units = _Units.of(clusters, some)
    none = Estimate(n=systems, n_left_out=lost, clusters=units.clusters)
    for part in parts:
        if reason := part.missing_reason(measure):
            return none._replace(reason=reason)
    none = none._replace(value=float(np.mean([part.correlation(measure) for part in parts])))
    if count < 2 or units.too_few:
        return none._replace(reason=ONE_QUERY if count < 2 else FEW_CLUSTERS)

    def weighted(drawn: Floats) -> Floats:
        weights = units.weights(drawn)
        return np.asarray(np.mean([part.weighted(weights, measure) for part in parts], axis=0))

    draws = [weighted(drawn) for drawn in resample_counts(units.number, plan.resamples, plan.seed, STEP)]
    without = weighted(1.0 - np.eye(units.number)) if units.number <= JACKKNIFED else np.empty(0)
    error = standard_error(np.concatenate(draws), without)
    if error is None or none.value is None:
        return none._replace(reason=UNSTEADY)
    p = fisher_z_p(none.value, error, units.number)
    return none._replace(p=p).with_interval(fisher_z_interval(none.value, error, units.number, plan.level))


class _Part(NamedTuple):
    """A metric and an outcome without gaps, and which of all queries they are of."""

    x: Floats
    y: Floats
    there: Bools

    def means(self) -> Sides:
        x, y = (np.round(each.mean(axis=0), 12) for each in (self.x, self.y))
        return x, y

    def missing_reason(self, measure: Measure) -> str:
        if self.x.shape[1] < FEWEST or not len(self.x):
            return FEW if self.x.shape[1] < FEWEST else NOTHING
        return missing_reason(*self.means(), measure, ("the metric", "the outcome"))

    def correlation(self, measure: Measure) -> float:
        return float(MEASURES[measure](*self.means()))

    def weighted(self, weights: Floats, measure: Measure) -> Floats:
        """The correlation for each way to count all queries (ways × queries); NaN if none of these is drawn."""
        mine = weights[:, self.there]
        total = mine.sum(axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):
            a, b = (np.round(mine @ each / total, 12) for each in (self.x, self.y))
        way = np.repeat(np.arange(len(weights)), self.x.shape[1])
        return query_correlations(a.reshape(-1, 1), b.reshape(-1), way, measure=measure).values[:, 0]


def _taus(x: Floats, y: Floats) -> Floats:
    """Kendall's τ-b of each row of two arrays; NaN where a row is constant."""
    a, b = np.triu_indices(x.shape[1], 1)
    of_x, of_y = (np.sign((v[:, a] - v[:, b]).round(12)) for v in (x, y))
    untied = np.sqrt(np.abs(of_x).sum(axis=1) * np.abs(of_y).sum(axis=1))
    net = (of_x * of_y).sum(axis=1)
    return np.asarray(np.divide(net, untied, out=np.full(len(x), np.nan), where=untied > 0))
