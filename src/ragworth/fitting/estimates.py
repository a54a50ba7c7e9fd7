"""Figures as they are kept and shown: a value with its interval and what it is from."""

from __future__ import annotations

from typing import Any

import numpy as np

from ragworth.fitting.rows import Floats
from ragworth.stats.estimate import Estimate


def column_means(each: Floats) -> Floats:
    """The mean of each column's values that are there; NaN where none is."""
    known = ~np.isnan(each)
    count = known.sum(axis=0)
    return np.where(count > 0, np.where(known, each, 0.0).sum(axis=0) / np.maximum(count, 1), np.nan)


def mean_figure(found: Estimate) -> dict[str, Any]:
    """A mean correlation within queries."""
    counts = {"queries": found.n, "contexts": found.counts["contexts"], "left_out": dict(found.reasons)}
    return {"value": found.value, "low": found.low, "high": found.high, **counts}


def gap_figure(found: Estimate) -> dict[str, Any]:
    """A paired difference of two correlations."""
    return {"value": found.value, "low": found.low, "high": found.high, "p": found.p, "queries": found.n}
