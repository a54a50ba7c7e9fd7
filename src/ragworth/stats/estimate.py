"""One type for every estimate: a value with its interval, its test and its counts, or the reason why it has none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ragworth.stats.bootstrap import (
    FEW_CLUSTERS,
    Clusters,
    bootstrap_means,
    cluster_index,
    cluster_means,
    count_clusters,
    mean_intervals,
    too_few_clusters,
)
from ragworth.stats.range_intervals import Bounds
from ragworth.stats.resampling import ConfidenceInterval, expanded_interval, expanded_p

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]


class Resampling(NamedTuple):
    """How intervals are made: one plan for all estimates of an analysis."""

    level: float = 0.95
    resamples: int = 2000
    seed: int = 0

    @property
    def options(self) -> dict[str, Any]:
        """As keyword arguments of the functions in this package."""
        return self._asdict()

    @property
    def alpha(self) -> float:
        return 1 - self.level


class Estimate(NamedTuple):
    """A value with everything needed to judge it.

    Attributes
    ----------
    value: None if it is undefined; ``reason`` then says why.
    low, high: confidence interval; None if there is none.
    p: of the test that belongs to the value; ``p_holm`` corrected for the estimates of one family.
    n: number of units (mostly queries) that it is from; ``n_left_out`` that could not be used.
    reason: why the value or its interval is missing, or units are left out; or empty.
    counts: what else was counted, such as wins, ties and losses.
    reasons: how many units were left out, by reason.
    detectable: for a difference, the smallest true one that n units show with probability 0.8.
    clusters: number of clusters (conversations) of these units, which intervals and tests draw; None if units are
        independent.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_holm: float | None = None
    n: int = 0
    n_left_out: int = 0
    reason: str = ""
    counts: Mapping[str, int] = {}
    detectable: float | None = None
    reasons: Mapping[str, int] = {}
    clusters: int | None = None

    @property
    def interval(self) -> ConfidenceInterval | None:
        return ConfidenceInterval(self.low, self.high) if self.low is not None and self.high is not None else None

    def is_significant(self, alpha: float) -> bool:
        """Whether the value differs from that of no effect: by the corrected p if there is one.

        An interval that contains 0 says no: it allows for values that too few queries show, and tests don't.
        """
        p = self.p_holm if self.p_holm is not None else self.p
        within = self.low is not None and self.high is not None and self.low <= 0 <= self.high
        return self.value is not None and p is not None and p < alpha and not within

    def with_interval(self, span: ConfidenceInterval | None) -> Estimate:
        """The same with an interval, if there is one."""
        return self if span is None else self._replace(low=span.low, high=span.high)


def mean_estimates(
    values: Floats, plan: Resampling, bounds: Bounds | None = None, clusters: Clusters = None
) -> list[Estimate]:
    """The mean of each column over its rows (queries), whose values lie within ``bounds``; NaN is left out.

    ``clusters`` has the cluster of each row, if rows aren't independent.
    """
    group, made = cluster_index(clusters, len(values)), []
    counts = [None] * values.shape[1] if group is None else count_clusters(values, group).tolist()
    few = np.zeros(values.shape[1], dtype=bool) if group is None else too_few_clusters(values, group)
    spans = mean_intervals(values, **plan.options, bounds=bounds, clusters=group).spans()
    for at, (column, span) in enumerate(zip(values.T, spans, strict=True)):
        known = column[~np.isnan(column)]
        mean = float(known.mean()) if len(known) else None
        none = Estimate(mean, n=len(known), n_left_out=len(column) - len(known), clusters=counts[at])
        made.append(none._replace(reason=FEW_CLUSTERS if few[at] else "").with_interval(span))
    return made


def mean_of_groups(groups: Sequence[Floats], plan: Resampling, clusters: Sequence[Clusters] | None = None) -> Estimate:
    """The mean of the groups' means, every group counting the same; NaN is left out.

    Units are resampled within their group, and the interval is widened as that of the smallest group would be.
    ``clusters`` has the clusters of each group's units, or None for a group whose units are independent.
    """
    indexes = [
        cluster_index(each, len(group)) for group, each in zip(groups, clusters or [None] * len(groups), strict=True)
    ]
    known = [group[~np.isnan(group)] for group in groups]
    n = sum(map(len, known))
    if not min(map(len, known)):
        return Estimate(n=n, reason="a group has no value")
    value = float(np.mean([part.mean() for part in known]))
    few = any(
        i is not None and too_few_clusters(group[:, None], i)[0] for group, i in zip(groups, indexes, strict=True)
    )
    parts = [_independent(group[:, None], index)[:, 0] for group, index in zip(groups, indexes, strict=True)]
    parts = [part[~np.isnan(part)] for part in parts]
    total = sum(map(len, parts)) if any(index is not None for index in indexes) else None
    if few:
        return Estimate(value, n=n, reason=FEW_CLUSTERS, clusters=total)
    draws = [bootstrap_means(part[:, None], plan.resamples, plan.seed + at)[:, 0] for at, part in enumerate(parts)]
    made = _from_draws(value, np.mean(draws, axis=0), min(map(len, parts)), plan)
    return made._replace(n=n, clusters=total)


def mean_of_columns(values: Floats, plan: Resampling, clusters: Clusters = None) -> Estimate:
    """The mean of the columns' means over their rows (units), which are resampled; NaN is left out.

    ``clusters`` has the cluster of each row, if rows aren't independent.
    """
    there = ~np.isnan(values).all(axis=1)
    some = values[there]
    value = float(np.nanmean(some, axis=0).mean())
    group = cluster_index(None if clusters is None else np.asarray(clusters)[there], len(some))
    total = None if group is None else int(group.max()) + 1
    if group is not None and too_few_clusters(np.nanmean(some, axis=1)[:, None], group)[0]:
        return Estimate(value, n=len(some), reason=FEW_CLUSTERS, clusters=total)
    # A column in which no resampled row has a value gives none for the resample.
    units = _independent(some, group)
    draws = bootstrap_means(units, plan.resamples, plan.seed).mean(axis=1)
    return _from_draws(value, draws, len(units), plan)._replace(n=len(some), clusters=total)


def _independent(values: Floats, group: npt.NDArray[np.int64] | None) -> Floats:
    """Rows that can be drawn: units, or one for each cluster of them."""
    return values if group is None else cluster_means(values, group)


def _from_draws(value: float, draws: Floats, n: int, plan: Resampling) -> Estimate:
    return Estimate(value, p=expanded_p(draws, n), n=n).with_interval(expanded_interval(draws, n, plan.level))
