"""What all charts share: Altair, frames that are safe to draw, finished Vega-Lite specifications.

A chart is as wide as its place in the page. Its data are inside the specification; nothing is ever loaded.
"""

from __future__ import annotations

from typing import Any, ClassVar

import polars as pl

from ragworth.errors import MissingExtraError, format_cell
from ragworth.report.charts.names import shorten_names
from ragworth.report.charts.theme import MARK

ROW_HEIGHT = 24
"""Height of a system's row."""

Spec = dict[str, Any]


def load_altair() -> Any:
    """Altair, or the line that installs it."""
    try:
        import altair
    except ImportError as error:
        raise MissingExtraError("altair", "report", "drawing the report's charts") from error
    return altair


class _Rows:
    """The rows of a chart. Altair copies lists whenever a chart is changed, which takes longer than all the rest."""

    _schema: ClassVar[dict[str, str]] = {"type": "array"}  # Altair asks what it turns to a dict whether it has one

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows

    def to_dict(self) -> list[dict[str, Any]]:
        return self.rows


def chart_data(frame: pl.DataFrame) -> Any:
    """A frame as the data of a chart."""
    return load_altair().Data(values=_Rows(frame.to_dicts()))


def escape_frame(frame: pl.DataFrame) -> pl.DataFrame:
    """Texts with control characters as escapes: XML cannot hold them, and drawing one would end the process.

    Systems get short names to stand beside axes, and ``name`` keeps the whole one.
    """
    made = frame.with_columns(pl.col(pl.String).map_elements(format_cell, return_dtype=pl.String))
    if "system" not in made.columns:
        return made
    short = shorten_names(made["system"].unique(maintain_order=True).to_list())
    return made.with_columns(
        pl.col("system").alias("name"), pl.col("system").replace_strict(short, return_dtype=pl.String)
    )


def finish_chart(chart: Any, height: int, width: str | dict[str, int] = "container") -> Spec:
    """A finished chart: as wide as its place, no schema to be looked up anywhere."""
    # Set here: each of Altair's own methods copies the whole chart.
    spec = {**chart.to_dict(validate=False), "width": width, "height": height}
    spec.pop("$schema", None)
    spec.pop("config", None)
    if width == "container":
        spec["autosize"] = {"type": "fit-x", "contains": "padding"}
    return dict(_printable(spec))


def _printable(spec: Any, key: str = "") -> Any:
    """The same of titles, which hold names of metrics.

    A backslash in a title is drawn as the sign that looks like it: Vega-Lite puts titles into expressions, for
    tooltips and descriptions, and there it would begin an escape.
    """
    if isinstance(spec, dict):
        return {key: value if key == "values" else _printable(value, key) for key, value in spec.items()}
    if isinstance(spec, list):
        return [_printable(each) for each in spec]
    if not isinstance(spec, str) or spec.startswith(MARK):
        return spec
    return format_cell(spec).replace("\\", "∖") if key == "title" else format_cell(spec)
