"""Bootstrap intervals of means over queries."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ragworth.stats.clustered import Clusters, cluster_index, cluster_means, too_few_clusters
from ragworth.stats.large_samples import LARGE, bootstrap_quantiles
from ragworth.stats.range_intervals import Bounds, direct_interval
from ragworth.stats.resampling import ConfidenceInterval

Floats = npt.NDArray[np.float64]

CHUNK = 1 << 22
"""Random numbers drawn at a time."""

COLUMNS = 256
"""Columns resampled at a time; each group of columns draws the same rows."""


class MeanIntervals(NamedTuple):
    """Lower and upper ends; NaN for fewer than two observations, or if too few of them differ."""

    low: Floats
    high: Floats

    def spans(self) -> list[ConfidenceInterval | None]:
        """One interval per column, or None."""
        return [
            None if np.isnan(low) else ConfidenceInterval(float(low), float(high))
            for low, high in zip(self.low, self.high, strict=True)
        ]


def bootstrap_means(values: Floats, resamples: int, seed: int) -> Floats:
    """Means of resampled rows: (resamples × columns). Columns share the resampled rows.

    ``values`` is (observations × columns) with NaN for missing observations. A resample without observations of a
    column gives NaN.
    """
    n, columns = values.shape
    rng = np.random.default_rng(seed)
    there = ~np.isnan(values)
    filled = np.where(there, values, 0.0)
    whole = bool(there.all())
    means = np.empty((resamples, columns))
    step = max(1, CHUNK // max(n, 1))
    for low in range(0, resamples, step):
        high = min(low + step, resamples)
        drawn = rng.integers(0, n, size=(high - low, n), dtype=np.int32)
        drawn += (np.arange(high - low, dtype=np.int32) * n)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=(high - low) * n).reshape(high - low, n).astype(np.float64)
        total = n if whole else counts @ there.astype(np.float64)
        with np.errstate(invalid="ignore"):
            means[low:high] = counts @ filled / total
    return means


def mean_intervals(
    values: Floats,
    *,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
    bounds: Bounds | None = None,
    clusters: Clusters = None,
) -> MeanIntervals:
    """Interval of each column's mean: expanded percentile bootstrap over rows.

    The percentile interval is too short for few observations; its levels are widened so that it equals Student's for
    normal data (Hesterberg 2015). A column with fewer than two observations has no interval. Columns of more than
    :data:`LARGE` observations aren't resampled: their interval is the limit of resampling.

    ``bounds`` are the lowest and highest possible value of an observation. Shares, and columns in which few values
    differ, get other intervals (:mod:`ragworth.stats.range_intervals`); without bounds, a column in which fewer
    than five values differ from all others has none. No interval has length 0.

    ``clusters`` has the cluster of each row, if rows aren't independent: whole clusters are drawn
    (:mod:`ragworth.stats.clustered`), and the interval stays within the bounds.
    """
    from scipy.special import ndtr, stdtrit

    if (group := cluster_index(clusters, len(values))) is not None:
        numbers = cluster_means(values, group)
        found = mean_intervals(numbers, level=level, resamples=resamples, seed=seed, bounds=bounds)
        within = [np.where(too_few_clusters(values, group), np.nan, each) for each in found]
        return MeanIntervals(*(within if bounds is None else (np.clip(each, *bounds) for each in within)))
    low, high = np.full(values.shape[1], np.nan), np.full(values.shape[1], np.nan)
    count = (~np.isnan(values)).sum(axis=0)
    enough = np.flatnonzero(count > 1)
    large, block = len(values) > LARGE, -1
    for place, column in enumerate(enough):
        n = int(count[column])
        tail = float(ndtr(-stdtrit(n - 1, 0.5 + level / 2) * np.sqrt(n / (n - 1))))
        seen = values[:, column]
        seen = seen[~np.isnan(seen)]
        special = direct_interval(seen, bounds, level, resamples, seed)
        if special is not None:
            low[column], high[column] = special
            continue
        if n > LARGE:
            ends = bootstrap_quantiles(seen, tail, resamples, seed)
        elif large:  # a column with few of many rows is resampled without the others
            ends = _quantiles(bootstrap_means(seen[:, None], resamples, seed)[:, 0], tail)
        else:
            if block != place // COLUMNS:
                block = place // COLUMNS
                means = bootstrap_means(values[:, enough[block * COLUMNS :][:COLUMNS]], resamples, seed)
            ends = _quantiles(means[:, place % COLUMNS], tail)
        # Linear interpolation between equal numbers can miss them by a rounding error.
        low[column], high[column] = np.clip(ends, seen.min(), seen.max())
    return MeanIntervals(low, high)


def _quantiles(means: Floats, tail: float) -> tuple[float, float]:
    low, high = np.nanquantile(means, [tail, 1 - tail], method="linear")
    return float(low), float(high)
