"""Means with intervals, differences between systems, and correlations of metrics."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ragworth.errors import InputError, MetricError, RagworthError, format_list
from ragworth.metrics.ground_truth import query_numbers
from ragworth.metrics.parsing import parse
from ragworth.stats.bootstrap import mean_intervals
from ragworth.stats.correlation import CORRELATIONS
from ragworth.stats.paired import TESTS, Test, holm, paired_p
from ragworth.stats.power import detectable_difference
from ragworth.stats.range_intervals import Bounds, difference_bounds
from ragworth.tables import OK, Scores

Floats = npt.NDArray[np.float64]


MIN_RESAMPLES = 100
"""Minimum number of resamples for a meaningful interval."""


class ScoreMatrix(NamedTuple):
    """One metric's values, queries × systems; NaN if missing."""

    metric: str
    queries: pl.Series
    systems: list[str]
    values: Floats


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


def higher_is_better(metric: str) -> bool:
    """Direction of a metric, by its written form; metrics of other tools count as higher is better."""
    try:
        return parse(metric).declaration.higher_is_better
    except RagworthError:
        return True


def value_bounds(metric: str) -> Bounds | None:
    """Lowest and highest value of a metric, by its written form; None for metrics of other tools."""
    try:
        return parse(metric).bounds(np.inf)
    except RagworthError:
        return None


def summarise(scores: Scores, *, level: float = 0.95, resamples: int = 2000, seed: int = 0) -> pl.DataFrame:
    """Mean of each metric for each system, with an interval over queries.

    Returns metric, system, mean, low, high, n (queries with a value), total (queries) and missing (why the others have
    none, with counts). A mean of no values is null. The interval is null for fewer than two values, and if nearly all
    values are equal and the metric has no finite range.
    """
    _check_arguments(level, resamples, seed)
    rows: list[dict[str, object]] = []
    for matrix in score_matrices(scores):
        interval = mean_intervals(
            matrix.values, level=level, resamples=resamples, seed=seed, bounds=value_bounds(matrix.metric)
        )
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
                }
            )
    counts = pl.concat([_counts(part) for part in scores.parts])
    counts = counts.group_by("metric", "system", maintain_order=True).agg(
        pl.col("total").sum(), pl.col("missing").explode(empty_as_null=False)
    )
    schema = {
        "metric": pl.String,
        "system": pl.String,
        "mean": pl.Float64,
        "low": pl.Float64,
        "high": pl.Float64,
        "n": pl.Int64,
    }
    frame = pl.DataFrame(rows, schema=schema).join(counts, on=["metric", "system"], maintain_order="left")
    return frame.with_columns(pl.col("missing").map_elements(_missing_reasons, return_dtype=pl.String))


def _counts(part: pl.DataFrame) -> pl.DataFrame:
    """Number of rows by metric and system, and the statuses of rows without a value."""
    return part.group_by("metric", "system", maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("total"), pl.col("status").filter(pl.col("status") != OK).alias("missing")
    )


