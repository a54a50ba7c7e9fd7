"""Tests of paired differences: is the mean difference over queries further from 0 than chance would have it?

All are two-sided. With no difference anywhere p is 1. A p-value is never 0: resampling tests count the
observed data among the resamples, the others are bounded below by the smallest positive number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
import numpy.typing as npt

from ragworth.stats.intervals import bootstrap_means

Floats = npt.NDArray[np.float64]
Test = Literal["randomisation", "t", "wilcoxon", "sign", "bootstrap"]

CHUNK = 1 << 22
SMALLEST = float(np.finfo(np.float64).tiny)


def randomisation(differences: Floats, *, resamples: int = 10_000, seed: int = 0) -> float:
    """Fisher's randomisation test of the mean: signs of the differences flipped at random.

    When there are no more ways to flip them than ``resamples``, all are tried and p is exact.
    """
    moved = differences[differences != 0]
    n = len(moved)
    if n == 0:
        return 1.0
    # Sums that are equal in exact arithmetic must count as equal.
    observed = abs(moved.sum()) - 1e-10 * np.abs(moved).sum()
    if n < 60 and 2**n <= resamples:
        signs = 1.0 - 2.0 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
        return float((np.abs(signs @ moved) >= observed).mean())
    rng = np.random.default_rng(seed)
    extreme = 0
    step = max(1, CHUNK // n)
    for low in range(0, resamples, step):
        rows = min(step, resamples - low)
        flips = np.unpackbits(rng.integers(0, 256, size=(rows, (n + 7) // 8), dtype=np.uint8), axis=1, count=n)
        sums = moved.sum() - 2.0 * (flips.astype(np.float64) @ moved)
        extreme += int((np.abs(sums) >= observed).sum())
    return (extreme + 1) / (resamples + 1)


def constant(values: Floats) -> bool:
    """Whether all values are equal but for rounding."""
    return float(np.ptp(values)) <= 1e-12 * float(np.abs(values).max(initial=0.0))


def t(differences: Floats, *, resamples: int = 0, seed: int = 0) -> float:
    """Student's paired t-test."""
    from scipy.special import stdtr

    n = len(differences)
    if n < 2 or not differences.any():
        return 1.0
    if constant(differences):
        return randomisation(differences)  # no spread, no t: only the signs can speak
    statistic = abs(differences.mean()) / (differences.std(ddof=1) / np.sqrt(n))
    return max(float(2 * stdtr(n - 1, -statistic)), SMALLEST)


def wilcoxon(differences: Floats, *, resamples: int = 0, seed: int = 0) -> float:
    """Wilcoxon's signed-rank test; queries without a difference are left out."""
    from scipy import stats

    moved = differences[differences != 0]
    if not len(moved):
        return 1.0
    tied = len(np.unique(np.abs(moved))) < len(moved)
    method = "approx" if tied or len(moved) > 50 else "exact"
    return float(np.clip(stats.wilcoxon(moved, method=method).pvalue, SMALLEST, 1.0))


def sign(differences: Floats, *, resamples: int = 0, seed: int = 0) -> float:
    """Sign test: queries without a difference are left out."""
    from scipy.special import bdtr

    moved = differences[differences != 0]
    n = len(moved)
    if n == 0:
        return 1.0
    fewer = int(min((moved > 0).sum(), (moved < 0).sum()))
    return float(np.clip(2 * bdtr(fewer, n, 0.5), SMALLEST, 1.0))


def bootstrap(differences: Floats, *, resamples: int = 10_000, seed: int = 0) -> float:
    """Bootstrap of the studentised mean, under a mean of 0."""
    n = len(differences)
    if n < 2 or not differences.any():
        return 1.0
    if constant(differences):
        return randomisation(differences, resamples=resamples, seed=seed)
    spread = differences.std(ddof=1)
    centred = differences - differences.mean()
    both = bootstrap_means(np.stack([centred, centred**2], axis=1), resamples, seed)
    variance = np.maximum(both[:, 1] - both[:, 0] ** 2, 0) * n / (n - 1)
    observed = abs(differences.mean()) / (spread / np.sqrt(n))
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = np.abs(both[:, 0]) / np.sqrt(variance / n)
    # A resample of one repeated value is as extreme as can be, unless that value is the mean.
    drawn = np.where(variance > 0, drawn, np.where(np.abs(both[:, 0]) > 0, np.inf, 0))
    return (int((drawn >= observed * (1 - 1e-10)).sum()) + 1) / (resamples + 1)


TESTS: dict[str, Callable[..., float]] = {
    "randomisation": randomisation,
    "t": t,
    "wilcoxon": wilcoxon,
    "sign": sign,
    "bootstrap": bootstrap,
}


def holm(p_values: Floats) -> Floats:
    """Holm's correction of a family of p-values, in their order; NaN stays NaN and does not count."""
    result = np.full(len(p_values), np.nan)
    known = np.flatnonzero(~np.isnan(p_values))
    order = known[np.argsort(p_values[known], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    result[order] = np.minimum(np.maximum.accumulate(p_values[order] * factors), 1.0)
    return result


def smallest_detectable(differences: Floats, *, alpha: float = 0.05, power: float = 0.8) -> float:
    """The mean difference that as many queries, spread like these, show with the given power at level alpha.

    By Student's t for a two-sided test. NaN for fewer than two queries, and where the differences do not vary.
    """
    from scipy.special import stdtrit

    n = len(differences)
    if n < 2 or constant(differences):
        return float("nan")
    quantiles = stdtrit(n - 1, 1 - alpha / 2) + stdtrit(n - 1, power)
    return float(quantiles * differences.std(ddof=1) / np.sqrt(n))
