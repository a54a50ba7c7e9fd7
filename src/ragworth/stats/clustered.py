"""Units that come in clusters, such as the turns of conversations.

Units of one cluster aren't independent, so whole clusters are drawn. Estimates stay those over units. The interval of a
mean is that over one number for each cluster with the same mean (the linearised ratio), and a test takes one number for
each cluster too. An unseen cluster, where intervals allow for one, has average size. Fewer than five clusters have no
interval: resampled, it could only span their own means, and would cover far too rarely.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from ragworth.stats.resampling import unit_numbers

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
