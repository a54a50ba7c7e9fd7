"""What a paired test can say: the smallest p it can have, and whether it points the same way as the mean."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from ragworth.stats.clustered import Clusters, cluster_index, tested_numbers
from ragworth.stats.power import SIGN_FLIPS

Floats = npt.NDArray[np.float64]

LEAST_RESAMPLES = 10_000
"""Resamples of a test, unless Holm's correction needs more."""

COUNTED = {"randomisation": 1, "bootstrap": 1, "bounded": 2}
"""Tests by resampling, and the numerator of their smallest p."""

DIGITS = 12
"""Decimals after which differences count as equal."""


def smallest_p(test: str, n: int, resamples: int) -> float:
    """Smallest p of a test of ``n`` differences: signs can be flipped in 2ⁿ ways, and resamples are limited too."""
    flips = 2.0 ** (1 - n) if test in SIGN_FLIPS else 0.0
    return min(1.0, max(flips, COUNTED.get(test, 0) / (resamples + 1)))


def enough_resamples(tests: int, alpha: float) -> int:
    """Resamples with which p can be half of ``alpha`` after Holm's correction for so many tests."""
    return max(LEAST_RESAMPLES, math.ceil(2 * tests / alpha))


def opposes_mean(differences: Floats, test: str, clusters: Clusters = None) -> bool:
    """Whether a test of signs or ranks points the other way than the mean difference.

    A system that is a little better for most queries and far worse for some has a lower mean, but the sign test finds
    it better. The other tests are of the mean itself.
    """
    if test not in ("sign", "wilcoxon"):
        return False
    from scipy.stats import rankdata

    mean = float(np.nansum(differences))
    if (group := cluster_index(clusters, len(differences))) is not None:
        differences = tested_numbers(differences, group, test)
    rounded = np.round(differences[~np.isnan(differences)], DIGITS)
    moved = rounded[rounded != 0]
    weights = rankdata(np.abs(moved)) if test == "wilcoxon" else np.ones(len(moved))
    return float(np.sign(moved) @ weights) * mean < 0
