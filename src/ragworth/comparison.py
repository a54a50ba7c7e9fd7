"""Means with intervals, differences between systems, and correlations of metrics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import polars as pl

from ragworth.answer_outcomes import outcome_direction, outcome_scores, outcome_type
from ragworth.conversations import FEWEST_CONVERSATIONS, cluster_labels
from ragworth.errors import InputError, MetricError, RagworthError, format_list, quote_short
from ragworth.formats.grade_names import Direction
from ragworth.html_table import html_table
from ragworth.metrics.ground_truth import query_numbers
from ragworth.metrics.parsing import parse
from ragworth.stats.bootstrap import MeanIntervals, column_intervals
from ragworth.stats.clustered import cluster_index, count_clusters
from ragworth.stats.correlation import CORRELATIONS
from ragworth.stats.large_samples import LARGE
from ragworth.stats.paired import TESTS, Test, holm, paired_p
from ragworth.stats.power import detectable_difference
from ragworth.stats.range_intervals import Bounds, difference_bounds
from ragworth.tables import OK, Outcomes, Scores

Floats = npt.NDArray[np.float64]


MIN_RESAMPLES = 100
"""Minimum number of resamples for a meaningful interval."""

MAX_INTERVAL_RESAMPLES = 100_000
"""Resamples of an interval, however many a test needs: more don't change what is printed of it."""


@runtime_checkable
class HasScores(Protocol):
    """Results of an evaluation: scores of metrics, and outcomes of answers."""

    @property
    def scores(self) -> Scores: ...

    @property
    def outcomes(self) -> Outcomes | None: ...

    @property
    def said(self) -> Mapping[str, pl.DataFrame]: ...


@runtime_checkable
class HasConversations(Protocol):
    """Results that know which queries are turns of one conversation."""

    @property
    def conversations(self) -> Mapping[str, str]: ...


@runtime_checkable
class HasResults(Protocol):
    """An evaluation."""

    @property
    def results(self) -> HasScores | None: ...


LEAST_SHARE = 0.9
"""Values that a system needs, as a share of its baseline's, to pass a gate."""

Comparable = Scores | Outcomes | HasScores | HasResults
"""What can be compared: scores, outcomes of answers, results, or an evaluation."""


def to_scores(data: Comparable) -> Scores:
    """Everything that can be compared as scores: outcomes of answers first, then metrics."""
    if isinstance(data, Scores):
        return data
    if isinstance(data, Outcomes):
        return outcome_scores(data)
    if isinstance(data, HasScores):
        answers = outcome_scores(data.outcomes, data.said) if data.outcomes is not None else Scores.of_parts([])
        return Scores.of_parts([*answers.parts, *data.scores.parts], (*answers.notes, *data.scores.notes))
    if isinstance(data, HasResults):
        if data.results is None:
            raise InputError(
                "the evaluation has no results: it ended before its last stage", remedy="evaluate all of it"
            )
        return to_scores(data.results)
    raise InputError(
        f"{quote_short(type(data).__name__)} can't be compared",
        expected="scores (ragworth.score), outcomes (ragworth.grade(…).table), results or an evaluation",
    )


def conversations_of(data: Comparable | Mapping[str, Comparable]) -> dict[str, str]:
    """The conversation of each turn, as far as the data know it: results do, tables of scores don't."""
    if isinstance(data, Mapping):
        return {query: name for each in data.values() for query, name in conversations_of(each).items()}
    known = data.results if isinstance(data, HasResults) else data
    return dict(known.conversations) if isinstance(known, HasConversations) else {}


class JoinedScores(NamedTuple):
    """Scores from several places, and which systems to compare: None compares all with the first."""

    scores: Scores
    pairs: list[tuple[str, str]] | None = None


def join_scores(named: Mapping[str, Comparable]) -> JoinedScores:
    """Scores from several places, such as results of two versions.

    If a system has scores of the same metric in two places, systems are called PLACE/SYSTEM, and each is compared with
    the one of the same name in the first place.
    """
    tables = {name: to_scores(data) for name, data in named.items()}
    notes = tuple(note for table in tables.values() for note in table.notes)
    several = [table.distinct("system") for table in tables.values()]
    if len(tables) < 2 or not _collide(list(tables.values())):
        return JoinedScores(Scores.of_parts([part for table in tables.values() for part in table.parts], notes))
    parts = [
        part.with_columns(pl.format("{}/{}", pl.lit(name), "system").alias("system"))
        for name, table in tables.items()
        for part in table.parts
    ]
    first, *others = tables
    base = several[0]
    matched = [
        (f"{first}/{system if system in base else base[0]}", f"{name}/{system}")
        for name, systems in zip(others, several[1:], strict=True)
        for system in systems
    ]
    return JoinedScores(Scores.of_parts(parts, notes), matched)


