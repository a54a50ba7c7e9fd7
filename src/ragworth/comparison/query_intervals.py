"""Intervals of means over queries, which may be turns of conversations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ragworth.comparison.metric_range import Floats
from ragworth.core.errors import InputError
from ragworth.data.conversations import FEWEST_CONVERSATIONS, cluster_labels
from ragworth.stats.bootstrap import MeanIntervals, column_intervals
from ragworth.stats.clustered import cluster_index, count_clusters
from ragworth.stats.range_intervals import FEWEST, LARGE, Bounds

MIN_RESAMPLES = 100
"""Minimum number of resamples for a meaningful interval."""


class ConversationCounts(NamedTuple):
    """The conversation of each query, and how many have a value in each column; all None if queries are independent."""

    labels: list[int] | None
    numbers: Sequence[int | None]

    @classmethod
    def of(cls, values: Floats, queries: pl.Series, conversations: Mapping[str, str]) -> ConversationCounts:
        labels = cluster_labels(queries, conversations)
        group = cluster_index(labels, len(values))
        return cls(labels, [None] * values.shape[1] if group is None else count_clusters(values, group).tolist())

    def of_queries(self, chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64] | None:
        """The conversations of some of the queries."""
        return None if self.labels is None else np.array(self.labels, dtype=np.int64)[chosen]


class QueryColumns(NamedTuple):
    """Columns of values over queries (queries × columns), their bounds, and the conversations of the queries."""

    queries: pl.Series
    values: Floats
    bounds: Bounds | None
    clusters: ConversationCounts

    @classmethod
    def of(
        cls, queries: pl.Series, values: Floats, bounds: Bounds | None, conversations: Mapping[str, str]
    ) -> QueryColumns:
        return cls(queries, values, bounds, ConversationCounts.of(values, queries, conversations))


def with_intervals(
    columns: Iterable[QueryColumns], *, level: float, resamples: int, seed: int
) -> Iterator[tuple[QueryColumns, MeanIntervals]]:
    """All columns with the intervals of their means. Those over the same queries are resampled together."""
    for same in _over_same_queries(columns):
        ends = column_intervals(
            np.concatenate([each.values for each in same], axis=1) if len(same) > 1 else same[0].values,
            [each.bounds for each in same for _ in range(each.values.shape[1])],
            level=level,
            resamples=resamples,
            seed=seed,
            clusters=same[0].clusters.labels,
        )
        at = np.cumsum([each.values.shape[1] for each in same])[:-1]
        yield from zip(same, map(MeanIntervals, np.split(ends.low, at), np.split(ends.high, at)), strict=True)


def _over_same_queries(columns: Iterable[QueryColumns]) -> Iterator[list[QueryColumns]]:
    """Neighbours over the same queries. Large samples aren't resampled, and stay alone to save memory."""
    waiting: list[QueryColumns] = []
    for each in columns:
        if waiting and (len(each.queries) > LARGE or not each.queries.equals(waiting[0].queries)):
            yield waiting
            waiting = []
        waiting.append(each)
    if waiting:
        yield waiting


def conversations_last(frame: pl.DataFrame) -> pl.DataFrame:
    """The column of conversations behind all others, where there are any."""
    if frame["conversations"].null_count() == frame.height:
        return frame.drop("conversations")
    return frame.select(pl.exclude("conversations"), "conversations")


def none_if_nan(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def check_arguments(level: float, resamples: int, seed: int) -> None:
    if not 0 < level < 1:
        raise InputError(f"the confidence level is {level}", expected="a number between 0 and 1, such as 0.95")
    if resamples < MIN_RESAMPLES:
        raise InputError(f"{resamples} resamples are too few for an interval", expected=f"{MIN_RESAMPLES} or more")
    if seed < 0:
        raise InputError(f"the seed is {seed}", expected="0 or more")


def missing_interval(n: int, conversations: int | None = None) -> str:
    """Why a mean of ``n`` values has no interval, in a cell of a table."""
    if n < 2:
        return "–"
    if conversations is not None and conversations < FEWEST_CONVERSATIONS:
        return "too few conversations"
    return "too few" if n < FEWEST else "too few differ"
