"""Scores of one metric as a matrix, queries × systems: range, direction, intervals of means, ranks of systems.

Whoever has the fewest values can have the highest mean by chance, or because only easy questions were decided. So a
system is ranked only if at least half of the questions that it was asked have a value. Systems are ranked by the
questions that have a value for all of these, and only if that is at least half of what each of them was asked. Every
ranking goes by :func:`rank`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ragworth.answer_outcomes import outcome_direction, outcome_type
from ragworth.core.errors import InputError, RagworthError
from ragworth.data import Scores
from ragworth.data.conversations import FEWEST_CONVERSATIONS, cluster_labels
from ragworth.formats.grades import Direction
from ragworth.metrics.ground_truth import query_numbers
from ragworth.metrics.parsing import parse
from ragworth.metrics.scoring_job import LEFT_OUT
from ragworth.stats.bootstrap import MeanIntervals, cluster_index, column_intervals, count_clusters
from ragworth.stats.range_intervals import FEWEST, LARGE, Bounds

Floats = npt.NDArray[np.float64]


def is_metric(name: str) -> bool:
    """Whether a name is that of a metric of contexts, and not of an outcome of answers."""
    try:
        parse(name)
    except RagworthError:
        return False
    return True


def direction(metric: str) -> Direction:
    """Which way a metric or an outcome is better, by its name."""
    try:
        return 1 if parse(metric).declaration.higher_is_better else -1
    except RagworthError:
        return outcome_direction(metric)


def higher_is_better(metric: str) -> bool:
    """Whether higher is better, or at least not worse."""
    return direction(metric) >= 0


def value_bounds(metric: str, values: Floats | None = None) -> Bounds | None:
    """Lowest and highest value of a metric or an outcome, by its name; None if unknown.

    An outcome of unknown name whose ``values`` are all 0 or 1 is a share. A file's ``correct`` may have a scale of its
    own, such as 1 to 5: then the bounds aren't known.
    """
    try:
        return parse(metric).bounds(np.inf)
    except RagworthError:
        known = outcome_type(metric)
    if known is not None and known.bounds is not None and values is not None:
        low, high = known.bounds
        return known.bounds if bool((np.isnan(values) | ((values >= low) & (values <= high))).all()) else None
    if known is not None:
        return known.bounds
    binary = values is not None and bool((np.isnan(values) | (values == 0) | (values == 1)).all())
    return (0.0, 1.0) if binary else None


class ScoreMatrix(NamedTuple):
    """One metric's values, queries × systems; NaN if missing.

    ``asked`` counts the rows of each system, also those without a value, but none of queries that its run left out.
    """

    metric: str
    queries: pl.Series
    systems: list[str]
    values: Floats
    asked: dict[str, int]

    def has(self, *systems: str) -> bool:
        return set(systems) <= set(self.systems)

    def columns(self) -> dict[str, Floats]:
        """The values of each system."""
        return dict(zip(self.systems, self.values.T, strict=True))


def score_matrices(scores: Scores) -> list[ScoreMatrix]:
    """Convert the scores of each metric to a matrix."""
    result: list[ScoreMatrix] = []
    for metric in scores.distinct("metric"):
        part = scores.having("metric", [metric]).frame
        queries, systems = part["query"].unique(maintain_order=True), part["system"].unique(maintain_order=True)
        values = np.full((len(queries), len(systems)), np.nan)
        at = query_numbers(part["query"], queries), query_numbers(part["system"], systems)
        values[at] = part["value"].fill_null(float("nan")).to_numpy()
        was_asked = part["status"].ne_missing(LEFT_OUT).to_numpy()
        asked = np.bincount(at[1][was_asked], minlength=len(systems)).tolist()
        result.append(ScoreMatrix(metric, queries, systems.to_list(), values, dict(zip(systems, asked, strict=True))))
    return result


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


class RankedSystems(NamedTuple):
    """The systems that are ranked by one metric, best first.

    Attributes
    ----------
    order: empty if fewer than two have enough values, or if those share too few questions.
    enough: systems with a value for at least half of their questions.
    decided, asked: by system, questions with a value, and all that it was asked.
    shared: the questions with a value for each of ``enough``.
    """

    order: list[str]
    enough: list[str]
    decided: dict[str, int]
    asked: dict[str, int]
    shared: list[str]

    def counts(self, system: str) -> str:
        """How many of its questions have a value: ``30 of 86``."""
        return f"{self.decided.get(system, 0):,} of {self.asked.get(system, 0):,}"


def rank(scores: Scores, metric: str) -> RankedSystems:
    """Rank systems by the mean of a metric; each row of ``scores`` is a question asked, with or without a value."""
    matrices = score_matrices(scores.having("metric", [metric]))
    if not matrices:
        return RankedSystems([], [], {}, {}, [])
    return rank_matrix(matrices[0])


def rank_matrix(matrix: ScoreMatrix) -> RankedSystems:
    """:func:`rank` of one metric's values."""
    known = ~np.isnan(matrix.values)
    decided = dict(zip(matrix.systems, known.sum(axis=0).tolist(), strict=True))
    enough = [system for system, n in decided.items() if n and 2 * n >= matrix.asked[system]]
    values = matrix.values[:, [matrix.systems.index(system) for system in enough]]
    shared = ~np.isnan(values).any(axis=1)
    most = max((matrix.asked[system] for system in enough), default=0)
    order = _by_mean(matrix.metric, enough, values[shared]) if len(enough) > 1 and 2 * shared.sum() >= most else []
    return RankedSystems(order, enough, decided, matrix.asked, matrix.queries.filter(pl.Series(shared)).to_list())


def _by_mean(metric: str, systems: list[str], values: Floats) -> list[str]:
    up = 1 if higher_is_better(metric) else -1
    means = dict(zip(systems, (up * values.mean(axis=0)).tolist(), strict=True))
    return sorted(systems, key=lambda system: -means[system])