def _missing_reasons(statuses: pl.Series) -> str:
    return ", ".join(f"{row[1]} {row[0]}" for row in statuses.value_counts(sort=True).iter_rows())


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
        n (queries with a value for both), total, detectable. Wins are queries on which ``system`` is better.
    changes: the queries that changed most: metric, baseline, system, query, before, after, difference.
    test: the test behind the p-values.
    """

    differences: pl.DataFrame
    changes: pl.DataFrame
    test: str
    level: float
    resamples: int
    seed: int

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
        drop = pl.col("difference") < 0 if higher_is_better(metric) else pl.col("difference") > 0
        return rows.filter(drop & (pl.col("p_holm") < alpha))


def compare(
    scores: Scores,
    *,
    baseline: str | None = None,
    all_pairs: bool = False,
    test: Test = "randomisation",
    family: Literal["metric", "all"] = "metric",
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
    changes: int = 5,
) -> Comparison:
    """Compare systems query by query.

    Parameters
    ----------
    baseline: the system to compare the others with; the first by default.
    all_pairs: compare every system with every later one instead.
    test: of the mean difference: randomisation, t, wilcoxon, sign, bootstrap or bounded. ``bounded`` keeps its level
        even if two systems have equal means but very different distributions, and needs metrics with a finite range.
    family: scope of Holm's correction: the systems compared by one metric, or all comparisons.
    changes: how many of the queries that changed most to list.

    A query counts if both systems have a value for it.
    """
    _check_arguments(level, resamples, seed)
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
    first = baseline if baseline is not None else systems[0]
    pairs = list(combinations(systems, 2)) if all_pairs else [(first, s) for s in systems if s != first]
    rows: list[dict[str, object]] = []
    changed: list[pl.DataFrame] = []
    for matrix in score_matrices(scores):
        column = {system: matrix.values[:, i] for i, system in enumerate(matrix.systems)}
        here = [(a, b) for a, b in pairs if a in column and b in column]
        if not here:
            continue
        pair_differences = np.stack([_rounded_difference(column[a], column[b]) for a, b in here], axis=1)
        bounds = difference_bounds(value_bounds(matrix.metric))
        if test == "bounded" and (bounds is None or not np.isfinite(bounds).all()):
            raise InputError(
                f"the test 'bounded' needs the range of {matrix.metric}, which is infinite or unknown",
                expected="metrics with a lowest and a highest value",
                remedy="use --test bootstrap, or leave the metric out",
            )
        interval = mean_intervals(pair_differences, level=level, resamples=resamples, seed=seed, bounds=bounds)
        up = 1 if higher_is_better(matrix.metric) else -1
        for i, (a, b) in enumerate(here):
            both = ~np.isnan(pair_differences[:, i])
            differences = pair_differences[both, i]
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
                    "p": paired_p(differences, test, resamples=resamples, seed=seed, bounds=bounds)
                    if both.any()
                    else None,
                    "wins": int((up * differences > 0).sum()),
                    "ties": int((differences == 0).sum()),
                    "losses": int((up * differences < 0).sum()),
                    "n": int(both.sum()),
                    "total": len(both),
                    "detectable": detectable_difference(differences, alpha=1 - level).value,
                }
            )
            changed.append(_largest_changes(matrix, a, b, column, changes))
    if not rows:
        raise InputError("no metric was computed for at least two systems", expected="the same metrics for all systems")
    return Comparison(_add_holm(rows, family), pl.concat(changed), test, level, resamples, seed)


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
    "total": pl.Int64,
    "detectable": pl.Float64,
}


def _add_holm(rows: list[dict[str, object]], family: str) -> pl.DataFrame:
    """Add Holm's p-values to the rows."""
    frame = pl.DataFrame(rows, schema=DIFFERENCE_SCHEMA)
    parts = [frame] if family == "all" else frame.partition_by("metric", maintain_order=True)
    return pl.concat(
        part.with_columns(
            pl.Series("p_holm", holm(part["p"].fill_null(float("nan")).to_numpy()), dtype=pl.Float64).fill_nan(None)
        )
        for part in parts
    )


def _largest_changes(matrix: ScoreMatrix, a: str, b: str, column: dict[str, Floats], most: int) -> pl.DataFrame:
    """The queries on which two systems differ most, leaving out those without a difference."""
    frame = pl.DataFrame(
        {
            "metric": pl.repeat(matrix.metric, len(matrix.queries), eager=True),
            "baseline": pl.repeat(a, len(matrix.queries), eager=True),
            "system": pl.repeat(b, len(matrix.queries), eager=True),
            "query": matrix.queries,
            "before": column[a],
            "after": column[b],
        }
    ).with_columns(pl.Series("difference", _rounded_difference(column[a], column[b])))
    changed = frame.filter(pl.col("difference").is_not_nan() & (pl.col("difference") != 0))
    return changed.sort(pl.col("difference").abs(), descending=True, maintain_order=True).head(most)


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
