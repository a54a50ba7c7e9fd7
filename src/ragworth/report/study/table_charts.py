"""Charts of the tables of studies."""

from __future__ import annotations

from typing import Any

import polars as pl

from ragworth.core.errors import format_count, format_list
from ragworth.report.charts.rows import KINDS
from ragworth.report.study.charts import bar_chart, curve_chart, dot_chart, heat_chart, outcome_chart

MEAN = pl.coalesce(pl.col("^(correct|mean)$"))
"""The share of correct answers, or the mean of an outcome that isn't a grade."""


def outcome_figure(table: pl.DataFrame, label: str, what: str) -> dict[str, Any]:
    """Stacked bars of the shares of each arm; bars of the means if an outcome isn't a grade.

    ``table``: case, the column ``label``, a column for each kind of answer or the mean, low, high, queries.
    """
    group = [pl.col("case").alias("group")] if table["case"].n_unique() > 1 else []
    names = table.select(pl.col(label).cast(pl.String).alias("label"), *group)
    if "correct" not in table.columns or table["correct"].null_count():
        return bar_chart(names.hstack(table.select("low", "high", value=MEAN, n="queries")), what)
    kinds = [kind for kind in KINDS if kind in table.columns]
    total = table["contexts" if "contexts" in table.columns else "queries"].alias("total")
    parts = names.hstack([total, *table.select(kinds)]).unpivot(kinds, index=[*names.columns, "total"])
    shares = parts.rename({"variable": "kind", "value": "share"})
    counts = shares.with_columns((pl.col("share") * pl.col("total")).round().cast(pl.Int64).alias("count"))
    return outcome_chart(names.join(counts.drop("total"), on=names.columns, maintain_order="left"))


def outcome_curve(table: pl.DataFrame, place: str, line: pl.Expr) -> pl.DataFrame:
    """The share of correct answers, or the mean, of each arm, as `curve_chart` takes it."""
    return table.select(
        line.alias("line"), pl.col(place).alias("place"), MEAN.alias("value"), "low", "high", n="queries"
    )


def heat_figure(
    table: pl.DataFrame, down: str, along: str, value: str, legend: str, *, share: bool = False, numeric: bool = False
) -> dict[str, Any]:
    """A value of each row of a table by two of its columns, in their order; ``numeric``: columns in that of numbers.

    ``share``: values are shares, otherwise differences or correlations.
    """
    cells, kind = table.select(first=down, second=along, value=value, n="contexts"), "share" if share else "diverging"
    rows, places = (cells[name].unique(maintain_order=True).to_list() for name in ("first", "second"))
    places = sorted(places, key=float) if numeric else places
    return heat_chart(cells, rows, places, legend, kind, along=along if numeric else "")  # type: ignore[arg-type]


def curves_or_dots(table: pl.DataFrame, line: pl.Expr, place: str, value: str, title: str) -> dict[str, Any]:
    """A curve for each line over its places; a dot for each if there is one place."""
    frame = table.select(line.alias("line"), "low", "high", place=place, value=value, n="queries")
    if table[place].n_unique() == 1:
        return dot_chart(frame.rename({"line": "label"}), title, zero=True)
    return curve_chart(frame, place, title, zero=True)


def mirrored_heat(pairs: pl.DataFrame, names: list[str], value: str, legend: str, same: float | None = None) -> Any:
    """A value of every two names, from a table of first, second and maybe items; ``same``: of a name with itself."""
    more = [pl.col("items").alias("n")] if "items" in pairs.columns else []
    sides = (("first", "second"), ("second", "first"))
    both = [pairs.select(pl.col(value).alias("value"), *more, first=a, second=b) for a, b in sides]
    if same is not None:
        both.append(pl.DataFrame({"first": names, "second": names, "value": [same] * len(names)}))
    return heat_chart(pl.concat(both, how="diagonal").drop_nulls("value"), names, names, legend)


def shared_lines(table: pl.DataFrame, place: str, value: str, most: int) -> tuple[pl.DataFrame, str]:
    """The first metrics of a table as lines for `curve_chart`, those that agree as one; and how many are not drawn."""
    alike: dict[object, list[str]] = {}
    for (metric,), part in table.drop_nulls(value).group_by("metric", maintain_order=True):
        alike.setdefault(tuple(part.select(place, pl.col(value).round(9)).iter_rows()), []).append(str(metric))
    groups = list(alike.values())
    labels = [(group[0], format_list(group, 4)) for group in groups[:most]]
    names = pl.DataFrame(labels, {"metric": pl.String, "line": pl.String}, orient="row")
    lines = names.join(table.drop_nulls(value), on="metric", maintain_order="left_right")
    more = sum(len(group) for group in groups[most:])
    words = f" {format_count(more, 'more metric')} in the table." if more else ""
    return lines.rename({place: "place", value: "value"}), words
