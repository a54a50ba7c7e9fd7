"""Means and differences over units that come in clusters, such as the turns of conversations.

Units of one cluster aren't independent, so whole clusters are drawn. The estimate stays the mean over units. Its
interval is that of a mean over one number for each cluster, with the same mean (the linearised ratio); its test flips
the signs of whole clusters. Fewer than five clusters have no interval: resampled, it could only span their own means,
and would cover far too rarely.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ragworth.stats.bootstrap import mean_intervals
from ragworth.stats.estimate import Estimate, Resampling
from ragworth.stats.paired import Test, paired_p
from ragworth.stats.power import detectable_difference
from ragworth.stats.range_intervals import FEWEST, TOO_FEW, Bounds, difference_bounds
from ragworth.stats.resampling import unit_numbers

Floats = npt.NDArray[np.float64]

NOTHING = "no unit has a value"
FEW_CLUSTERS = f"there are fewer than {FEWEST} clusters, so no interval"


def clustered_mean(
    values: npt.ArrayLike, clusters: npt.ArrayLike, plan: Resampling, bounds: Bounds | None = None
) -> Estimate:
    """The mean over units, with an interval over clusters; NaN is left out. ``counts`` has the number of clusters.

    ``bounds`` are the lowest and highest possible value of a unit; the interval doesn't go beyond them.
    """
    known, group, missing = _known(np.asarray(values, dtype=np.float64), clusters)
    if not len(known):
        return Estimate(n_left_out=missing, reason=NOTHING)
    mean = float(known.mean())
    numbers = cluster_numbers(known, group, mean)
    counts = {"clusters": len(numbers)}
    if len(numbers) < FEWEST:
        return Estimate(mean, n=len(known), n_left_out=missing, reason=FEW_CLUSTERS, counts=counts)
    (interval,) = mean_intervals(numbers[:, None], **plan.options).spans()
    if interval is None:
        return Estimate(mean, n=len(known), n_left_out=missing, reason=TOO_FEW, counts=counts)
    low, high = interval if bounds is None else (max(interval[0], bounds[0]), min(interval[1], bounds[1]))
    return Estimate(mean, low, high, n=len(known), n_left_out=missing, counts=counts)


def clustered_difference(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    clusters: npt.ArrayLike,
    test: Test,
    plan: Resampling,
    bounds: Bounds | None = None,
) -> Estimate:
    """The mean of the first minus that of the second over paired units in clusters; ``bounds`` are those of both."""
    moved = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    moved = np.where(np.abs(moved) < 1e-12, 0.0, moved)
    found = clustered_mean(moved, clusters, plan, difference_bounds(bounds))
    if found.value is None:
        return found
    known, group, _ = _known(moved, clusters)
    sums = np.bincount(group, known) * (int(group.max()) + 1) / len(known)
    p = paired_p(sums, test, resamples=plan.resamples, seed=plan.seed, bounds=None)
    signs = {name: int((np.sign(known) == sign).sum()) for name, sign in (("wins", 1), ("ties", 0), ("losses", -1))}
    smallest = detectable_difference(cluster_numbers(known, group, found.value), alpha=plan.alpha).value
    return found._replace(p=p, counts={**found.counts, **signs}, detectable=smallest)


def cluster_numbers(values: Floats, group: npt.NDArray[np.int64], mean: float) -> Floats:
    """One number for each cluster, with the mean over units as their mean.

    Their spread is that of the mean if whole clusters are drawn, whatever their sizes.
    """
    clusters = int(group.max()) + 1
    return np.asarray(mean + np.bincount(group, values - mean) * clusters / len(values))


def _known(values: Floats, clusters: npt.ArrayLike) -> tuple[Floats, npt.NDArray[np.int64], int]:
    """Units with a value, the numbers of their clusters, and how many have none."""
    there = ~np.isnan(values)
    group = unit_numbers(np.asarray(clusters)[there], int(there.sum()))
    return values[there], group, int((~there).sum())
