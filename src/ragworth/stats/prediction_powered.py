"""Mean of expensive values known for a sample, estimated with cheap values known for all.

Prediction-powered inference (Angelopoulos et al. 2023; with power tuning, PPI++, 2023): the mean of the cheap values is
corrected by their error in the sample. The better the cheap values correlate with the expensive ones, the fewer of
these are needed. If they don't, only a degree of freedom is lost, and the estimate stays unbiased.

The sample must be drawn at random; otherwise the correction doesn't apply to the other queries. A value is a metric's
value for one query, from cheap or from expensive judgments.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ragworth.stats.bootstrap import mean_intervals
from ragworth.stats.paired import SMALLEST, randomisation_test
from ragworth.stats.power import smallest_enough
from ragworth.stats.range_intervals import TOO_FEW, Bounds, difference_bounds, few_differ, is_constant, possible_means
from ragworth.stats.resampling import ConfidenceInterval

Floats = npt.NDArray[np.float64]

NOTHING = "there is no expensive value that has a cheap one beside it"
SINGLE = "there is only one expensive value, so no interval"


class PpiEstimate(NamedTuple):
    """Estimated mean of the expensive values over all queries.

    Attributes
    ----------
    value: the estimate; None without expensive values.
    reason: why the value or the interval is missing, or empty.
    interval: Student's; None for fewer than two expensive values, and if too few differ and their range is unknown.
    p: two-sided, of a mean of 0; never 0; None for fewer than two expensive values.
    weight: λ, the weight of the cheap values: 0 ignores them, 1 takes them at face value.
    n: queries with an expensive value.
    total: queries with a cheap value.
    missing: queries without a cheap value; they are left out, including their expensive ones.
    cheap: uncorrected mean of the cheap values of all queries.
    plain, plain_interval: mean of the expensive values alone, and its Student interval.
    needed: expensive values that alone would give an interval this short; None without an interval.
    """

    value: float | None
    reason: str
    interval: ConfidenceInterval | None
    p: float | None
    weight: float
    n: int
    total: int
    missing: int
    cheap: float | None
    plain: float | None
    plain_interval: ConfidenceInterval | None
    needed: int | None

    @property
    def saved(self) -> int | None:
        """Expensive values saved for an interval of this length; negative if the cheap ones did harm."""
        return None if self.needed is None else self.needed - self.n


def ppi_mean(
    cheap: npt.ArrayLike,
    expensive: npt.ArrayLike,
    *,
    weight: float | None = None,
    level: float = 0.95,
    bounds: Bounds | None = None,
) -> PpiEstimate:
    """Mean of the expensive values over all queries: ȳ + λ·(mean cheap over all − mean cheap over the sample).

    ``expensive`` is NaN where unknown. By default, λ minimizes the interval, cov(y, f) / var(f) in the sample (power
    tuning); ``weight`` overrides it. With fewer than four expensive values, or a constant cheap value in the sample,
    λ = 0 gives the plain mean.

    The interval is over queries like these, not only these: with an expensive value for every query, it is that of a
    plain mean.

    If more than half of the expensive values are equal and few are not, their spread says little. The estimate is then
    the plain mean, with an interval from ``bounds``, the lowest and highest possible expensive value, or none without
    bounds. An explicit ``weight`` is still used. No interval leaves the bounds, nor 0 to 1 if all values are
    between them.
    """
    f, y = np.asarray(cheap, dtype=np.float64), np.asarray(expensive, dtype=np.float64)
    return _ppi(f, y, weight, level, bounds, possible_means(np.append(f, y), bounds))


def _ppi(f: Floats, y: Floats, weight: float | None, level: float, bounds: Bounds | None, ends: Bounds) -> PpiEstimate:
    """:func:`ppi_mean`, with the ends between which an interval stays."""
    if f.shape != y.shape or f.ndim != 1:
        raise ValueError(f"{f.shape} cheap values with {y.shape} expensive ones")
    known = ~np.isnan(f)
    missing = int((~known).sum())
    f, y = f[known], y[known]
    bought = ~np.isnan(y)
    n, total = int(bought.sum()), len(f)
    mean_cheap = float(f.mean()) if total else None
    if n == 0:
        return PpiEstimate(None, NOTHING, None, None, 0.0, 0, total, missing, mean_cheap, None, None, None)
    mean = float(y[bought].mean())
    if n == 1:
        return PpiEstimate(mean, SINGLE, None, None, 0.0, 1, total, missing, mean_cheap, mean, None, None)
    plain = _Estimate(mean, float(y[bought].std(ddof=1)) / math.sqrt(n), n - 1, 0.0)
    if weight is None and few_differ(y[bought]):
        return _few_differ_estimate(y[bought], plain, total, missing, mean_cheap, level, bounds)
    best = _estimate(f, y, bought, weight) or plain
    interval = best.interval(level)
    return PpiEstimate(
        best.value,
        "",
        _within(interval, ends),
        best.p(y[bought]),
        best.weight,
        n,
        total,
        missing,
        mean_cheap,
        mean,
        _within(plain.interval(level), ends),
        _sample_needed(plain.error * math.sqrt(n), interval, n, level),
    )


def _within(span: ConfidenceInterval, ends: Bounds) -> ConfidenceInterval:
    """The part of an interval that is possible; all of it if none is, for an estimate beyond the ends."""
    low, high = max(span.low, ends[0]), min(span.high, ends[1])
    return ConfidenceInterval(low, high) if low < high else span


def _few_differ_estimate(
    values: Floats,
    plain: _Estimate,
    total: int,
    missing: int,
    mean_cheap: float | None,
    level: float,
    bounds: Bounds | None,
) -> PpiEstimate:
    """Plain mean of expensive values of which few differ, with an interval that doesn't rely on their spread."""
    (span,) = mean_intervals(values[:, None], level=level, bounds=bounds).spans()
    n, mean, p = len(values), plain.value, plain.p(values)
    reason, needed = (TOO_FEW, None) if span is None else ("", n)
    return PpiEstimate(mean, reason, span, p, 0.0, n, total, missing, mean_cheap, mean, span, needed)


