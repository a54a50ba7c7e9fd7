"""What the charts of studies share: frames made fit to be drawn, colours with shapes, tooltips, numbers to be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from ragworth.core.errors import TableError, format_cell, format_list
from ragworth.report.charts.base import Spec, escape_frame, load_altair, shorten_names
from ragworth.report.charts.theme import DASHES, SHAPES, theme_color

HUES = 8
"""Colours that the theme has for groups; the ninth group has the first colour with another dash or shape."""
OTHERS = "the others"
"""Lines for which a legend has no room; they are grey."""
WHOLE = "whole "
"""Before the name of a column: the same with its names in full, for tooltips."""


def prepare_frame(frame: pl.DataFrame, needed: Mapping[str, bool], optional: Sequence[str] = ()) -> pl.DataFrame:
    """The columns that a chart knows, safe to draw: ``needed`` says which must be there and whether they are names.

    Names get a short form to stand beside axes; the whole one is kept beside it. What is no number is null.
    """
    lacking = [name for name in needed if name not in frame.columns]
    if lacking:
        raise TableError(f"a chart lacks {format_list(lacking)}", expected=format_list([*needed, *optional], 12))
    known = [name for name in (*needed, *optional) if name in frame.columns]
    made = frame.select(known)
    names = [name for name in known if needed.get(name, name in ("group", "label"))]
    made = made.with_columns(pl.col(name).cast(pl.String).fill_null("–") for name in names)
    numbers = [name for name in known if made.schema[name].is_numeric()]
    made = escape_frame(made).with_columns(
        pl.when(pl.col(name).cast(pl.Float64).is_finite()).then(pl.col(name)).alias(name) for name in numbers
    )
    for name in names:
        short = short_names(made[name].to_list())
        made = made.with_columns(
            pl.col(name).alias(f"{WHOLE}{name}"), pl.col(name).replace_strict(short, return_dtype=pl.String)
        )
    return made


def short_names(names: Sequence[str]) -> dict[str, str]:
    """Short forms of names, never two alike."""
    return shorten_names(list(dict.fromkeys(names)))


def unique_names(frame: pl.DataFrame, column: str) -> list[str]:
    """The names of a column, as they first come."""
    return frame[column].unique(maintain_order=True).to_list()


def color_channel(column: str, names: Sequence[str]) -> Any:
    """A colour for each name."""
    alt = load_altair()
    hues = ["none" if name == OTHERS else f"system-{i % HUES}" for i, name in enumerate(names)]
    scale = alt.Scale(domain=list(names), range=list(map(theme_color, hues)))
    return alt.Color(f"{column}:N", title=None, sort=list(names), scale=scale, legend=_legend())


def shape_channel(column: str, names: Sequence[str]) -> Any:
    """A shape for each name, with the colour: nothing is said by colour alone."""
    alt = load_altair()
    scale = alt.Scale(domain=list(names), range=[SHAPES[i % len(SHAPES)] for i in range(len(names))])
    return alt.Shape(f"{column}:N", title=None, sort=list(names), scale=scale, legend=_legend())


def _legend() -> Any:
    """Signs in full colour, however faint the marks are."""
    return load_altair().Legend(symbolOpacity=1)


def dash_channel(names: Sequence[str]) -> Any:
    """A dash for each number of the column ``dash``, by :func:`with_dashes`."""
    alt = load_altair()
    numbers = list(range(len(names)))
    scale = alt.Scale(domain=numbers, range=[DASHES[i % len(DASHES)] for i in numbers])
    return alt.StrokeDash("dash:N", sort=numbers, scale=scale, legend=None)


def with_dashes(frame: pl.DataFrame, column: str, names: Sequence[str]) -> pl.DataFrame:
    """A frame with the numbers of its lines; by their names, a legend would draw signs with dashed edges."""
    place = {name: number for number, name in enumerate(names)}
    return frame.with_columns(dash=pl.col(column).replace_strict(place, default=0, return_dtype=pl.Int64))


def x_axis(field: str, title: str, **options: Any) -> Any:
    """A horizontal axis of numbers, with few enough of them that none is left out on a phone."""
    alt = load_altair()
    scale = options.pop("scale", None) or alt.Scale()
    axis = alt.Axis(tickCount=6, labelFlush=False, **options)
    return alt.X(f"{field}:Q", title=title, scale=scale, axis=axis)


def tooltip_fields(frame: pl.DataFrame, titles: Mapping[str, str], number: str = ".4f") -> list[Any]:
    """A line of the tooltip for each of the columns that are there, names in full."""
    alt = load_altair()
    made = []
    for column, title in titles.items():
        if column not in frame.columns:
            continue
        kind = frame.schema[column]
        if kind.is_float():
            made.append(alt.Tooltip(f"{column}:Q", title=title, format=number))
        elif kind.is_numeric():
            made.append(alt.Tooltip(f"{column}:Q", title=title))
        else:
            whole = f"{WHOLE}{column}" if f"{WHOLE}{column}" in frame.columns else column
            made.append(alt.Tooltip(f"{whole}:N", title=title))
    return made


def describe_spec(spec: Spec, legend: Sequence[str], columns: Mapping[str, str], *, wide: bool = False) -> Spec:
    """A chart with what a page needs to know of it.

    ``longest``, so that a legend gets as many columns as there is room for; ``columns``, the numbers to be read as a
    table, and what they are called; ``wide``, where it is to be scrolled rather than squeezed.
    """
    titles = {key: format_cell(title) for key, title in columns.items()}
    return spec | {
        "usermeta": {"longest": max(map(len, legend), default=0), "columns": titles, "wide": wide},
    }


def spec_numbers(spec: Spec) -> pl.DataFrame | None:
    """The numbers that a chart shows, as a table; None where it does not say which they are."""
    columns: dict[str, str] = (spec.get("usermeta") or {}).get("columns") or {}
    for values in _values(spec):
        if values and set(columns) <= {key.removeprefix(WHOLE) for key in values[0]}:
            rows = [{title: row.get(f"{WHOLE}{key}", row.get(key)) for key, title in columns.items()} for row in values]
            made = pl.DataFrame(rows, infer_schema_length=None)
            return made.select(name for name in made.columns if made[name].null_count() < made.height)
    return None


def _values(spec: Any) -> list[list[dict[str, Any]]]:
    """All data inside a specification."""
    if isinstance(spec, Mapping):
        found = [value for key, value in spec.items() if key == "values" and isinstance(value, list)]
        found = [value for value in found if value and isinstance(value[0], dict)]
        return found + [each for key, value in spec.items() if key != "values" for each in _values(value)]
    return [each for part in spec for each in _values(part)] if isinstance(spec, list) else []
