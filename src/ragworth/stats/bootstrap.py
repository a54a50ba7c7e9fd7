"""Bootstrap intervals of means over queries, which may come in clusters, such as the turns of conversations.

Units of one cluster aren't independent, so whole clusters are drawn. Estimates stay those over units. The interval of a
mean is that over one number for each cluster with the same mean (the linearised ratio), and a test takes one number for
each cluster too. An unseen cluster, where intervals allow for one, has average size. Fewer than five clusters have no
interval: resampled, it could only span their own means, and would cover far too rarely.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ragworth.core.resources import map_threads
from ragworth.stats.range_intervals import (
    LARGE,
    Bounds,
    direct_interval,
    expanded_tail,
    normal_quantile,
    possible_means,
)
from ragworth.stats.resampling import ConfidenceInterval, unit_numbers

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

Clusters = npt.ArrayLike | None
"""The cluster of each unit; None if all units are independent."""

FEWEST_CLUSTERS: Final = 5
FEW_CLUSTERS = f"fewer than {FEWEST_CLUSTERS} conversations, so no interval"

SIGNED = ("randomisation", "wilcoxon", "sign")
"""Tests that flip signs: of the sum of each cluster, because sums are what is symmetric around 0."""


def cluster_index(clusters: Clusters, size: int) -> Ints | None:
    """The number of each unit's cluster, from 0; None if every unit is a cluster of its own."""
    if clusters is None:
        return None
    group = unit_numbers(clusters, size)
    return None if not size or int(group.max()) + 1 == size else group


def cluster_means(values: Floats, group: Ints) -> Floats:
    """One number for each cluster and column (units × columns); its mean is the column's mean over units.

    The spread of these numbers is that of the mean if whole clusters are drawn, whatever their sizes. NaN for clusters
    without a value.
    """
    return np.stack([_linearised(column, group) for column in values.T], axis=1)


def tested_numbers(differences: Floats, group: Ints, test: str) -> Floats:
    """What a paired test takes from each cluster: a sum if it flips signs, else a number as for the interval."""
    there = ~np.isnan(differences)
    if test in SIGNED:
        return np.asarray(np.bincount(group[there], differences[there]), dtype=np.float64)
    numbers = _linearised(differences, group)
    return numbers[~np.isnan(numbers)]


def count_clusters(values: Floats, group: Ints) -> Ints:
    """How many clusters have a value, for each column."""
    return np.array([len(np.unique(group[~np.isnan(column)])) for column in values.T], dtype=np.int64)


def too_few_clusters(values: Floats, group: Ints) -> npt.NDArray[np.bool_]:
    """Which columns have several units of a cluster, and values of too few clusters for an interval."""
    clusters = count_clusters(values, group)
    return np.asarray((clusters < FEWEST_CLUSTERS) & (clusters < (~np.isnan(values)).sum(axis=0)))


def _linearised(values: Floats, group: Ints) -> Floats:
    there = ~np.isnan(values)
    known, mine = values[there], group[there]
    sizes = np.bincount(mine, minlength=int(group.max()) + 1)
    if not len(known):
        return np.full(len(sizes), np.nan)
    mean = float(known.mean())
    numbers = mean + np.bincount(mine, known - mean, minlength=len(sizes)) * (sizes > 0).sum() / len(known)
    return np.where(sizes > 0, numbers, np.nan)