def ppi_difference(
    cheap: tuple[npt.ArrayLike, npt.ArrayLike],
    expensive: tuple[npt.ArrayLike, npt.ArrayLike],
    *,
    weight: float | None = None,
    level: float = 0.95,
    bounds: Bounds | None = None,
) -> PpiEstimate:
    """Mean difference of two systems, second minus first, query by query.

    Like :func:`ppi_mean` of the differences, so effects of a query on both systems cancel out. ``bounds`` are the
    lowest and highest possible value of either system.
    """
    before, after = (np.asarray(side, dtype=np.float64) for side in cheap)
    bought_before, bought_after = (np.asarray(side, dtype=np.float64) for side in expensive)
    ends = possible_means(np.concatenate([before, after, bought_before, bought_after]), bounds)
    gaps = bought_after - bought_before
    return _ppi(after - before, gaps, weight, level, difference_bounds(bounds), difference_bounds(ends))


class _Estimate(NamedTuple):
    value: float
    error: float
    freedom: int
    weight: float

    def interval(self, level: float) -> ConfidenceInterval:
        half = _half_width(self.error, self.freedom, level)
        return ConfidenceInterval(self.value - half, self.value + half)

    def p(self, values: Floats) -> float:
        """p of a mean of 0; if nothing varies, only the signs are tested."""
        from scipy.special import stdtr

        if self.error <= 1e-12 * abs(self.value) or self.error == 0:
            return randomisation_test(values)
        return max(float(2 * stdtr(self.freedom, -abs(self.value) / self.error)), SMALLEST)


def _estimate(f: Floats, y: Floats, bought: npt.NDArray[np.bool_], weight: float | None) -> _Estimate | None:
    """Estimate with the cheap values; None if they can't add anything."""
    n, total = int(bought.sum()), len(f)
    some, values = f[bought], y[bought]
    if n == total or (weight is None and (n < 4 or is_constant(some))):
        return None
    off = float(f.mean() - some.mean())
    if weight is not None:
        rest = f[~bought]
        share = weight * len(rest) / total
        # The spread of a single value is unknown, so use that of the sample.
        spread = float((rest if len(rest) > 1 else f).var(ddof=1))
        error = math.sqrt(float((values - share * some).var(ddof=1)) / n + share**2 * spread / len(rest))
        return _Estimate(float(values.mean()) + weight * off, error, n - 1, weight)
    centred = some - some.mean()
    squares = float(centred @ centred)
    slope = float(centred @ values) / squares
    left = values - values.mean() - slope * centred
    # As in regression: the residuals, the uncertainty of the slope, and the spread of the cheap mean itself.
    own = float(left @ left) / (n - 2) * (1 / n + off**2 / squares)
    error = math.sqrt(own + slope**2 * float(f.var(ddof=1)) / total)
    return _Estimate(float(values.mean()) + slope * off, error, n - 2, slope)


def _half_width(error: float, freedom: int, level: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.5 + level / 2)) * error


def _sample_needed(spread: float, interval: ConfidenceInterval, n: int, level: float) -> int | None:
    """Number of values with this spread that have an interval as short."""
    half = (interval.high - interval.low) / 2
    if half <= 0 or spread <= 0:
        return n
    return smallest_enough(
        lambda size: size > 1 and _half_width(spread / math.sqrt(size), size - 1, level) <= half * (1 + 1e-9)
    )
