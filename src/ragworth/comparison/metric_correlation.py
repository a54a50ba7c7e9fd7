"""Correlations of metrics."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Literal

import polars as pl

from ragworth.comparison.query_intervals import none_if_nan
from ragworth.core.errors import InputError
from ragworth.data import OK, Scores
from ragworth.stats.correlation import CORRELATIONS


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
