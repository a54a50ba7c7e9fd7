"""Power of a paired test, and the smallest p that it can have.

Uses Student's two-sided paired t-test with its exact (noncentral) distribution. Other tests of a mean difference have
nearly the same power; the sign test has less.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ragworth.stats.bootstrap import FEWEST_CLUSTERS, Clusters, cluster_index, tested_numbers, too_few_clusters
from ragworth.stats.range_intervals import is_constant

SIGN_FLIPS = ("randomisation", "wilcoxon", "sign")
"""Tests whose p is a share of the 2ⁿ ways to flip the signs of n differences, at least 2 of them."""

LEAST_RESAMPLES = 10_000
"""Resamples of a test, unless Holm's correction needs more."""

COUNTED = {"randomisation": 1, "bootstrap": 1, "bounded": 2}
"""Tests by resampling, and the numerator of their smallest p."""

MOST = 10**9
"""Largest number of queries considered."""

FEW = "there are fewer than two differences"
FEW_UNITS = f"there are fewer than {FEWEST_CLUSTERS} conversations"
FLAT = "the differences do not vary"
HOPELESS = "by this test, this few queries can't show any difference"
LAX = "at this level a test finds a difference that often where there is none"


class DetectableDifference(NamedTuple):
    """The smallest true difference that a comparison can show, or why it is undefined.

    Attributes
    ----------
    value: true mean difference found with the requested power, or None.
    reason: why it is undefined, or empty.
    spread: standard deviation of the differences, or of one number for each cluster; None for fewer than two.
    n: number of differences, or of clusters.
    missing: NaN differences; they are left out.
    """

    value: float | None
    reason: str
    spread: float | None
    n: int
    missing: int


def t_test_power(difference: float, spread: float, n: int, *, alpha: float = 0.05) -> float:
    """Probability that ``n`` queries show a true mean difference as significant.

    ``spread`` is the standard deviation of the differences. Fewer than two queries show nothing (0).
    """
    from scipy.special import nctdtr, stdtrit

    _check(alpha=alpha, spread=spread)
    if n < 2:
        return 0.0
    shift = abs(difference) / spread * math.sqrt(n)
    bound = float(stdtrit(n - 1, 1 - alpha / 2))
    far, other = 1 - float(nctdtr(n - 1, shift, bound)), float(nctdtr(n - 1, shift, -bound))
    if math.isnan(far):  # so far out that the function fails
        return 1.0
    return min(1.0, far + (0.0 if math.isnan(other) else other))


def detectable_difference(
    differences: npt.ArrayLike, *, test: str = "t", alpha: float = 0.05, chance: float = 0.8, clusters: Clusters = None
) -> DetectableDifference:
    """Smallest true mean difference that this many queries, spread like these, show with probability ``chance``.

    With ``clusters``, the cluster of each difference, it is what this many clusters show; fewer than five show too
    little of their spread. Five differences or fewer are never significant at 0.05 by a ``test`` that flips signs.

    The only formula for this number: comparisons and studies use it. It solves the exact power of the t-test. The
    usual sum of two t quantiles is too small for few queries: the power it promises as 0.8 is 0.73 for two.
    """
    given = np.asarray(differences, dtype=np.float64)
    known, missing = given[~np.isnan(given)], int(np.isnan(given).sum())
    group = cluster_index(clusters, len(given))
    if group is not None:
        known = tested_numbers(given, group, "t")
        if too_few_clusters(given[:, None], group)[0]:
            return DetectableDifference(None, FEW_UNITS, None, len(known), missing)
    n = len(known)
    if n < 2:
        return DetectableDifference(None, FEW, None, n, missing)
    if is_constant(known):
        return DetectableDifference(None, FLAT, 0.0, n, missing)
    spread = float(known.std(ddof=1))
    if alpha >= chance:
        return DetectableDifference(None, LAX, spread, n, missing)
    if test in SIGN_FLIPS and 2.0 ** (1 - n) >= alpha:
        return DetectableDifference(None, HOPELESS, spread, n, missing)
    _check(alpha=alpha, spread=spread, chance=chance)
    return DetectableDifference(spread * _detectable_effect(n, alpha, chance), "", spread, n, missing)


def smallest_enough(enough: Callable[[int], bool]) -> int | None:
    """Smallest number that is enough, if every larger one is too; None beyond a billion."""
    low, high = 0, 1
    while not enough(high):
        low, high = high, 2 * high
        if low > MOST:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


@cache
def _detectable_effect(n: int, alpha: float, chance: float) -> float:
    """The difference in standard deviations, by bisection: scipy.optimize takes longer to import than this to run."""
    low, high = 0.0, 1.0
    while t_test_power(high, 1.0, n, alpha=alpha) < chance:
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if t_test_power(middle, 1.0, n, alpha=alpha) < chance else (low, middle)
    return high


def _check(*, alpha: float, spread: float, chance: float = 0.8) -> None:
    if not 0 < alpha < 1:
        raise ValueError(f"alpha={alpha} is not between 0 and 1")
    if not alpha < chance < 1:
        raise ValueError(f"chance={chance} is not between alpha={alpha} and 1")
    if not spread > 0:
        raise ValueError(f"spread={spread} is not above 0")


def smallest_p(test: str, n: int, resamples: int) -> float:
    """Smallest p of a test of ``n`` differences: signs can be flipped in 2ⁿ ways, and resamples are limited too."""
    flips = 2.0 ** (1 - n) if test in SIGN_FLIPS else 0.0
    return min(1.0, max(flips, COUNTED.get(test, 0) / (resamples + 1)))


def enough_resamples(tests: int, alpha: float) -> int:
    """Resamples with which p can be half of ``alpha`` after Holm's correction for so many tests."""
    return max(LEAST_RESAMPLES, math.ceil(2 * tests / alpha))
