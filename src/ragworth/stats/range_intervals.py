"""Intervals of means that resampling can't give: shares, few values, and samples in which few values differ.

A bootstrap of 20 equal values gives an interval of length 0, and that of 20 values of which two aren't 0 covers far
too rarely, because a resample can't contain unseen values. If the range of the values is known, it bounds them.

SciPy has quantiles of Student's and the normal distribution, too, but importing it takes longer than scoring a run.
Functions that need more of it import it.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt

MANY: Final = 1000
"""Degrees of freedom from which an expansion around the normal quantile is exact to rounding."""


def normal_cdf(x: float) -> float:
    """Probability that a standard normal number is at most ``x``."""
    return 0.5 * math.erfc(-x / math.sqrt(2))


def normal_quantile(p: float) -> float:
    """The number that a standard normal one is below with probability ``p``."""
    return NormalDist().inv_cdf(p)


@cache
def student_quantile(df: int, level: float) -> float:
    """The number that |T| is below with probability ``level``, for T of Student's distribution.

    Abramowitz and Stegun 26.7.3 to 26.7.5: a finite sum in θ = arctan(t/√df), solved by bisection, or an expansion in
    powers of 1/df.
    """
    if df >= MANY:
        return _expansion(df, normal_quantile(0.5 + level / 2))
    even = df % 2 == 0
    steps = np.arange(2 if even else 3, df - 1, 2, dtype=np.float64)
    terms = np.cumprod(np.append(1.0, (steps - 1) / steps))[: (df - 1 + even) // 2]
    powers = 2.0 * np.arange(len(terms))

    def within(theta: float) -> float:
        total = math.sin(theta) * float(terms @ math.cos(theta) ** powers)
        return total if even else 2 / math.pi * (theta + math.cos(theta) * total)

    low, high = 0.0, math.pi / 2
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if within(middle) < level else (low, middle)
    return math.sqrt(df) * math.tan(high)


def _expansion(df: int, z: float) -> float:
    square = z * z
    return z * (
        1
        + (square + 1) / (4 * df)
        + ((5 * square + 16) * square + 3) / (96 * df**2)
        + (((3 * square + 19) * square + 17) * square - 15) / (384 * df**3)
        + ((((79 * square + 776) * square + 1482) * square - 1920) * square - 945) / (92160 * df**4)
    )


def expanded_tail(n: int, level: float) -> float:
    """The tail of a percentile interval over ``n`` units whose level is widened to Student's (Hesterberg 2015)."""
    return normal_cdf(-student_quantile(n - 1, level) * math.sqrt(n / (n - 1)))


Floats = npt.NDArray[np.float64]
Bounds = tuple[float, float]
"""Lowest and highest possible value of an observation; may be infinite."""

LARGE = 10_000
"""Observations above which means and tests use the limit of resampling."""
MAX_VALUES = 256
"""Distinct values of a large sample up to which they get random weights."""
CHUNK = 1 << 21
"""Maximum random numbers in memory."""
FEW = 10
"""A mean isn't resampled if fewer values than this differ from the most common one."""
FEWEST = 5
"""The same if the range is unknown: with fewer, there is no interval. Fewer values than this aren't resampled either:
no resample has a mean beyond the least and the greatest of them."""
SKEWED = 0.05
"""Squared skewness of a mean above which it isn't resampled: about 20 values among zeros."""
RARE = 3
"""Successes, or failures, up to which Wilson's interval is widened."""
EQUAL = 1e-12
"""Relative difference up to which values count as equal."""

TOO_FEW = "too few values, or too few that differ, to give an interval"


def is_constant(values: Floats) -> bool:
    """Whether all values are equal up to rounding."""
    return float(np.ptp(values)) <= EQUAL * float(np.abs(values).max(initial=0.0))


def plain_wilson_interval(successes: int, n: int, level: float) -> tuple[float, float]:
    """Wilson's interval of a share, also for few successes: within 0 and 1, with a length at both ends."""
    z = normal_quantile(0.5 + level / 2)
    share, weight = successes / n, z * z / n
    centre = (share + weight / 2) / (1 + weight)
    half = z * float(np.sqrt(share * (1 - share) / n + weight / (4 * n))) / (1 + weight)
    return (0.0 if successes == 0 else centre - half), (1.0 if successes == n else centre + half)


def wilson_interval(successes: int, n: int, level: float) -> tuple[float, float]:
    """Wilson's interval of a share, widened for few successes. It has a length even if all or none succeed.

    With one to three successes, its lower end is too high, and shares of about 0.2/n are covered in 84 % instead of
    95 %. There, the end is that of a Poisson number, and the same for failures (Brown, Cai and DasGupta 2001). For 10
    to 150 observations and a level of 95 %, every share is then covered in at least 90.9 %, and shares on average in
    95 to 96 %.
    """
    low, high = plain_wilson_interval(successes, n, level)

    def end(of: int, wilsons: float) -> float:
        """Lower end for few successes; for few failures, its distance from 1."""
        if not 0 < of <= RARE:
            return wilsons
        from scipy.special import gammaincinv

        return min(wilsons, float(gammaincinv(of, 1 - level)) / n)

    return end(successes, low), 1 - end(n - successes, 1 - high)


def range_interval(sample: Floats, bounds: Bounds, level: float, resamples: int, seed: int) -> tuple[float, float]:
    """Interval of a mean from the sample and half an unseen observation at an end of its range.

    The observations get random weights (Rubin's Bayesian bootstrap). For the lower end of the interval, half an
    observation at the lowest possible value is added; for the upper end, half of one at the highest. With values of 0
    and 1, a whole one would give the interval of Clopper and Pearson, and half of one gives a shorter interval.
    """
    values, counts = np.unique(sample, return_counts=True)
    return _range_ends(values.tobytes(), tuple(counts.tolist()), bounds, level, resamples, seed)


