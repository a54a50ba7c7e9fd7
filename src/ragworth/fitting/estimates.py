"""Figures as they are kept and shown: a value with its interval and what it is from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ragworth.fitting.rows import FittingRows, Floats, Ints
from ragworth.stats.bootstrap import bootstrap_means, mean_intervals
from ragworth.stats.estimate import Estimate
from ragworth.stats.paired import bootstrap_tests
from ragworth.stats.range_intervals import Bounds
from ragworth.stats.resampling import ConfidenceInterval, expanded_interval, expanded_p
from ragworth.stats.within_query import mean_correlation, mean_gap, query_correlations


def column_means(each: Floats) -> Floats:
    """The mean of each column's values that are there; NaN where none is."""
    known = ~np.isnan(each)
    count = known.sum(axis=0)
    return np.where(count > 0, np.where(known, each, 0.0).sum(axis=0) / np.maximum(count, 1), np.nan)


def average_same_queries(each: Floats, same: Ints) -> Floats:
    """Values of queries (queries × columns) averaged over those that are the same; NaN where none has one."""
    known = ~np.isnan(each)
    count, total = (np.zeros((int(same.max(initial=-1)) + 1, each.shape[1])) for _ in range(2))
    np.add.at(count, same, known)
    np.add.at(total, same, np.where(known, each, 0.0))
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


class SharedQueryCorrelations:
    """Mean correlations within queries, where one query may stand in several tables.

    What a query comes to in all tables is averaged first: it counts once, and it is what is drawn for intervals.
    Where every query stands in one table, values and intervals are those of :mod:`ragworth.stats.within_query`.
    """

    def __init__(self, values: Floats, rows: FittingRows, *, level: float, resamples: int, seed: int) -> None:
        self.by_query = query_correlations(values, rows.outcome, rows.query)
        self.values = average_same_queries(self.by_query.values, rows.same)
        self.same = rows.same
        self.level, self.again = level, {"resamples": resamples, "seed": seed}

    def means(self) -> list[Estimate]:
        """The mean of each column."""
        spans = self._spans(self.values, (-1.0, 1.0))
        return [self._mean(place).with_interval(span) for place, span in enumerate(spans)]

    def _mean(self, place: int) -> Estimate:
        column, apart = self.values[:, place], self.by_query
        why, rows = (np.zeros(len(column), dtype=np.int64) for _ in range(2))
        np.maximum.at(why, self.same, apart.why[:, place])
        np.add.at(rows, self.same, np.where(np.isnan(apart.values[:, place]), 0, apart.rows[:, place]))
        return mean_correlation(column, why, rows)

    def gap(self, first: int, second: int) -> Estimate:
        """The mean of one column less that of another, over the queries that both have in the same table."""
        a, b = self.by_query.values[:, first], self.by_query.values[:, second]
        both = ~np.isnan(a + b)
        (gaps,) = average_same_queries(np.where(both, a - b, np.nan)[:, None], self.same).T
        gaps = np.where(np.abs(gaps) < 1e-12, 0.0, gaps)
        rows = np.zeros(len(gaps), dtype=np.int64)
        np.add.at(rows, self.same, np.where(both, self.by_query.rows[:, first], 0))
        (p,) = bootstrap_tests(gaps[:, None], **self.again)
        return mean_gap(gaps, p, rows).with_interval(self._spans(gaps[:, None], (-2.0, 2.0))[0])

    def _spans(self, each: Floats, bounds: Bounds) -> list[ConfidenceInterval | None]:
        return mean_intervals(each, level=self.level, **self.again, bounds=bounds).spans()


def mean_figure(found: Estimate) -> dict[str, Any]:
    """A mean correlation within queries."""
    counts = {"queries": found.n, "contexts": found.counts["contexts"], "left_out": dict(found.reasons)}
    return {"value": found.value, "low": found.low, "high": found.high, **counts}


def gap_figure(found: Estimate) -> dict[str, Any]:
    """A paired difference of two correlations."""
    return {"value": found.value, "low": found.low, "high": found.high, "p": found.p, "queries": found.n}


def average_figure(
    cases: Sequence[Floats], *, level: float, resamples: int, seed: int, difference: bool = False
) -> dict[str, Any]:
    """The average over cases of the mean over each case's queries; every case counts the same.

    A case without any value is left out; ``cases`` counts the others. Queries are resampled within each case. The
    interval is widened as for the case of the fewest queries. ``p``, of a ``difference`` alone, is that of being 0.
    """
    known = [each[~np.isnan(each)] for each in cases]
    known = [each for each in known if len(each)]
    found: dict[str, Any] = dict.fromkeys(("value", "low", "high", "p"))
    found |= {"queries": sum(map(len, known)), "cases": len(known)}
    if known:
        means = [bootstrap_means(each[:, None], resamples, seed + at)[:, 0] for at, each in enumerate(known)]
        draws, fewest = np.mean(means, axis=0), min(map(len, known))
        low, high = expanded_interval(draws, fewest, level) or (None, None)
        value = float(np.mean([each.mean() for each in known]))
        found |= {"value": value, "low": low, "high": high, "p": expanded_p(draws, fewest) if difference else None}
    return found
