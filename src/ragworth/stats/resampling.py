"""Intervals of any statistic from its values in bootstrap resamples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ragworth.stats.range_intervals import EQUAL, expanded_tail, student_quantile, wilson_interval

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

CHUNK = 1 << 22
"""Maximum numbers in memory while resampling."""


class ConfidenceInterval(NamedTuple):
    """Lower and upper end of an interval."""

    low: float
    high: float


def expanded_interval(draws: Floats, n: int, level: float) -> ConfidenceInterval | None:
    """Expanded percentile interval of a statistic over ``n`` independent units, as for means.

    Resamples in which the statistic is undefined (NaN) are ignored. None for fewer than two units, if no resample
    defines the statistic, or if the interval would have length 0: resamples of three perfect agreements all agree, and
    say nothing of the next item.
    """
    draws = draws[~np.isnan(draws)]
    if n < 2 or not len(draws):
        return None
    tail = expanded_tail(n, level)
    low, high = np.quantile(draws, [tail, 1 - tail], method="linear")
    if high - low <= EQUAL * max(1.0, abs(low)):
        return None
    return ConfidenceInterval(float(low), float(high))


def share_interval(draws: Floats, n: int, level: float, trials: int | None = None) -> ConfidenceInterval | None:
    """As :func:`expanded_interval`, of a share. If it is 0 in all resamples, or 1 in all, the interval is Wilson's.

    ``trials`` is the number of units that the share is of, if not all of them.
    """
    known = draws[~np.isnan(draws)]
    for share in (0, 1):
        if n > 1 and len(known) and bool((np.abs(known - share) <= EQUAL).all()):
            number = n if trials is None else trials
            return ConfidenceInterval(*wilson_interval(share * number, number, level))
    return expanded_interval(draws, n, level)


def tau_interval(draws: Floats, n: int, level: float) -> ConfidenceInterval | None:
    """As :func:`share_interval`, of a share of pairs in the same order less that of pairs in the opposite order."""
    span = share_interval((draws + 1) / 2, n, level)
    return None if span is None else ConfidenceInterval(2 * span.low - 1, 2 * span.high - 1)


def agreement_interval(
    measure: Callable[[Floats], Floats],
    units: Floats,
    agreed: Floats,
    differing: Floats,
    *,
    resamples: int,
    level: float,
    seed: int,
) -> ConfidenceInterval | None:
    """Interval of an agreement beyond chance, from the sample and half an unseen unit, as for means of few values.

    ``measure`` computes the agreement from sums over units (ways × sums), ``units`` has these sums for each unit. Units
    get random weights (Rubin's Bayesian bootstrap). To the upper end half a unit is added in which judges agree on what
    is rare (``agreed``), to the lower end half of one in which they differ (``differing``). A bootstrap of units in
    which hardly anything is rare covers far too rarely. Callers with several items in a unit count it as the square
    root of their number: not all of them will be rare, and hardly ever just one. None for fewer than two units.
    """
    if len(units) < 2:
        return None
    rng = np.random.default_rng(seed)
    unseen, step = rng.standard_gamma(0.5, size=(resamples, 1)), max(1, CHUNK // max(units.shape))
    draws = []
    for weight in (unseen[low : low + step] for low in range(0, resamples, step)):
        sums = rng.standard_exponential((len(weight), len(units))) @ units
        draws.append(np.stack([measure(sums + weight * differing), measure(sums + weight * agreed)]))
    least, most = np.concatenate(draws, axis=1)
    tail, value = (1 - level) / 2, float(measure(units.sum(axis=0, keepdims=True))[0])
    low, high = float(np.nanquantile(least, tail)), float(np.nanquantile(most, 1 - tail))
    return ConfidenceInterval(max(-1.0, min(low, value)), max(high, value))


def expanded_p(draws: Floats, n: int) -> float | None:
    """Two-sided p of a statistic being 0: 1 − the level at which its expanded percentile interval first contains 0.

    Never 0, because the sample counts as another resample on the far side. Resamples of exactly 0 count half on either
    side. None if :func:`expanded_interval` gives no interval.
    """
    from scipy.special import ndtri, stdtr

    draws = draws[~np.isnan(draws)]
    if n < 2 or not len(draws):
        return None
    beyond = min(int((draws < 0).sum()), int((draws > 0).sum())) + int((draws == 0).sum()) / 2
    tail = min((beyond + 1) / (len(draws) + 1), 0.5)
    return float(2 * stdtr(n - 1, ndtri(tail) * np.sqrt((n - 1) / n)))


def standard_error(draws: Floats, left_out: Floats) -> float | None:
    """The larger of two estimates of a statistic's standard error.

    ``draws`` are its values in bootstrap resamples, ``left_out`` its values with each unit left out in turn (the
    jackknife), if any. For few units both are too small, the bootstrap's more so. None if fewer than two resamples
    define the statistic.
    """
    known, left = draws[~np.isnan(draws)], left_out[~np.isnan(left_out)]
    if len(known) < 2:
        return None
    jackknife = float(np.sqrt((len(left) - 1) * left.var())) if len(left) > 1 else 0.0
    return max(float(known.std(ddof=1)), jackknife)


def fisher_z_interval(value: float, error: float, n: int, level: float) -> ConfidenceInterval | None:
    """Student's interval of a correlation over ``n`` units on Fisher's unbounded scale, z = artanh r.

    Its standard error there is ``error`` / (1 − r²). A perfect correlation has no interval: it would be a point.
    """
    if abs(value) >= 1 - 1e-12:
        return None
    half = student_quantile(n - 1, level) * error / (1 - value**2)
    z = np.arctanh(value)
    return ConfidenceInterval(float(np.tanh(z - half)), float(np.tanh(z + half)))


def fisher_z_p(value: float, error: float, n: int) -> float | None:
    """Two-sided p of a correlation being 0: 1 − the level at which :func:`fisher_z_interval` first contains 0."""
    from scipy.special import stdtr

    if abs(value) >= 1 - 1e-12 or error <= 0:
        return None
    return float(2 * stdtr(n - 1, -abs(np.arctanh(value)) * (1 - value**2) / error))


def resample_counts(units: int, resamples: int, seed: int, rows: int) -> Iterator[Floats]:
    """How often each unit is drawn in each resample: (resamples × units), at most ``rows`` resamples at a time."""
    rng = np.random.default_rng(seed)
    for low in range(0, resamples, rows):
        size = min(rows, resamples - low)
        drawn = rng.integers(0, units, size=(size, units)) + (np.arange(size) * units)[:, None]
        yield np.bincount(drawn.ravel(), minlength=size * units).reshape(size, units).astype(np.float64)


def unit_numbers(units: npt.ArrayLike | None, size: int) -> Ints:
    """Number the units of ``size`` rows; by default every row is its own unit."""
    if units is None:
        return np.arange(size)
    given = np.asarray(units)
    if given.shape != (size,):
        raise ValueError(f"{given.shape} groups for {size} values")
    return np.unique(given, return_inverse=True)[1].astype(np.int64).reshape(-1)