def _collide(tables: Sequence[Scores]) -> bool:
    """Whether two tables have scores of the same metric for the same system."""
    seen: set[tuple[str, str]] = set()
    for table in tables:
        mine = {row for part in table.parts for row in part.select("system", "metric").unique().iter_rows()}
        if mine & seen:
            return True
        seen |= mine
    return False


class ScoreMatrix(NamedTuple):
    """One metric's values, queries × systems; NaN if missing."""

    metric: str
    queries: pl.Series
    systems: list[str]
    values: Floats

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
        result.append(ScoreMatrix(metric, queries, systems.to_list(), values))
    return result


def _is_metric(name: str) -> bool:
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


ABSENT = "not in its data"
"""Status of a query that other systems have a row for, and this one hasn't."""


def summarise(
    data: Comparable,
    *,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
    conversations: Mapping[str, str] | None = None,
) -> pl.DataFrame:
    """Mean of each metric for each system, with an interval over queries.

    Returns metric, system, mean, low, high, n (queries with a value), total (queries of all systems) and missing (why
    the others have none, with counts; :data:`ABSENT` if they have no row). A mean of no values is null. The interval
    is null for fewer than two values, and if nearly all values are equal and the metric has no finite range. ``data``
    and ``conversations`` are as in :func:`compare`; if queries share conversations, the column conversations counts
    those with a value.
    """
    _check_arguments(level, resamples, seed)
    known = conversations_of(data) if conversations is None else conversations
    scores = to_scores(data)
    rows: list[dict[str, object]] = []
    matrices = score_matrices(scores)
    columns = (_Columns.of(m.queries, m.values, value_bounds(m.metric, m.values), known) for m in matrices)
    found = _with_intervals(columns, level=level, resamples=resamples, seed=seed)
    for matrix, ((*_, clusters), interval) in zip(matrices, found, strict=True):
        for i, system in enumerate(matrix.systems):
            values = matrix.values[:, i]
            n = int((~np.isnan(values)).sum())
            rows.append(
                {
                    "metric": matrix.metric,
                    "system": system,
                    "mean": float(np.nanmean(values)) if n else None,
                    "low": _none_if_nan(interval.low[i]),
                    "high": _none_if_nan(interval.high[i]),
                    "n": n,
                    "conversations": clusters.numbers[i],
                    "total": len(matrix.queries),
                }
            )
    counts = pl.concat([_counts(part) for part in scores.parts])
    counts = counts.group_by("metric", "system", maintain_order=True).agg(
        pl.col("rows").sum(), pl.col("missing").explode(empty_as_null=False)
    )
    schema = {
        "metric": pl.String,
        "system": pl.String,
        "mean": pl.Float64,
        "low": pl.Float64,
        "high": pl.Float64,
        "n": pl.Int64,
        "conversations": pl.Int64,
        "total": pl.Int64,
    }
    frame = pl.DataFrame(rows, schema=schema).join(counts, on=["metric", "system"], maintain_order="left")
    absent = pl.lit(ABSENT).repeat_by(pl.col("total") - pl.col("rows"))
    frame = _with_conversations(frame.with_columns(pl.concat_list("missing", absent)).drop("rows"))
    return frame.with_columns(pl.col("missing").map_elements(_missing_reasons, return_dtype=pl.String))


class _ConversationCounts(NamedTuple):
    """The conversation of each query, and how many have a value in each column; all None if queries are independent."""

    labels: list[int] | None
    numbers: Sequence[int | None]

    @classmethod
    def of(cls, values: Floats, queries: pl.Series, conversations: Mapping[str, str]) -> _ConversationCounts:
        labels = cluster_labels(queries, conversations)
        group = cluster_index(labels, len(values))
        return cls(labels, [None] * values.shape[1] if group is None else count_clusters(values, group).tolist())

    def of_queries(self, chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64] | None:
        """The conversations of some of the queries."""
        return None if self.labels is None else np.array(self.labels, dtype=np.int64)[chosen]


