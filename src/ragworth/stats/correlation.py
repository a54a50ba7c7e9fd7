"""Correlations of two columns of numbers. A constant column, or fewer than two pairs, has none: NaN."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def _defined(x: Floats, y: Floats) -> bool:
    return len(x) > 1 and bool((x != x[0]).any()) and bool((y != y[0]).any())


def pearson(x: Floats, y: Floats) -> float:
    """Pearson's r."""
    if not _defined(x, y):
        return float("nan")
    a, b = x - x.mean(), y - y.mean()
    return float(np.clip((a @ b) / np.sqrt((a @ a) * (b @ b)), -1, 1))


def ranks(x: Floats) -> Floats:
    """Ranks from 1; equal values share the mean of theirs."""
    _, place, count = np.unique(x, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return ((last - count + 1 + last) / 2)[place].astype(np.float64)


def spearman(x: Floats, y: Floats) -> float:
    """Spearman's ρ: Pearson's r of the ranks."""
    return pearson(ranks(x), ranks(y))


def kendall(x: Floats, y: Floats) -> float:
    """Kendall's τ-b."""
    from scipy import stats

    return float(stats.kendalltau(x, y).statistic) if _defined(x, y) else float("nan")


CORRELATIONS: dict[str, Callable[[Floats, Floats], float]] = {
    "pearson": pearson,
    "spearman": spearman,
    "kendall": kendall,
}
