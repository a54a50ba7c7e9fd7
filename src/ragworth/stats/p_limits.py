"""The smallest p that a paired test can have."""

from __future__ import annotations

import math

from ragworth.stats.power import SIGN_FLIPS

LEAST_RESAMPLES = 10_000
"""Resamples of a test, unless Holm's correction needs more."""

COUNTED = {"randomisation": 1, "bootstrap": 1, "bounded": 2}
"""Tests by resampling, and the numerator of their smallest p."""


def smallest_p(test: str, n: int, resamples: int) -> float:
    """Smallest p of a test of ``n`` differences: signs can be flipped in 2ⁿ ways, and resamples are limited too."""
    flips = 2.0 ** (1 - n) if test in SIGN_FLIPS else 0.0
    return min(1.0, max(flips, COUNTED.get(test, 0) / (resamples + 1)))


def enough_resamples(tests: int, alpha: float) -> int:
    """Resamples with which p can be half of ``alpha`` after Holm's correction for so many tests."""
    return max(LEAST_RESAMPLES, math.ceil(2 * tests / alpha))