class _Columns(NamedTuple):
    """Columns of values over queries (queries × columns), their bounds, and the conversations of the queries."""

    queries: pl.Series
    values: Floats
    bounds: Bounds | None
    clusters: _ConversationCounts

    @classmethod
    def of(
        cls, queries: pl.Series, values: Floats, bounds: Bounds | None, conversations: Mapping[str, str]
    ) -> _Columns:
        return cls(queries, values, bounds, _ConversationCounts.of(values, queries, conversations))


def _with_intervals(
    columns: Iterable[_Columns], *, level: float, resamples: int, seed: int
) -> Iterator[tuple[_Columns, MeanIntervals]]:
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


def _over_same_queries(columns: Iterable[_Columns]) -> Iterator[list[_Columns]]:
    """Neighbours over the same queries. Large samples aren't resampled, and stay alone to save memory."""
    waiting: list[_Columns] = []
    for each in columns:
        if waiting and (len(each.queries) > LARGE or not each.queries.equals(waiting[0].queries)):
            yield waiting
            waiting = []
        waiting.append(each)
    if waiting:
        yield waiting


def _with_conversations(frame: pl.DataFrame) -> pl.DataFrame:
    """The column of conversations behind all others, where there are any."""
    if frame["conversations"].null_count() == frame.height:
        return frame.drop("conversations")
    return frame.select(pl.exclude("conversations"), "conversations")


def _counts(part: pl.DataFrame) -> pl.DataFrame:
    """Number of rows by metric and system, and the statuses of rows without a value."""
    return part.group_by("metric", "system", maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("rows"), pl.col("status").filter(pl.col("status") != OK).alias("missing")
    )


def _missing_reasons(statuses: pl.Series) -> str:
    return ", ".join(f"{row[1]:,} {row[0]}" for row in statuses.value_counts(sort=True).iter_rows())