@lru_cache(maxsize=4096)
def _range_ends(
    values: bytes, counts: tuple[int, ...], bounds: Bounds, level: float, resamples: int, seed: int
) -> tuple[float, float]:
    """The interval of distinct values with their counts. Many pairs of systems have the same few differences."""
    sums, total, unseen = _weighted_sums(np.frombuffer(values), np.array(counts), resamples, seed)
    tail = (1 - level) / 2
    low = np.quantile((sums + unseen * bounds[0]) / (total + unseen), tail)
    high = np.quantile((sums + unseen * bounds[1]) / (total + unseen), 1 - tail)
    return float(low), float(high)


def range_p(sample: Floats, bounds: Bounds, resamples: int, seed: int) -> float:
    """Two-sided p of a mean of 0: 1 − the level at which :func:`range_interval` first contains 0; never 0."""
    low, high = _widen_bounds(bounds, sample)
    if _is_mirrored(sample):  # p must not depend on the order of the sides
        sample, low, high = -sample, -high, -low
    sums, _, unseen = _weighted_sums(*np.unique(sample, return_counts=True), resamples, seed)
    beyond = min(int((sums + unseen * low <= 0).sum()), int((sums + unseen * high >= 0).sum()))
    return min(1.0, 2 * (beyond + 1) / (resamples + 1))


def _is_mirrored(sample: Floats) -> bool:
    """Whether the mean is below 0; if it is 0, whether the values below 0 come first in order of size."""
    total = float(sample.sum())
    if abs(total) > EQUAL * float(np.abs(sample).sum()):
        return total < 0
    return bool(np.sort(sample).tolist() < np.sort(-sample).tolist())


def _weighted_sums(
    values: Floats, counts: npt.NDArray[np.int64], resamples: int, seed: int
) -> tuple[Floats, Floats, Floats]:
    """Randomly weighted sums of the values, sums of the weights, and weights of half an unseen observation."""
    rng = np.random.default_rng(seed)
    unseen = rng.standard_gamma(0.5, size=resamples)
    sums, total = np.empty(resamples), np.empty(resamples)
    step = max(1, CHUNK // len(counts))
    for at in range(0, resamples, step):
        weights = rng.standard_gamma(counts, size=(min(step, resamples - at), len(counts)))
        sums[at : at + step], total[at : at + step] = weights @ values, weights.sum(axis=1)
    return sums, total, unseen


def direct_interval(
    sample: Floats, bounds: Bounds | None, level: float, resamples: int, seed: int
) -> tuple[float, float] | None:
    """Interval of a mean that shouldn't be resampled: NaN if undefined, None if it may be resampled.

    A sample of only the ends of its range is a share, and has Wilson's interval. Without known bounds, 0 and 1 count as
    the ends if both occur.
    """
    n = len(sample)
    low, high = _widen_bounds(bounds, sample) if bounds is not None else (-np.inf, np.inf)
    known = bool(np.isfinite(low) and np.isfinite(high) and low < high)
    ends = (low, high) if known else (0.0, 1.0)
    successes, failures = (int((sample == end).sum()) for end in ends[::-1])
    if successes + failures == n and (known or (successes and failures)):
        share = wilson_interval(successes, n, level)
        return ends[0] + (ends[1] - ends[0]) * share[0], ends[0] + (ends[1] - ends[0]) * share[1]
    if not known:
        return (np.nan, np.nan) if n < FEWEST or few_differ(sample, FEWEST) else None
    if n >= FEWEST and not few_differ(sample) and not _is_skewed(sample):
        return None
    if n > LARGE and len(np.unique(sample)) > MAX_VALUES:
        return None
    return range_interval(sample, (low, high), level, resamples, seed)


def few_differ(sample: Floats, few: int = FEW) -> bool:
    """Whether more than half of the values are equal, and fewer than ``few`` are not."""
    n = len(sample)
    middle = float(np.partition(sample, n // 2)[n // 2])  # a value that makes up more than half is the median
    same = int((np.abs(sample - middle) <= EQUAL * max(1.0, abs(middle))).sum())
    return 2 * same > n and n - same < few


def difference_bounds(bounds: Bounds | None) -> Bounds:
    """Bounds of the difference of two values with these bounds; infinite if they are unknown."""
    return (-np.inf, np.inf) if bounds is None else (bounds[0] - bounds[1], bounds[1] - bounds[0])


def possible_means(values: Floats, bounds: Bounds | None) -> Bounds:
    """Where an interval of a mean ends at most: at the bounds, or 0 and 1 if all known values are between them."""
    free = (0.0, 1.0) if (np.isnan(values) | ((values >= 0) & (values <= 1))).all() else (-np.inf, np.inf)
    return free if bounds is None else bounds


def _widen_bounds(bounds: Bounds, sample: Floats) -> Bounds:
    """Extend the bounds to include all observations."""
    low, high = min(bounds[0], float(sample.min())), max(bounds[1], float(sample.max()))
    return low, high


def _is_skewed(sample: Floats) -> bool:
    """Whether the mean is far from normal because of a few outliers on one side."""
    deviations = sample - sample.mean()
    square = float(deviations @ deviations)
    third = float(deviations**2 @ deviations)
    # Skewness of a mean of n: (m3 / m2^1.5) / √n, squared.
    return third**2 > SKEWED * square**3
