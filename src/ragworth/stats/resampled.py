"""Intervals of any statistic from its values in bootstrap resamples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Span(NamedTuple):
    """Lower and upper end of the interval of one number."""

    low: float
    high: float


def expanded(draws: Floats, n: int, level: float) -> Span | None:
    """The expanded percentile interval of a statistic over ``n`` independent units, as for means.

    Resamples in which the statistic is not defined (NaN) are passed over. One unit, or none, has no interval, nor has
    a statistic that no resample defines.
    """
    from scipy.special import ndtr, stdtrit

    draws = draws[~np.isnan(draws)]
    if n < 2 or not len(draws):
        return None
    tail = float(ndtr(-stdtrit(n - 1, 0.5 + level / 2) * np.sqrt(n / (n - 1))))
    low, high = np.quantile(draws, [tail, 1 - tail], method="linear")
    # Linear interpolation between equal numbers can leave them by a rounding error.
    return Span(float(np.clip(low, draws.min(), draws.max())), float(np.clip(high, draws.min(), draws.max())))


def resample_counts(units: int, resamples: int, seed: int, rows: int) -> Iterator[Floats]:
    """How often each unit was drawn in each resample: (resamples × units), at most ``rows`` resamples at a time."""
    rng = np.random.default_rng(seed)
    for low in range(0, resamples, rows):
        size = min(rows, resamples - low)
        drawn = rng.integers(0, units, size=(size, units)) + (np.arange(size) * units)[:, None]
        yield np.bincount(drawn.ravel(), minlength=size * units).reshape(size, units).astype(np.float64)


def numbered(units: npt.ArrayLike | None, size: int) -> Ints:
    """Each of ``size`` rows with the number of its unit; without units every row is one of its own."""
    if units is None:
        return np.arange(size)
    given = np.asarray(units)
    if given.shape != (size,):
        raise ValueError(f"{given.shape} groups for {size} values")
    return np.unique(given, return_inverse=True)[1].astype(np.int64).reshape(-1)
