"""The mean of each metric for each system, with an interval, and correlations of metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Literal

import numpy as np
import polars as pl

from ragworth.comparison.comparable import Comparable, conversations_of, to_scores
from ragworth.comparison.score_matrix import (
    QueryColumns,
    check_arguments,
    conversations_last,
    none_if_nan,
    score_matrices,
    value_bounds,
    with_intervals,
)
from ragworth.core.errors import InputError
from ragworth.data import OK, Scores
from ragworth.stats.correlation import CORRELATIONS

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
    check_arguments(level, resamples, seed)
    known = conversations_of(data) if conversations is None else conversations
    scores = to_scores(data)
    rows: list[dict[str, object]] = []
    matrices = score_matrices(scores)
    columns = (QueryColumns.of(m.queries, m.values, value_bounds(m.metric, m.values), known) for m in matrices)
    found = with_intervals(columns, level=level, resamples=resamples, seed=seed)
    for matrix, ((*_, clusters), interval) in zip(matrices, found, strict=True):
        for i, system in enumerate(matrix.systems):
            values = matrix.values[:, i]
            n = int((~np.isnan(values)).sum())
            rows.append(
                {
                    "metric": matrix.metric,
                    "system": system,
                    "mean": float(np.nanmean(values)) if n else None,
                    "low": none_if_nan(interval.low[i]),
                    "high": none_if_nan(interval.high[i]),
                    "n": n,
                    "conversations": clusters.numbers[i],
                    "total": len(matrix.queries),
                }
            )
    counts = scores.frame.group_by("metric", "system", maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("rows"), pl.col("status").filter(pl.col("status") != OK).alias("missing")
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
    frame = conversations_last(frame.with_columns(pl.concat_list("missing", absent)).drop("rows"))
    return frame.with_columns(pl.col("missing").map_elements(_missing_reasons, return_dtype=pl.String))


def _missing_reasons(statuses: pl.Series) -> str:
    return ", ".join(f"{row[1]:,} {row[0]}" for row in statuses.value_counts(sort=True).iter_rows())


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
        rows.append(row | {name: none_if_nan(CORRELATIONS[name](x, y)) for name in measures})
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