def _none_if_nan(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _check_arguments(level: float, resamples: int, seed: int) -> None:
    if not 0 < level < 1:
        raise InputError(f"the confidence level is {level}", expected="a number between 0 and 1, such as 0.95")
    if resamples < MIN_RESAMPLES:
        raise InputError(f"{resamples} resamples are too few for an interval", expected=f"{MIN_RESAMPLES} or more")
    if seed < 0:
        raise InputError(f"the seed is {seed}", expected="0 or more")


class Comparison(NamedTuple):
    """Differences between systems.

    Attributes
    ----------
    differences: metric, baseline, system, their means, difference, low, high, p, p_holm, wins, ties, losses,
        n (queries with a value for both), total, detectable. Wins are queries on which ``system`` is better; they and
        losses are null for outcomes that are neither better nor worse, such as abstained. Where queries share
        conversations also conversations: how many the n queries are from.
    changes: the queries that changed most: metric, baseline, system, query, before, after, difference.
    test: the test behind the p-values.
    """

    differences: pl.DataFrame
    changes: pl.DataFrame
    test: str
    level: float
    resamples: int
    seed: int

    def lacking(self, metric: str) -> pl.DataFrame:
        """Rows in which a system has so many fewer values than its baseline that it may be worse for all we know."""
        few = pl.col("n_system") < LEAST_SHARE * pl.col("n_baseline")
        return self.differences.filter((pl.col("metric") == metric) & few)

    def worse(self, metric: str, alpha: float = 0.05) -> pl.DataFrame:
        """Rows in which a system is significantly worse than its baseline by this metric."""
        rows = self.differences.filter(pl.col("metric") == metric)
        if not rows.height:
            known = self.differences["metric"].unique(maintain_order=True).to_list()
            raise MetricError(
                f"{metric} was not compared", expected=format_list(known, 12), remedy=f"add it: -m '{metric}'"
            )
        void = rows.filter(pl.col("p_holm").is_null())
        if void.height:
            row = void.row(0, named=True)
            raise InputError(
                f"{row['system']} can't be compared with {row['baseline']} by {metric}: "
                f"0 of {row['total']} queries have a value for both",
                remedy="see why the values are missing: ragworth score",
            )
        up = direction(metric)
        if up == 0:
            raise MetricError(
                f"{metric} is neither better nor worse if it changes, so it can't be a gate",
                expected="an outcome or a metric with a direction, such as correct or wrong",
            )
        nothing = rows.filter((pl.col("mean_baseline") == 0) & (pl.col("mean_system") == 0))
        all_zero = 0 < nothing.height == rows.height  # if another system has more, the labels fit the runs
        if all_zero and up > 0 and _is_metric(metric) and value_bounds(metric) == (0.0, 1.0):
            row = nothing.row(0, named=True)
            raise InputError(
                f"{metric} can't decide: it is 0 for {row['baseline']} and {row['system']} on all {row['n']:,} queries",
                remedy="check that some passages are labelled relevant, and that ids are the same in runs and labels",
            )
        return rows.filter((up * pl.col("difference") < 0) & (pl.col("p_holm") < alpha))

    def _repr_html_(self) -> str:
        """The differences as a small table, for notebooks."""
        rows = [
            {
                "metric": row["metric"],
                "system": f"{row['system']} − {row['baseline']}",
                "difference": row["difference"],
                "low": row["low"],
                "high": row["high"],
                "p (Holm)": row["p_holm"],
                "n of N": f"{row['n']:,} of {row['total']:,}",
                "detectable": row["detectable"],
            }
            for row in self.differences.iter_rows(named=True)
        ]
        caption = f"Differences, with {100 * self.level:g} % intervals ({self.test} test, Holm's correction)"
        return html_table(pl.DataFrame(rows), caption)


def missing_interval(n: int, conversations: int | None = None) -> str:
    """Why a mean of ``n`` values has no interval, in a cell of a table."""
    if n < 2:
        return "–"
    few = conversations is not None and conversations < FEWEST_CONVERSATIONS
    return "too few conversations" if few else "too few differ"


def is_different(row: Mapping[str, Any], alpha: float = 0.05) -> bool:
    """Whether two systems differ significantly: by the test, and by the interval where there is one.

    The interval allows for values that no query has shown yet and the test does not, so where few queries differ the
    interval may hold 0 although p is small.
    """
    holds_zero = row["low"] is not None and row["low"] <= 0 <= row["high"]
    return row["p_holm"] is not None and row["p_holm"] < alpha and not holds_zero


def compare(
    data: Comparable | Mapping[str, Comparable],
    *,
    baseline: str | None = None,
    all_pairs: bool = False,
    pairs: Sequence[tuple[str, str]] | None = None,
    test: Test = "randomisation",
    family: Literal["metric", "all"] = "metric",
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
    changes: int = 5,
    conversations: Mapping[str, str] | None = None,
) -> Comparison:
    """Compare systems query by query.

    Parameters
    ----------
    data: scores, outcomes of answers, results or an evaluation; or a dict of several, by name. For outcomes called
        ``grade``, the shares of correct, wrong and abstained answers are compared too. In a dict, if two have the same
        systems, those are called NAME/SYSTEM and compared with their namesakes in the first.
    baseline: the system to compare the others with; the first by default.
    all_pairs: compare every system with every later one instead.
    pairs: compare these systems only: (baseline, system).
    test: of the mean difference: randomisation, t, wilcoxon, sign, bootstrap or bounded. ``bounded`` keeps its level
        even if two systems have equal means but very different distributions, and needs metrics with a finite range.
    family: scope of Holm's correction: the systems compared by one metric, or all comparisons.
    resamples: of the test, and up to 100,000 of the intervals.
    changes: how many of the queries that changed most to list.
    conversations: the conversation of each query that is a turn (`ragworth.conversations.conversation_ids`). Intervals
        and tests then draw whole conversations, because their turns aren't independent. Results know theirs.

    A query counts if both systems have a value for it.
    """
    _check_arguments(level, resamples, seed)
    known = conversations_of(data) if conversations is None else conversations
    scores, matched = join_scores(data) if isinstance(data, Mapping) else JoinedScores(to_scores(data))
    if test not in TESTS:
        raise InputError(f"unknown test {test!r}", expected=format_list(list(TESTS), 9))
    if family not in ("metric", "all"):
        raise InputError(f"unknown family {family!r}", expected="metric or all")
    systems = scores.distinct("system")
    if len(systems) < 2:
        raise InputError(
            f"{len(systems)} system to compare" if systems else "no systems to compare", expected="two or more runs"
        )
    if baseline is not None and baseline not in systems:
        raise InputError(f"unknown baseline {baseline!r}", expected=format_list(systems, 12))
    if pairs is None:
        pairs = _pairs(systems, baseline, matched, all_pairs=all_pairs)
    rows: list[dict[str, object]] = []
    changed = [pl.DataFrame(schema=CHANGES_SCHEMA)]
    compared = [(m, here) for m in score_matrices(scores) if (here := [pair for pair in pairs if m.has(*pair)])]
    columns = (_difference_columns(matrix, here, test, known) for matrix, here in compared)
    found = _with_intervals(columns, level=level, resamples=min(resamples, MAX_INTERVAL_RESAMPLES), seed=seed)
    for (matrix, here), ((_, pair_differences, bounds, clusters), interval) in zip(compared, found, strict=True):
        column = matrix.columns()
        how: dict[str, Any] = {"resamples": resamples, "seed": seed, "bounds": bounds}
        up = direction(matrix.metric)
        for i, (a, b) in enumerate(here):
            both = ~np.isnan(pair_differences[:, i])
            differences = pair_differences[both, i]
            mine = clusters.of_queries(both)
            least = detectable_difference(differences, test=test, alpha=1 - level, clusters=mine).value
            rows.append(
                {
                    "metric": matrix.metric,
                    "baseline": a,
                    "system": b,
                    "mean_baseline": float(column[a][both].mean()) if both.any() else None,
                    "mean_system": float(column[b][both].mean()) if both.any() else None,
                    "difference": float(differences.mean()) if both.any() else None,
                    "low": _none_if_nan(interval.low[i]),
                    "high": _none_if_nan(interval.high[i]),
                    "p": paired_p(differences, test, **how, clusters=mine) if both.any() else None,
                    "wins": int((up * differences > 0).sum()) if up else None,
                    "ties": int((differences == 0).sum()),
                    "losses": int((up * differences < 0).sum()) if up else None,
                    "n": int(both.sum()),
                    "n_baseline": int((~np.isnan(column[a])).sum()),
                    "n_system": int((~np.isnan(column[b])).sum()),
                    "total": len(both),
                    "detectable": _possible(least, (interval.high[i] - interval.low[i]) / 2, bounds),
                    "conversations": clusters.numbers[i],
                }
            )
            if changes:
                changed.append(_largest_changes(matrix, a, b, column, changes))
    if not rows:
        raise InputError("no metric was computed for at least two systems", expected="the same metrics for all systems")
    return Comparison(_add_holm(rows, family), pl.concat(changed), test, level, resamples, seed)


def _difference_columns(
    matrix: ScoreMatrix, pairs: Sequence[tuple[str, str]], test: Test, conversations: Mapping[str, str]
) -> _Columns:
    """The differences between each two systems."""
    column = matrix.columns()
    differences = np.stack([_rounded_difference(column[a], column[b]) for a, b in pairs], axis=1)
    bounds = difference_bounds(value_bounds(matrix.metric, matrix.values))
    if test == "bounded" and (bounds is None or not np.isfinite(bounds).all()):
        raise InputError(
            f"the test 'bounded' needs the range of {matrix.metric}, which is infinite or unknown",
            expected="metrics with a lowest and a highest value",
            remedy="use --test bootstrap, or leave the metric out",
        )
    return _Columns.of(matrix.queries, differences, bounds, conversations)


def _possible(difference: float | None, half: float, bounds: tuple[float, float] | None) -> float | None:
    """A detectable difference that this metric can have; None for a larger one.

    It is at least half of the interval's length: a smaller one would leave 0 in the interval, which is long where the
    sample may lack something, and the systems wouldn't count as clearly different.
    """
    least = None if difference is None else float(np.fmax(difference, half))
    return None if least is None or (bounds is not None and least > bounds[1]) else least


def _pairs(
    systems: Sequence[str], baseline: str | None, matched: list[tuple[str, str]] | None, *, all_pairs: bool
) -> list[tuple[str, str]]:
    """The systems to compare."""
    if all_pairs:
        return list(combinations(systems, 2))
    if baseline is None and matched is not None:
        return matched
    first = baseline if baseline is not None else systems[0]
    return [(first, system) for system in systems if system != first]


def _rounded_difference(before: Floats, after: Floats) -> Floats:
    """After − before, exactly 0 if they differ only by rounding."""
    difference = after - before
    return np.where(np.abs(difference) < 1e-12, 0.0, difference)


DIFFERENCE_SCHEMA: dict[str, type[pl.DataType]] = {
    "metric": pl.String,
    "baseline": pl.String,
    "system": pl.String,
    "mean_baseline": pl.Float64,
    "mean_system": pl.Float64,
    "difference": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "p": pl.Float64,
    "p_holm": pl.Float64,
    "wins": pl.Int64,
    "ties": pl.Int64,
    "losses": pl.Int64,
    "n": pl.Int64,
    "n_baseline": pl.Int64,
    "n_system": pl.Int64,
    "total": pl.Int64,
    "detectable": pl.Float64,
    "conversations": pl.Int64,
}


CHANGES_SCHEMA: dict[str, type[pl.DataType]] = {
    **dict.fromkeys(("metric", "baseline", "system", "query"), pl.String),
    **dict.fromkeys(("before", "after", "difference"), pl.Float64),
}


def _add_holm(rows: list[dict[str, object]], family: str) -> pl.DataFrame:
    """Add Holm's p-values to the rows."""
    frame = _with_conversations(pl.DataFrame(rows, schema=DIFFERENCE_SCHEMA))
    parts = [frame] if family == "all" else frame.partition_by("metric", maintain_order=True)
    return pl.concat(
        part.with_columns(
            pl.Series("p_holm", holm(part["p"].fill_null(float("nan")).to_numpy()), dtype=pl.Float64).fill_nan(None)
        )
        for part in parts
    )


def _largest_changes(matrix: ScoreMatrix, a: str, b: str, column: dict[str, Floats], most: int) -> pl.DataFrame:
    """The queries on which two systems differ most, leaving out those without a difference."""
    difference = _rounded_difference(column[a], column[b])
    changed = np.flatnonzero(~np.isnan(difference) & (difference != 0))
    largest = changed[np.argsort(-np.abs(difference[changed]), kind="stable")][:most]
    names = {"metric": matrix.metric, "baseline": a, "system": b}
    return pl.DataFrame(
        {
            **{name: [value] * len(largest) for name, value in names.items()},
            "query": matrix.queries.gather(largest),
            "before": column[a][largest],
            "after": column[b][largest],
            "difference": difference[largest],
        },
        schema=CHANGES_SCHEMA,
    )


def correlate(
    scores: Scores,
    *,
    over: Literal["systems", "queries"] = "systems",
    measures: Sequence[str] = tuple(CORRELATIONS),
) -> pl.DataFrame:
    """Correlate every two metrics.

    ``over="systems"`` correlates the systems' means, over queries for which both metrics have a value for the system.
    ``"queries"`` correlates the values of all (system, query) at once.

    Returns first, second, n and the ``measures``: pearson, spearman, kendall (τ-b); null if one side is constant or n <
    2.
    """
    if over not in ("systems", "queries"):
        raise InputError(f"cannot correlate over {over!r}", expected="systems or queries")
    rows: list[dict[str, object]] = []
    for first, second in combinations(scores.distinct("metric"), 2):
        both = _join_metrics(_known_values(scores, first), _known_values(scores, second))
        if over == "systems":
            both = both.group_by("system", maintain_order=True).agg(pl.col("value", "value_right").mean())
        x, y = both["value"].to_numpy(), both["value_right"].to_numpy()
        row: dict[str, object] = {"first": first, "second": second, "n": both.height}
        rows.append(row | {name: _none_if_nan(CORRELATIONS[name](x, y)) for name in measures})
    schema = {"first": pl.String, "second": pl.String, "n": pl.Int64} | dict.fromkeys(measures, pl.Float64)
    return pl.DataFrame(rows, schema=schema)


def _known_values(scores: Scores, metric: str) -> pl.DataFrame:
    """system, query and value of one metric's scores, without missing values."""
    rows = scores.having("metric", [metric]).frame
    return rows.filter(pl.col("status") == OK).select("system", "query", "value")


def _join_metrics(first: pl.DataFrame, second: pl.DataFrame) -> pl.DataFrame:
    """Values of two metrics for contexts that have both: system, query, value, value_right."""
    keys = ["system", "query"]
    if first.select(keys).equals(second.select(keys)):
        return first.with_columns(second["value"].alias("value_right"))
    return first.join(second, on=keys, maintain_order="left")
