"""Systems by their means: whether two measures rank them alike."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ragworth.stats.correlation import kendall, missing_reason
from ragworth.stats.resampling import ConfidenceInterval, expanded_interval, resample_counts

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

FEWEST = 3
"""Systems from which on their order says something."""
FEW = f"fewer than {FEWEST} systems with both values"
NOTHING = "no query has both values for every system"
CHUNK = 512


class SystemOrder(NamedTuple):
    """Kendall's τ-b of systems' means by two measures, over the queries that have both for every system."""

    value: float | None
    span: ConfidenceInterval | None
    systems: int
    queries: int
    left_out: int
    reason: str


class CommonGrid(NamedTuple):
    """What two measures (queries × systems) can be compared over.

    ``systems`` have some value of both; ``queries`` have both for all of these systems.
    """

    systems: Bools
    queries: Bools

    def of(self, values: Floats) -> Floats:
        """Those of the values."""
        return values[self.queries][:, self.systems]


def common_grid(x: Floats, y: Floats) -> CommonGrid:
    """The systems and queries of which both measures have values."""
    there = np.asarray(~(np.isnan(x).all(axis=0) | np.isnan(y).all(axis=0)))
    whole = np.asarray(~(np.isnan(x[:, there]).any(axis=1) | np.isnan(y[:, there]).any(axis=1)))
    return CommonGrid(there, whole)


def compare_orders(x: Floats, y: Floats, *, level: float, resamples: int, seed: int) -> SystemOrder:
    """Whether two measures (queries × systems) rank systems alike; queries are drawn anew for the interval.

    A system without any value takes no part; a query in which some other lacks one is left out, so that all means are
    over the same queries.
    """
    both = common_grid(x, y)
    x, y = both.of(x), both.of(y)
    systems, queries, lost = x.shape[1], len(x), int((~both.queries).sum())
    if systems < FEWEST or not queries:
        return SystemOrder(None, None, systems, queries, lost, FEW if systems < FEWEST else NOTHING)
    first, second = x.mean(axis=0).round(12), y.mean(axis=0).round(12)
    if reason := missing_reason(first, second, "kendall", ("the measure of contexts", "the measure of answers")):
        return SystemOrder(None, None, systems, queries, lost, reason)
    draws = [
        _taus(counts @ x / queries, counts @ y / queries) for counts in resample_counts(queries, resamples, seed, CHUNK)
    ]
    span = expanded_interval(np.concatenate(draws), queries, level)
    return SystemOrder(kendall(first, second), span, systems, queries, lost, "")


def _taus(x: Floats, y: Floats) -> Floats:
    """Kendall's τ-b of each row of two arrays; NaN where a row is constant."""
    a, b = np.triu_indices(x.shape[1], 1)
    of_x, of_y = (np.sign((v[:, a] - v[:, b]).round(12)) for v in (x, y))
    untied = np.sqrt(np.abs(of_x).sum(axis=1) * np.abs(of_y).sum(axis=1))
    net = (of_x * of_y).sum(axis=1)
    return np.asarray(np.divide(net, untied, out=np.full(len(x), np.nan), where=untied > 0))
