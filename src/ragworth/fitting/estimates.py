"""Figures as they are kept and shown: a value with its interval and what it is from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ragworth.fitting.rows import FittingRows, Floats, Ints
from ragworth.stats.bootstrap import bootstrap_means, mean_intervals
from ragworth.stats.paired import bootstrap_tests
from ragworth.stats.pooled import CorrelationGap
from ragworth.stats.range_intervals import Bounds
from ragworth.stats.resampling import ConfidenceInterval, expanded_interval, expanded_p
from ragworth.stats.within_query import NO_QUERY, ONE_QUERY, REASONS, MeanCorrelation, query_correlations


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
    Where every query stands in one table, the figures are those of :mod:`ragworth.stats.within_query`.
    """

    def __init__(self, values: Floats, rows: FittingRows, *, level: float, resamples: int, seed: int) -> None:
        self.by_query = query_correlations(values, rows.outcome, rows.query)
        self.values = average_same_queries(self.by_query.values, rows.same)
        self.same, self.rows = rows.same, rows
        self.level, self.again = level, {"resamples": resamples, "seed": seed}

    def means(self) -> list[MeanCorrelation]:
        """The mean of each column."""
        spans = self._spans(self.values, (-1.0, 1.0))
        return [self._mean(place, span) for place, span in enumerate(spans)]

    def _mean(self, place: int, span: ConfidenceInterval | None) -> MeanCorrelation:
        column, apart = self.values[:, place], self.by_query
        known = ~np.isnan(column)
        count = int(known.sum())
        why = np.zeros(len(column), dtype=np.int64)
        np.maximum.at(why, self.same, apart.why[:, place])
        there = ~np.isnan(apart.values[:, place])
        return MeanCorrelation(
            float(column[known].mean()) if count else None,
            "" if count > 1 else ONE_QUERY if count else NO_QUERY,
            span,
            count,
            {reason: n for code, reason in enumerate(REASONS) if code and (n := int((why[~known] == code).sum()))},
            int(apart.rows[there, place].sum()),
            len(self.rows.outcome) - int(apart.rows[:, place].sum()),
        )

    def gap(self, first: int, second: int) -> CorrelationGap:
        """The mean of one column less that of another, over the queries that both have in the same table."""
        a, b = self.by_query.values[:, first], self.by_query.values[:, second]
        both = ~np.isnan(a + b)
        if not both.any():
            return CorrelationGap(None, NO_QUERY, None, None, None, None, 0, 0)
        sides = np.where(both[:, None], np.stack([a - b, a, b], axis=1), np.nan)
        gaps, *means = average_same_queries(sides, self.same).T
        gaps = np.where(np.abs(gaps) < 1e-12, 0.0, gaps)
        count, n = int((~np.isnan(gaps)).sum()), int(self.by_query.rows[both, first].sum())
        span = self._spans(gaps[:, None], (-2.0, 2.0))[0]
        chance = float(bootstrap_tests(gaps[:, None], **self.again)[0]) if count > 1 else None
        one, other = (float(np.nanmean(side)) for side in means)
        return CorrelationGap(
            float(np.nanmean(gaps)), "" if count > 1 else ONE_QUERY, span, chance, one, other, n, count
        )

    def _spans(self, each: Floats, bounds: Bounds) -> list[ConfidenceInterval | None]:
        return mean_intervals(each, level=self.level, **self.again, bounds=bounds).spans()


def mean_figure(found: MeanCorrelation) -> dict[str, Any]:
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


def gap_figure(found: CorrelationGap) -> dict[str, Any]:
    """A paired difference of two correlations."""
    low, high = found.interval or (None, None)
    return {"value": found.value, "low": low, "high": high, "p": found.p, "queries": found.queries}


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
