"""A ratio of sums, such as F1 or a weighted share, with an interval over groups."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ragworth.stats.estimate import Estimate, Resampling
from ragworth.stats.resampling import resample_counts, share_interval, unit_numbers

Floats = npt.NDArray[np.float64]
CHUNK = 256
"""Resamples whose counts are held at a time."""


def ratio_estimate(above: Floats, below: Floats, groups: npt.ArrayLike, plan: Resampling, nothing: str) -> Estimate:
    """Σ above / Σ below, with a bootstrap interval over groups of rows. Without rows, ``nothing`` is the reason."""
    if not len(above) or not below.sum():
        return Estimate(reason=nothing)
    units = unit_numbers(groups, len(above))
    sums = np.zeros((int(units.max()) + 1, 2))
    np.add.at(sums, units, np.column_stack([above, below]))
    draws = np.concatenate([n @ sums for n in resample_counts(len(sums), plan.resamples, plan.seed, CHUNK)])
    shares = np.divide(draws[:, 0], draws[:, 1], out=np.full(len(draws), np.nan), where=draws[:, 1] > 0)
    low, high = share_interval(shares, len(sums), plan.level) or (None, None)
    return Estimate(float(above.sum() / below.sum()), low, high, n=len(above))
