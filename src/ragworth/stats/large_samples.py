"""Limits of resampling, for samples too large to resample value by value.

Above :data:`LARGE` observations, the bootstrap distribution of a mean, and the distribution of a sum with random
signs, are known without resampling: normal, with a correction for skewness. That holds unless a few values dominate,
as in a comparison of two systems that differ on 20 of a million queries. Then equal values are drawn together: the
count of each distinct value in a resample is one multinomial (or binomial) number. Memory and time grow with the
number of observations, not of resamples.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ragworth.stats.student import normal_cdf, normal_quantile

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

LARGE = 10_000
"""Observations above which means and tests use the limit of resampling."""

DOMINANT = 0.01
"""Largest share Σd⁴/(Σd²)² for which a sum counts as normal: that of 100 equal values among zeros."""

MAX_VALUES = 256
"""Maximum number of distinct values drawn one by one."""

CHUNK = 1 << 21
"""Maximum random numbers in memory."""


class DistinctValues(NamedTuple):
    """The distinct values of a sample and their counts; if there are many, only those farthest from the mean.

    Attributes
    ----------
    values, counts: at most :data:`MAX_VALUES` distinct values with their counts.
    rest: the other observations, none of them large, which are drawn as one normal number.
    """

    values: Floats
    counts: Ints
    rest: Floats

    @classmethod
    def of(cls, sample: Floats, mean: float) -> DistinctValues:
        values, counts = np.unique(sample, return_counts=True)
        if len(values) <= MAX_VALUES:
            return cls(values, counts, np.empty(0))
        far = np.sort(np.argpartition(-np.abs(values - mean), MAX_VALUES)[:MAX_VALUES])
        return cls(values[far], counts[far], sample[~np.isin(sample, values[far])])


def is_dominated(deviations: Floats) -> bool:
    """Whether a few deviations account for so much of the spread that their mean is far from normal."""
    squares = deviations**2
    total = float(squares.sum())
    return float(squares @ squares) > DOMINANT * total**2 if total > 0 else True


def bootstrap_quantiles(sample: Floats, tail: float, resamples: int, seed: int) -> tuple[float, float]:
    """Lower and upper ``tail`` quantiles of the bootstrap distribution of a large sample's mean.

    Uses the first terms of its Cornish–Fisher expansion, z + γ(z² − 1)/6 standard errors from the mean, where γ is
    the skewness of the resampled mean. If a few values dominate, resamples the distinct values.
    """
    mean = float(sample.mean())
    deviations = sample - mean
    if is_dominated(deviations):
        means = resampled_moments(sample, resamples, seed)[:, 0]
        low, high = np.quantile(means, [tail, 1 - tail], method="linear")
        return float(low), float(high)
    n = len(sample)
    square = float(deviations @ deviations) / n
    error = float(np.sqrt(square / n))
    skewness = float(deviations**2 @ deviations) / n / square**1.5 / np.sqrt(n)
    z = normal_quantile(tail)
    shift = skewness * (z * z - 1) / 6
    return mean + error * (z + shift), mean + error * (shift - z)


def resampled_moments(sample: Floats, resamples: int, seed: int) -> Floats:
    """Mean and mean square of each bootstrap resample of the distinct values: (resamples × 2)."""
    values, counts, rest = DistinctValues.of(sample, float(sample.mean()))
    n, (centre, square) = len(sample), (rest.mean(), (rest**2).mean()) if len(rest) else (0.0, 0.0)
    both = np.stack([np.append(values, centre), np.append(values**2, square)], axis=1)
    rng = np.random.default_rng(seed)
    moments = []
    for size in _blocks(resamples, len(both)):
        drawn = rng.multinomial(n, np.append(counts, len(rest)) / n, size=size)
        sums = drawn @ both
        if len(rest):
            sums[:, 0] += np.sqrt(drawn[:, -1]) * rest.std() * rng.normal(size=size)
        moments.append(sums / n)
    return np.concatenate(moments)


def sign_flip_p(differences: Floats, resamples: int, seed: int) -> float:
    """Two-sided p of the sum of many differences under random sign flips.

    Uses the normal limit or, if a few differences dominate, flips all differences of the same size together. At least
    1 / (resamples + 1), as if resampled.
    """
    observed = abs(float(differences.sum()))
    if not is_dominated(differences):
        p = 2 * normal_cdf(-observed / float(np.sqrt(differences @ differences)))
        return max(p, 1 / (resamples + 1))
    sizes, counts, rest = DistinctValues.of(np.abs(differences), 0.0)
    rng = np.random.default_rng(seed)
    # Sums that are equal in exact arithmetic must count as equal.
    bound = observed - 1e-10 * float(np.abs(differences).sum())
    extreme = 0
    for size in _blocks(resamples, len(sizes)):
        sums = (2 * rng.binomial(counts, 0.5, size=(size, len(sizes))) - counts) @ sizes
        if len(rest):
            sums += np.sqrt(float(rest @ rest)) * rng.normal(size=size)
        extreme += int((np.abs(sums) >= bound).sum())
    return (extreme + 1) / (resamples + 1)


def _blocks(resamples: int, columns: int) -> Iterator[int]:
    """Sizes of blocks of resamples with ``columns`` numbers each that fit :data:`CHUNK`."""
    step = max(1, CHUNK // max(columns, 1))
    for low in range(0, resamples, step):
        yield min(step, resamples - low)
