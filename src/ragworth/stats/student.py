"""Quantiles of Student's and the normal distribution, for intervals.

SciPy has them too, but importing it takes longer than scoring a run. Functions that need more of it import it.
"""

from __future__ import annotations

import math
from functools import cache
from statistics import NormalDist
from typing import Final

import numpy as np

MANY: Final = 1000
"""Degrees of freedom from which an expansion around the normal quantile is exact to rounding."""


def normal_cdf(x: float) -> float:
    """Probability that a standard normal number is at most ``x``."""
    return 0.5 * math.erfc(-x / math.sqrt(2))


def normal_quantile(p: float) -> float:
    """The number that a standard normal one is below with probability ``p``."""
    return NormalDist().inv_cdf(p)


@cache
def student_quantile(df: int, level: float) -> float:
    """The number that |T| is below with probability ``level``, for T of Student's distribution.

    Abramowitz and Stegun 26.7.3 to 26.7.5: a finite sum in θ = arctan(t/√df), solved by bisection, or an expansion in
    powers of 1/df.
    """
    if df >= MANY:
        return _expansion(df, normal_quantile(0.5 + level / 2))
    even = df % 2 == 0
    steps = np.arange(2 if even else 3, df - 1, 2, dtype=np.float64)
    terms = np.cumprod(np.append(1.0, (steps - 1) / steps))[: (df - 1 + even) // 2]
    powers = 2.0 * np.arange(len(terms))

    def within(theta: float) -> float:
        total = math.sin(theta) * float(terms @ math.cos(theta) ** powers)
        return total if even else 2 / math.pi * (theta + math.cos(theta) * total)

    low, high = 0.0, math.pi / 2
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if within(middle) < level else (low, middle)
    return math.sqrt(df) * math.tan(high)


def _expansion(df: int, z: float) -> float:
    square = z * z
    return z * (
        1
        + (square + 1) / (4 * df)
        + ((5 * square + 16) * square + 3) / (96 * df**2)
        + (((3 * square + 19) * square + 17) * square - 15) / (384 * df**3)
        + ((((79 * square + 776) * square + 1482) * square - 1920) * square - 945) / (92160 * df**4)
    )


def expanded_tail(n: int, level: float) -> float:
    """The tail of a percentile interval over ``n`` units whose level is widened to Student's (Hesterberg 2015)."""
    return normal_cdf(-student_quantile(n - 1, level) * math.sqrt(n / (n - 1)))
