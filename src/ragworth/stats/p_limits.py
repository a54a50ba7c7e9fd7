"""What a paired test can say: the smallest p it can have, whether it points the same way as the mean, and whether its
sample may lack large differences that would undo the mean.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ragworth.stats.clustered import Clusters, cluster_index, tested_numbers
from ragworth.stats.power import SIGN_FLIPS
from ragworth.stats.range_intervals import Bounds

Floats = npt.NDArray[np.float64]

LEAST_RESAMPLES = 10_000
"""Resamples of a test, unless Holm's correction needs more."""

COUNTED = {"randomisation": 1, "bootstrap": 1, "bounded": 2}
"""Tests by resampling, and the numerator of their smallest p."""

DIGITS = 12
"""Decimals after which differences count as equal."""

LARGE_SHARE = 0.2
"""Share of the possible difference from which one counts as large."""


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


class UnseenReversal(NamedTuple):
    """Large differences that a sample may lack, and that would undo its mean.

    Attributes
    ----------
    seen, possible: the largest difference against the mean in the sample, and the largest possible one.
    share: the share of units with the latter that would make the mean 0.
    n: units of the sample.
    """

    seen: float
    possible: float
    share: float
    n: int


def unseen_reversal(
    differences: Floats, bounds: Bounds | None, alpha: float, clusters: Clusters = None
) -> UnseenReversal | None:
    """Whether a mean difference rests on small differences while large ones against it are possible.

    If a system gains a little for most queries and loses much for a few, a small sample may contain none of these: it
    then shows a gain that isn't there, with a short interval and a small p. None if the sample has a large difference
    in either direction, if the range is unknown, or if the sample would lack so many with a probability below
    ``alpha``.
    """
    if (group := cluster_index(clusters, len(differences))) is not None:
        differences = tested_numbers(differences, group, "bounded")
    known = differences[~np.isnan(differences)]
    mean = float(known.mean()) if len(known) else 0.0
    if bounds is None or mean == 0:
        return None
    possible = float(bounds[1] if mean < 0 else -bounds[0])
    seen = max(0.0, float((-np.sign(mean) * known).max()))
    share = abs(mean) / (abs(mean) + possible)
    large = float(np.abs(known).max()) > LARGE_SHARE * possible
    if not math.isfinite(possible) or large or (1 - share) ** len(known) < alpha:
        return None
    return UnseenReversal(seen, possible, share, len(known))
