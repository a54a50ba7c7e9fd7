"""Correlation of metrics with an outcome over all (system, query) rows, resampling whole queries.

Rows of a query aren't independent, so every interval and test here draws queries, however many rows each has; and
whole ``clusters`` of queries, if queries aren't independent either. For correlations within each query see
:mod:`ragworth.stats.within_query`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ragworth.stats.bootstrap import FEW_CLUSTERS, FEWEST_CLUSTERS, Clusters
from ragworth.stats.correlation import MEASURES, Measure, check_measure, make_resampler, missing_reason
from ragworth.stats.estimate import Estimate
from ragworth.stats.range_intervals import EQUAL
from ragworth.stats.resampling import (
    expanded_interval,
    expanded_p,
    fisher_z_interval,
    fisher_z_p,
    resample_counts,
    standard_error,
    unit_numbers,
)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

JACKKNIFED = 200
"""Number of queries up to which the jackknife is used too; with more, the bootstrap alone gives the same."""

FEW_QUERIES = f"fewer than {FEWEST_CLUSTERS} queries, so no interval"
PERFECT = "a perfect correlation has no interval"
ONE_DIFFERS = "a side has the same value in all but one query, so no interval"


def pooled_correlations(
    values: npt.ArrayLike,
    outcome: npt.ArrayLike,
    queries: npt.ArrayLike | None = None,
    *,
    measure: Measure = "spearman",
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
    clusters: Clusters = None,
) -> list[Estimate]:
    """Correlation of each column of ``values`` (rows × metrics) with ``outcome``, with its interval.

    ``queries`` gives the query of each row, by default a different one, ``clusters`` its cluster. A metric is
    correlated over the rows in which it and the outcome have a value. The interval is Student's on Fisher's scale,
    z = artanh r, with the standard error of the bootstrap over queries or, if larger, of the jackknife (for up to 200
    queries), because both are too small for few queries, the former more so. If most rows have the same value of a
    side, only the queries with other values count for its degrees of freedom. Fewer than five queries have no interval:
    it would leave out 0 too often if there is no correlation. Nor has a perfect correlation, ±1, because resampling
    can't vary it. p is that of no correlation, by the same interval. ``n`` counts rows with both values, ``counts``
    their queries.
    """
    rows = PooledRows.of(values, outcome, queries, measure, clusters)
    wanted = [_ColumnSelection(column, rows.there(column)) for column in range(rows.values.shape[1])]
    return [
        _pooled_correlation(made, len(rows.outcome), level)
        for made in _resample(rows, wanted, measure, resamples, seed)
    ]


def pooled_gaps(
    values: npt.ArrayLike,
    outcome: npt.ArrayLike,
    queries: npt.ArrayLike | None = None,
    *,
    pairs: Sequence[tuple[int, int]],
    measure: Measure = "spearman",
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
    clusters: Clusters = None,
) -> list[Estimate]:
    """Difference between two metrics' correlations with the same outcome, for each of ``pairs`` of columns.

    Paired bootstrap over queries: both correlations use the same resamples and the rows that both metrics have, so
    shared variation cancels out. Interval and p are of the expanded percentile bootstrap: p is 1 − the level at which
    the interval first contains 0. If most rows have the same value of a side, only the queries with other values
    count for both. ``n`` counts rows that have all three values, ``counts`` their queries.
    """
    rows = PooledRows.of(values, outcome, queries, measure, clusters)
    wanted = [_ColumnSelection(column, rows.there(*pair)) for pair in pairs for column in pair]
    made = _resample(rows, wanted, measure, resamples, seed)
    return [_gap(first, second, level) for first, second in zip(made[::2], made[1::2], strict=True)]


class PooledRows(NamedTuple):
    """Checked input: values (rows × metrics), outcome, and the numbers of each row's query and of its cluster.

    Without clusters, a query is its own.
    """

    values: Floats
    outcome: Floats
    unit: Ints
    cluster: Ints

    @classmethod
    def of(
        cls,
        values: npt.ArrayLike,
        outcome: npt.ArrayLike,
        queries: npt.ArrayLike | None,
        measure: str,
        clusters: Clusters = None,
    ) -> PooledRows:
        check_measure(measure)
        y = np.asarray(outcome, dtype=np.float64)
        x = np.asarray(values, dtype=np.float64)
        x = x[:, None] if x.ndim == 1 else x
        if y.ndim != 1 or x.ndim != 2 or len(x) != len(y):
            raise ValueError(f"{x.shape} values with an outcome of {y.shape}; rows × metrics and rows are needed")
        unit = unit_numbers(queries, len(y))
        return cls(x, y, unit, unit if clusters is None else unit_numbers(clusters, len(y)))

    def there(self, *columns: int) -> Bools:
        """Where these metrics and the outcome have a value."""
        return ~(np.isnan(self.outcome) | np.isnan(self.values[:, columns]).any(axis=1))


class _ColumnSelection(NamedTuple):
    """A metric over some of the rows."""

    column: int
    there: Bools


class _ResampledCorrelation(NamedTuple):
    """A correlation or why it is undefined, its values in the resamples, and with each unit left out in turn.

    ``units`` counts what is drawn: queries, or clusters of them; ``differing`` those on which the values rest.
    """

    value: float | None
    reason: str
    draws: Floats
    left_out: Floats
    n: int
    queries: int
    units: int
    differing: int

    @property
    def clusters(self) -> int | None:
        return None if self.units == self.queries else self.units

    @property
    def counted(self) -> Estimate:
        """What it is from: rows, queries and their clusters; without a value."""
        return Estimate(n=self.n, reason=self.reason, counts={"queries": self.queries}, clusters=self.clusters)


def _resample(
    rows: PooledRows, wanted: Sequence[_ColumnSelection], measure: Measure, resamples: int, seed: int
) -> list[_ResampledCorrelation]:
    """Resample all metrics that have the same rows together."""
    groups: dict[bytes, dict[int, _ResampledCorrelation]] = {}
    for _, there in wanted:
        groups.setdefault(there.tobytes(), {})
    for key, made in groups.items():
        same = [one for one in wanted if one.there.tobytes() == key]
        columns = sorted({one.column for one in same})
        made.update(
            zip(columns, _resample_columns(rows, columns, same[0].there, measure, resamples, seed), strict=True)
        )
    return [groups[there.tobytes()][column] for column, there in wanted]


def _resample_columns(
    rows: PooledRows, columns: list[int], there: Bools, measure: Measure, resamples: int, seed: int
) -> list[_ResampledCorrelation]:
    y, x = rows.outcome[there], rows.values[there][:, columns]
    queries = len(np.unique(rows.unit[there]))
    unit = np.unique(rows.cluster[there], return_inverse=True)[1].reshape(-1)
    units = int(unit.max(initial=-1)) + 1
    reasons = [missing_reason(column, y, measure, ("the metric", "the outcome")) for column in x.T]
    good = [place for place, reason in enumerate(reasons) if not reason]
    draws, left_out = np.empty((0, len(columns))), np.empty((0, len(columns)))
    if good and units > 1:
        maker = make_resampler(measure, x[:, good], y, unit)
        draws = np.full((resamples, len(columns)), np.nan)
        draws[:, good] = maker.over(lambda block: resample_counts(units, resamples, seed, block))
        if units <= JACKKNIFED:
            left_out = np.full((units, len(columns)), np.nan)
            left_out[:, good] = maker.of(1.0 - np.eye(units))
    return [
        _ResampledCorrelation(
            None if reason else MEASURES[measure](x[:, place], y),
            reason,
            draws[:, place],
            left_out[:, place],
            len(y),
            queries,
            units,
            min(differing_units(side, unit) for side in (x[:, place], y)),
        )
        for place, reason in enumerate(reasons)
    ]


def differing_units(values: Floats, unit: Ints) -> int:
    """The units with a value other than the most common one, if that makes up more than half; else all units.

    An outcome with three positives among 30 queries rests on three queries, and resamples are of three.
    """
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    mostly = 2 * int(count.max(initial=0)) > len(values)
    return len(np.unique(unit[place.reshape(-1) != count.argmax()] if mostly else unit))


def _pooled_correlation(made: _ResampledCorrelation, total: int, level: float) -> Estimate:
    none = made.counted._replace(value=made.value, n_left_out=total - made.n)
    if made.value is None:
        return none
    reason, error = _unknown_spread(made), standard_error(made.draws, made.left_out)
    span = None if reason or error is None else fisher_z_interval(made.value, error, made.differing, level)
    p = None if reason or error is None else fisher_z_p(made.value, error, made.differing)
    if abs(made.value) >= 1 - EQUAL and not reason:
        # Of all orders of the units, at most this one and its reverse are as good.
        reason, p = PERFECT, 2 / math.factorial(min(made.differing, 20))
    return none._replace(reason=reason, p=p).with_interval(span)


def _gap(first: _ResampledCorrelation, second: _ResampledCorrelation, level: float) -> Estimate:
    none = first.counted._replace(reason=first.reason or second.reason)
    if first.value is None or second.value is None:
        return none
    draws = first.draws - second.draws
    none = none._replace(value=first.value - second.value, reason=_unknown_spread(first) or _unknown_spread(second))
    if none.reason:
        return none
    units = min(first.differing, second.differing)
    return none._replace(p=expanded_p(draws, units)).with_interval(expanded_interval(draws, units, level))


def _unknown_spread(made: _ResampledCorrelation) -> str:
    """Why resamples give no interval, or empty if they do."""
    if made.queries < FEWEST_CLUSTERS:
        return FEW_QUERIES
    if made.clusters is not None and made.units < FEWEST_CLUSTERS:
        return FEW_CLUSTERS
    return ONE_DIFFERS if made.differing < 2 else ""