CHUNK = 1 << 17
"""Random numbers drawn at a time, few enough to stay in the CPU cache."""

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
    step = max(1, CHUNK // max(n, 1))
    sizes = (min(step, resamples - low) for low in range(0, resamples, step))

    def average(drawn: npt.NDArray[np.int32]) -> Floats:
        some = len(drawn)
        drawn += (np.arange(some, dtype=np.int32) * n)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=some * n).reshape(some, n).astype(np.float64)
        total = n if whole else counts @ there.astype(np.float64)
        with np.errstate(invalid="ignore"):
            return np.asarray(counts @ filled / total)

    # This thread draws, in a fixed order, and others count.
    drawn = (rng.integers(0, n, size=(some, n), dtype=np.int32) for some in sizes)
    return np.concatenate([np.empty((0, columns)), *map_threads(average, drawn)])


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
    normal data (Hesterberg 2015). Columns of more than :data:`LARGE` observations aren't resampled: their interval is
    the limit of resampling.

    ``bounds`` are the lowest and highest possible value of an observation. Shares, columns in which few values differ,
    and those with fewer than five get other intervals (:mod:`ragworth.stats.range_intervals`); without bounds, the
    latter two have none. No interval has length 0. None leaves the bounds, nor 0 to 1 if all values are between them.

    ``clusters`` has the cluster of each row, if rows aren't independent: whole clusters are drawn
    (:mod:`ragworth.stats.bootstrap`), and the interval stays within the bounds.
    """
    each = [bounds] * values.shape[1]
    return column_intervals(values, each, level=level, resamples=resamples, seed=seed, clusters=clusters)


def column_intervals(
    values: Floats,
    bounds: Sequence[Bounds | None],
    *,
    level: float,
    resamples: int,
    seed: int,
    clusters: Clusters = None,
) -> MeanIntervals:
    """:func:`mean_intervals` of columns with different bounds; all columns share one set of resamples."""
    if (group := cluster_index(clusters, len(values))) is not None:
        numbers = cluster_means(values, group)
        found = column_intervals(numbers, bounds, level=level, resamples=resamples, seed=seed)
        few = too_few_clusters(values, group)
        possible = [possible_means(values[:, column], each) for column, each in enumerate(bounds)]
        lowest, highest = np.array(possible, dtype=np.float64).reshape(-1, 2).T
        return MeanIntervals(*(np.clip(np.where(few, np.nan, end), lowest, highest) for end in found))
    ends = np.full((values.shape[1], 2), np.nan)
    resampled: list[int] = []
    for column in np.flatnonzero((~np.isnan(values)).sum(axis=0) > 1).tolist():
        seen = _known(values[:, column])
        special = direct_interval(seen, bounds[column], level, resamples, seed)
        if special is not None:
            ends[column] = special
        elif len(values) <= LARGE:
            resampled.append(column)
        else:  # a column with few of many rows is resampled without the others
            tail = expanded_tail(len(seen), level)
            if len(seen) > LARGE:
                limits = normal_limits(seen, tail)
            else:
                limits = _quantiles(bootstrap_means(seen[:, None], resamples, seed), tail)[:, 0]
            ends[column] = np.clip(limits, seen.min(), seen.max())
    for low in range(0, len(resampled), COLUMNS):
        block = np.array(resampled[low : low + COLUMNS])
        chosen = values[:, block]
        means, counts = bootstrap_means(chosen, resamples, seed), (~np.isnan(chosen)).sum(axis=0)
        for n in np.unique(counts).tolist():
            same = counts == n
            limits = _quantiles(means[:, same], expanded_tail(n, level))
            # Linear interpolation between equal numbers can miss them by a rounding error.
            least, most = np.nanmin(chosen[:, same], axis=0), np.nanmax(chosen[:, same], axis=0)
            ends[block[same]] = np.clip(limits, least, most).T
    return MeanIntervals(ends[:, 0], ends[:, 1])


def normal_limits(sample: Floats, tail: float) -> Floats:
    """Lower and upper ``tail`` quantiles of the bootstrap distribution of a large sample's mean, in the limit.

    The first terms of its Cornish–Fisher expansion, z + γ(z² − 1)/6 standard errors from the mean, where γ is the
    skewness of the resampled mean.
    """
    n, mean = len(sample), float(sample.mean())
    deviations = sample - mean
    square = float(deviations @ deviations) / n
    if square == 0:
        return np.array([mean, mean])
    skewness = float(deviations**2 @ deviations) / n / square**1.5 / np.sqrt(n)
    z = normal_quantile(tail)
    ends: Floats = mean + np.sqrt(square / n) * (np.array([z, -z]) + skewness * (z * z - 1) / 6)
    return ends


def _known(column: Floats) -> Floats:
    return column[~np.isnan(column)]


def _quantiles(means: Floats, tail: float) -> Floats:
    """Lower and upper quantile of each column (2 × columns)."""
    quantile = np.nanquantile if np.isnan(means).any() else np.quantile  # which is several times as fast
    return np.asarray(quantile(means, [tail, 1 - tail], axis=0, method="linear"))
