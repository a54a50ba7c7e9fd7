"""Correlation of metrics with an outcome within each query, over its contexts or systems, averaged over queries.

Unlike :mod:`ragworth.stats.pooled`, this ignores how easy queries are. A query in which the metric or the outcome is
constant has no correlation: it is left out, and counted by reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ragworth.stats.bootstrap import (
    FEW_CLUSTERS,
    Clusters,
    cluster_index,
    count_clusters,
    mean_intervals,
    too_few_clusters,
)
from ragworth.stats.correlation import Measure
from ragworth.stats.estimate import Estimate
from ragworth.stats.paired import bootstrap_tests
from ragworth.stats.pooled import PooledRows
from ragworth.stats.resampling import ConfidenceInterval

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

CHUNK = 1 << 22
"""Row pairs in memory at a time."""

FEW = "fewer than two rows with both values"
FLAT_METRIC = "the metric is constant"
FLAT_OUTCOME = "the outcome is constant"
FLAT_BOTH = "both are constant"
INFINITE = "a value is infinite"
REASONS = ("", FEW, FLAT_METRIC, FLAT_OUTCOME, FLAT_BOTH, INFINITE)
"""Why a query has no correlation, by the code in :class:`WithinQueryCorrelations`; 0 means it has one."""

NO_QUERY = "no query has a correlation"
ONE_QUERY = "only one query has a correlation, so no interval"


class WithinQueryCorrelations(NamedTuple):
    """Correlations (queries × metrics) of queries in ascending order; NaN if undefined.

    ``why`` has the index in :data:`REASONS` for each, ``rows`` the number of rows.
    """

    values: Floats
    why: Ints
    rows: Ints


def query_correlations(
    values: npt.ArrayLike, outcome: npt.ArrayLike, queries: npt.ArrayLike, *, measure: Measure = "spearman"
) -> WithinQueryCorrelations:
    """Correlation of each column of ``values`` (rows × metrics) with ``outcome`` within each query."""
    rows = PooledRows.of(values, outcome, queries, measure)
    order = np.argsort(rows.unit, kind="stable")
    x, y, unit = rows.values[order], rows.outcome[order], rows.unit[order]
    units = int(unit.max(initial=-1)) + 1
    shape = (units, x.shape[1])
    found = WithinQueryCorrelations(
        np.full(shape, np.nan), np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    )
    for place in range(x.shape[1]):
        there = ~(np.isnan(x[:, place]) | np.isnan(y))
        one = _column_correlations(x[there, place], y[there], unit[there], units, measure)
        for whole, part in zip(found, one, strict=True):
            whole[:, place] = part
    return found


def within_query_correlations(
    values: npt.ArrayLike,
    outcome: npt.ArrayLike,
    queries: npt.ArrayLike,
    *,
    measure: Measure = "spearman",
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
    clusters: Clusters = None,
) -> list[Estimate]:
    """Mean correlation of each column of ``values`` with ``outcome`` within queries, with its interval.

    ``clusters`` has the cluster of each row's query, if queries aren't independent. p is that of a mean of 0, by the
    studentised bootstrap (:func:`ragworth.stats.paired.bootstrap_test`). ``n`` counts queries with a correlation,
    ``reasons`` those without, and ``counts`` their contexts (rows).
    """
    found = query_correlations(values, outcome, queries, measure=measure)
    drawn = _QueryClusters.of(queries, clusters, found.values)
    how: dict[str, Any] = {"resamples": resamples, "seed": seed, "clusters": drawn.place}
    spans = mean_intervals(found.values, level=level, **how, bounds=(-1.0, 1.0)).spans()
    p = bootstrap_tests(found.values, **how)
    columns = zip(found.values.T, found.why.T, found.rows.T, strict=True)
    means = [_with_reasons(_mean(values, rows), why) for values, why, rows in columns]
    tested = [
        one if one.n < 2 or few else one._replace(p=float(each))
        for one, each, few in zip(means, p, drawn.few, strict=True)
    ]
    return drawn.with_intervals(tested, spans)


def _mean(values: Floats, rows: Ints) -> Estimate:
    """The mean over the queries that have a value; without its interval."""
    known = ~np.isnan(values)
    count = int(known.sum())
    return Estimate(
        float(values[known].mean()) if count else None,
        n=count,
        reason="" if count > 1 else ONE_QUERY if count else NO_QUERY,
        counts={"contexts": int(rows[known].sum())},
    )


def _with_reasons(mean: Estimate, why: Ints) -> Estimate:
    """A mean correlation, and why the queries without a correlation have none."""
    left = {reason: n for code, reason in enumerate(REASONS) if code and (n := int((why == code).sum()))}
    reason = mean.reason or ", ".join(f"{reason}: {n:,}" for reason, n in left.items())
    return mean._replace(n_left_out=sum(left.values()), reason=reason, reasons=left)


def within_query_gaps(
    values: npt.ArrayLike,
    outcome: npt.ArrayLike,
    queries: npt.ArrayLike,
    *,
    pairs: Sequence[tuple[int, int]],
    measure: Measure = "spearman",
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
    clusters: Clusters = None,
) -> list[Estimate]:
    """Mean difference between two metrics' correlations within queries, for each of ``pairs`` of columns.

    Over the queries in which both have one. The interval is that of a mean; p is of the studentised bootstrap
    (:func:`ragworth.stats.paired.bootstrap_test`). ``n`` counts these queries, ``counts`` their contexts (rows).
    """
    found = query_correlations(values, outcome, queries, measure=measure)
    firsts, seconds = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    a, b = found.values[:, firsts], found.values[:, seconds]
    gaps = a - b
    gaps = np.where(np.abs(gaps) < 1e-12, 0.0, gaps)
    drawn = _QueryClusters.of(queries, clusters, gaps)
    how: dict[str, Any] = {"resamples": resamples, "seed": seed, "clusters": drawn.place}
    spans = mean_intervals(gaps, level=level, **how, bounds=(-2.0, 2.0)).spans()
    p = bootstrap_tests(gaps, **how)
    rows = np.minimum(found.rows[:, firsts], found.rows[:, seconds])
    means = [_mean(*column) for column in zip(gaps.T, rows.T, strict=True)]
    tested = [one._replace(p=float(each)) if one.n > 1 else one for one, each in zip(means, p, strict=True)]
    return drawn.with_intervals(tested, spans)


class _QueryClusters(NamedTuple):
    """The cluster of each query, and for each column how many clusters have a value, and whether they are too few."""

    place: Ints | None
    numbers: Sequence[int | None]
    few: list[bool]

    @classmethod
    def of(cls, queries: npt.ArrayLike, clusters: Clusters, values: Floats) -> _QueryClusters:
        """``queries`` and ``clusters`` have those of each row, ``values`` a row for each query in ascending order."""
        given = None if clusters is None else np.asarray(clusters)[np.unique(queries, return_index=True)[1]]
        place = cluster_index(given, len(values))
        if place is None:
            return cls(None, [None] * values.shape[1], [False] * values.shape[1])
        return cls(place, count_clusters(values, place).tolist(), too_few_clusters(values, place).tolist())

    def with_intervals(self, made: Sequence[Estimate], spans: Sequence[ConfidenceInterval | None]) -> list[Estimate]:
        """The estimates of the columns with their intervals and numbers of clusters."""
        return [
            one._replace(clusters=number, reason=FEW_CLUSTERS if few else one.reason).with_interval(span)
            for one, span, number, few in zip(made, spans, self.numbers, self.few, strict=True)
        ]


def _column_correlations(x: Floats, y: Floats, unit: Ints, units: int, measure: Measure) -> tuple[Floats, Ints, Ints]:
    """Correlations within queries, for rows in query order; why they are undefined; and the number of rows of each."""
    size = np.bincount(unit, minlength=units)
    flat_x, flat_y = _is_flat(x, unit, units), _is_flat(y, unit, units)
    why = np.select([size < 2, flat_x & flat_y, flat_x, flat_y], [1, 4, 2, 3], 0)
    if measure == "pearson":
        endless = np.bincount(unit, ~(np.isfinite(x) & np.isfinite(y)), minlength=units) > 0
        why = np.where((why == 0) & endless, 5, why)
    values = np.full(units, np.nan)
    good = why[unit] == 0
    if good.any():
        names, inner = np.unique(unit[good], return_inverse=True)
        values[names] = _correlations(x[good], y[good], inner.reshape(-1), len(names), measure)
    return values, why.astype(np.int64), size.astype(np.int64)


def _is_flat(x: Floats, unit: Ints, units: int) -> npt.NDArray[np.bool_]:
    first = np.zeros(units)
    first[unit[::-1]] = x[::-1]
    return np.asarray(np.bincount(unit, x != first[unit], minlength=units) == 0)


def _correlations(x: Floats, y: Floats, unit: Ints, units: int, measure: Measure) -> Floats:
    if measure in ("kendall", "kendall-c"):
        return _kendall(x, y, unit, units, c=measure == "kendall-c")
    if measure == "spearman":
        x, y = _ranks(x, unit), _ranks(y, unit)
    size = np.bincount(unit, minlength=units)
    a, b = (v - (np.bincount(unit, v, minlength=units) / size)[unit] for v in (x, y))
    ab, aa, bb = (np.bincount(unit, v, minlength=units) for v in (a * b, a * a, b * b))
    return np.asarray(np.clip(ab / np.sqrt(aa * bb), -1, 1))


def _ranks(x: Floats, unit: Ints) -> Floats:
    """Ranks within the query up to a constant per query; equal values share theirs."""
    order = np.lexsort((x, unit))
    new = np.append(True, (x[order][1:] != x[order][:-1]) | (unit[order][1:] != unit[order][:-1]))
    kind = np.cumsum(new) - 1
    count = np.bincount(kind)
    found = np.empty(len(x))
    found[order] = (np.cumsum(count) - count / 2)[kind]
    return found


def _kendall(x: Floats, y: Floats, unit: Ints, units: int, *, c: bool) -> Floats:
    """Compare all row pairs of a query, doing queries of the same size at once."""
    found = np.empty(units)
    size = np.bincount(unit, minlength=units)
    start = np.cumsum(size) - size
    x, y = _ranks(x, unit), _ranks(y, unit)
    for m in np.unique(size):
        same = np.flatnonzero(size == m)
        step = max(1, CHUNK // int(m * m))
        for low in range(0, len(same), step):
            some = same[low : low + step]
            rows = start[some][:, None] + np.arange(m)
            found[some] = _kendall_rows(x[rows], y[rows], c)
    return found


def _kendall_rows(x: Floats, y: Floats, c: bool) -> Floats:
    """Kendall's τ of each row of two arrays."""
    m = x.shape[1]
    of_x, of_y = (np.sign(v[:, :, None] - v[:, None, :]).astype(np.int8) for v in (x, y))
    net = (of_x * of_y).sum(axis=(1, 2), dtype=np.float64)
    if not c:
        pairs = [(np.abs(v)).sum(axis=(1, 2), dtype=np.float64) for v in (of_x, of_y)]
        return np.asarray(np.clip(net / np.sqrt(pairs[0] * pairs[1]), -1, 1))
    kinds = [1 + (np.diff(np.sort(v, axis=1), axis=1) != 0).sum(axis=1) for v in (x, y)]
    least = np.minimum(kinds[0], kinds[1])
    return np.asarray(np.clip(net * least / (m**2 * (least - 1)), -1, 1))
