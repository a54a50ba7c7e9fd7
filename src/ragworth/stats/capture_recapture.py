"""How many items there are in all, from how many of several catches found each of them.

Systems that retrieve alike find the same items, so that the estimates are too low: take them as lower bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ragworth.stats.estimate import Estimate
from ragworth.stats.range_intervals import normal_quantile


def chapman(first: int, second: int, both: int, level: float = 0.95) -> Estimate:
    """Chapman's estimate of the total from two catches, ``both`` of them in both: (n₁ + 1)(n₂ + 1)/(m + 1) − 1.

    The interval is log-normal in the number not caught (Chao 1987), so it never falls below what was caught. Its ends
    are whole numbers, rounded outwards: otherwise it would exclude that nothing was missed. ``n`` is the number caught.
    """
    caught = first + second - both
    total = (first + 1) * (second + 1) / (both + 1) - 1
    variance = (first + 1) * (second + 1) * (first - both) * (second - both) / ((both + 1) ** 2 * (both + 2))
    return _with_interval(caught, total, variance, level)


def chao2(caught_by: Sequence[int], catches: int, level: float = 0.95) -> Estimate:
    """Chao's bias-corrected lower bound of the total from ``catches`` catches.

    ``caught_by`` has, for each item that was caught, the number of catches that have it. With f₁ items in one catch and
    f₂ in two: D + (m − 1)/m · f₁(f₁ − 1)/(2(f₂ + 1)). The interval is that of `chapman`.
    """
    once, twice = sum(each == 1 for each in caught_by), sum(each == 2 for each in caught_by)
    share, more = (catches - 1) / catches, twice + 1
    total = len(caught_by) + share * once * (once - 1) / (2 * more)
    variance = (
        share * once * (once - 1) / (2 * more)
        + share**2 * once * (2 * once - 1) ** 2 / (4 * more**2)
        + share**2 * once**2 * twice * (once - 1) ** 2 / (4 * more**4)
    )
    return _with_interval(len(caught_by), total, variance, level)


def _with_interval(caught: int, total: float, variance: float, level: float) -> Estimate:
    missed = total - caught
    if missed <= 0:
        return Estimate(float(caught), n=caught, reason="nothing suggests that any was missed, so there is no interval")
    factor = math.exp(normal_quantile(0.5 + level / 2) * math.sqrt(math.log1p(variance / missed**2)))
    low, high = math.floor(caught + missed / factor), math.ceil(caught + missed * factor)
    return Estimate(total, float(low), float(high), n=caught)
