"""Correlations of two columns of numbers; NaN for a constant column or fewer than two pairs.

:func:`correlation` gives the reason, and leaves out pairs with a missing value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Measure = Literal["pearson", "spearman", "kendall", "kendall-c"]

NOTHING = "there are no pairs of values"
SINGLE = "there is only one pair of values"
CONSTANT = "{} is constant"
INFINITE = "a value is infinite, which only ranks can take"


def _defined(x: Floats, y: Floats) -> bool:
    return len(x) > 1 and bool((x != x[0]).any()) and bool((y != y[0]).any())


def pearson(x: Floats, y: Floats) -> float:
    """Pearson's r."""
    if not _defined(x, y):
        return float("nan")
    a, b = x - x.mean(), y - y.mean()
    return float(np.clip((a @ b) / np.sqrt((a @ a) * (b @ b)), -1, 1))


def average_ranks(x: Floats) -> Floats:
    """Ranks from 1; equal values share their mean rank."""
    _, place, count = np.unique(x, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return ((last - count + 1 + last) / 2)[place].astype(np.float64)


def spearman(x: Floats, y: Floats) -> float:
    """Spearman's ρ: Pearson's r of the ranks."""
    return pearson(average_ranks(x), average_ranks(y))


def kendall(x: Floats, y: Floats) -> float:
    """Kendall's τ-b: (concordant − discordant) / √(pairs untied in x × pairs untied in y)."""
    from scipy import stats

    return float(stats.kendalltau(x, y).statistic) if _defined(x, y) else float("nan")


def kendall_c(x: Floats, y: Floats) -> float:
    """Kendall's (Stuart's) τ-c: 2·(concordant − discordant) / (n²·(m − 1)/m), m the smaller number of distinct values.

    Unlike τ-b, it can reach 1 if one column has fewer distinct values than the other.
    """
    from scipy import stats

    return float(stats.kendalltau(x, y, variant="c").statistic) if _defined(x, y) else float("nan")


CORRELATIONS: dict[str, Callable[[Floats, Floats], float]] = {
    "pearson": pearson,
    "spearman": spearman,
    "kendall": kendall,
}

MEASURES: dict[str, Callable[[Floats, Floats], float]] = {**CORRELATIONS, "kendall-c": kendall_c}
"""All measures; ``kendall`` is τ-b."""


class Correlation(NamedTuple):
    """A correlation, or why it is undefined.

    Attributes
    ----------
    value: None if undefined.
    reason: why it is undefined, or empty.
    n: number of pairs.
    missing: pairs with a NaN; they are left out.
    """

    value: float | None
    reason: str
    n: int
    missing: int


def correlation(x: npt.ArrayLike, y: npt.ArrayLike, measure: Measure = "spearman") -> Correlation:
    """Correlate two columns that may contain missing values (NaN)."""
    check_measure(measure)
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 1:
        raise ValueError(f"{a.shape} values with {b.shape} values")
    there = ~(np.isnan(a) | np.isnan(b))
    a, b, missing = a[there], b[there], int((~there).sum())
    reason = missing_reason(a, b, measure)
    value = None if reason else MEASURES[measure](a, b)
    return Correlation(value, reason, len(a), missing)


def missing_reason(x: Floats, y: Floats, measure: str, names: tuple[str, str] = ("the first", "the second")) -> str:
    """Why two columns have no correlation, or empty if they have one."""
    if len(x) < 2:
        return SINGLE if len(x) else NOTHING
    for values, name in zip((x, y), names, strict=True):
        if (values == values[0]).all():
            return CONSTANT.format(name)
    return INFINITE if measure == "pearson" and not (np.isfinite(x).all() and np.isfinite(y).all()) else ""


def check_measure(measure: str) -> None:
    if measure not in MEASURES:
        raise ValueError(f"measure={measure!r} is none of {', '.join(get_args(Measure))}")
