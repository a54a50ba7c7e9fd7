"""Figures as they are kept and shown: a value with its interval and what it is from."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ragworth.stats.pooled import Gap
from ragworth.stats.within import Averaged

Floats = npt.NDArray[np.float64]


def known_means(each: Floats) -> Floats:
    """The mean of each column's values that are there; NaN where none is."""
    known = ~np.isnan(each)
    count = known.sum(axis=0)
    return np.where(count > 0, np.where(known, each, 0.0).sum(axis=0) / np.maximum(count, 1), np.nan)


def mean_figure(found: Averaged) -> dict[str, Any]:
    """A mean correlation within queries."""
    low, high = found.interval or (None, None)
    return {
        "value": found.value,
        "low": low,
        "high": high,
        "queries": found.queries,
        "contexts": found.n,
        "left_out": dict(found.left_out),
    }


def gap_figure(found: Gap) -> dict[str, Any]:
    """A paired difference of two correlations."""
    low, high = found.interval or (None, None)
    return {"value": found.value, "low": low, "high": high, "p": found.p, "queries": found.queries}
