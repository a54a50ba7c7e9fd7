"""Charts over two axes: curves with bands, clouds of points, matrices of numbers, with colours and tooltips."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import polars as pl

from ragworth.core.errors import TableError, format_cell, format_list
from ragworth.report.charts.base import (
    DASHES,
    SHAPES,
    Spec,
    chart_data,
    escape_frame,
    finish_chart,
    load_altair,
    shorten_names,
    theme_color,
)

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


HEIGHT = 280
TICKS = 16
"""Places that are each named at an axis; more are thinned out."""
POINTS = 1500
"""Points drawn at most: more hide each other and weigh the page down."""


def curve_chart(
    frame: pl.DataFrame, x: str, y: str, zero: bool = False, band: bool = True, log: bool = False, height: int = HEIGHT
) -> Spec:
    """A line for each name, with its interval as a band: line, place, value, maybe low, high and n.

    ``place`` is a number, or a name (then in the order in which they first come). Lines differ by colour, dash and
    shape; those for which the legend has no room are grey. ``zero`` draws a line where 0 is; ``log`` spaces the places
    by their logarithm.
    """
    alt = load_altair()
    named = not frame.schema["place"].is_numeric() if "place" in frame.columns else False
    frame = prepare_frame(frame, {"line": True, "place": named, "value": False}, ("low", "high", "n"))
    every = unique_names(frame, "line")
    names = every if len(every) <= HUES + 1 else [*every[:HUES], OTHERS]
    own = pl.when(pl.col("line").is_in(names)).then("line").otherwise(pl.lit(OTHERS))
    frame = with_dashes(frame.with_columns(own.alias("legend")), "legend", names)
    columns = {"line": "line", "place": x, "value": y, "low": "low", "high": "high", "n": "n"}
    picked = alt.selection_point(fields=["legend"], bind="legend", name="picked")
    base = alt.Chart().encode(
        x=_place_axis(frame, x, named, log),
        color=color_channel("legend", names),
        detail=alt.Detail("line:N"),
        opacity=_dim_condition(picked, 0.95, 0.12),
    )
    up = alt.Y("value:Q", title=y, scale=alt.Scale(zero=zero))
    line = base.mark_line(strokeWidth=1.9).encode(y=up, strokeDash=dash_channel(names))
    point = base.mark_point(filled=True, size=50).encode(
        y=up, shape=shape_channel("legend", names), tooltip=tooltip_fields(frame, columns)
    )
    layers = [line, point.add_params(picked)]
    if band and {"low", "high"} <= set(frame.columns):
        faint = 0.16 if len(names) <= 4 else 0.08  # bands that lie over each other hide what is below
        area = base.mark_area().encode(
            y=alt.Y("low:Q", title=y, scale=alt.Scale(zero=zero)),
            y2=alt.Y2("high:Q"),
            opacity=_dim_condition(picked, faint, 0.02),
        )
        layers.insert(0, area)
    if zero:
        line = alt.Chart(chart_data(pl.DataFrame({"at": [0]}))).mark_rule(color=theme_color("soft"))
        layers.insert(0, line.encode(y=alt.Y("at:Q")))
    known = {key: name for key, name in columns.items() if key in frame.columns}
    return describe_spec(finish_chart(alt.layer(*layers, data=chart_data(frame)), height), names, known)


def _dim_condition(picked: Any, shown: float, dimmed: float) -> Any:
    alt = load_altair()
    return alt.OpacityValue(dimmed, condition={"param": picked.name, "value": shown})


def _place_axis(frame: pl.DataFrame, title: str, named: bool, log: bool) -> Any:
    """The axis of the places."""
    alt = load_altair()
    if named:
        return alt.X("place:O", title=title, sort=unique_names(frame, "place"), axis=alt.Axis(labelAngle=0))
    places = frame["place"].drop_nulls().unique().sort().to_list()
    whole = all(float(place).is_integer() for place in places)
    marks = {"values": places} if len(places) <= TICKS else {}
    # 0 has no logarithm; symlog is close to one elsewhere.
    kind = {"type": "log" if min(places, default=1) > 0 else "symlog"} if log else {"zero": False}
    scale = alt.Scale(**kind, nice=False, padding=12)
    return alt.X(
        "place:Q", title=title, scale=scale, axis=alt.Axis(format="d" if whole else ".3~g", grid=False, **marks)
    )


def point_chart(frame: pl.DataFrame, x: str, y: str, fit: bool = True) -> Spec:
    """A point for each row: x, y, maybe group and label; ``fit`` draws the line of least squares for each group.

    Of more than 1,500 points so many are drawn, evenly through the rows, and the axis says so; lines are fitted to all.
    """
    alt = load_altair()
    frame = prepare_frame(frame, {"x": False, "y": False}, ("group", "label")).drop_nulls(["x", "y"])
    groups = unique_names(frame, "group") if "group" in frame.columns else []
    drawn = frame[np.linspace(0, frame.height - 1, POINTS).astype(int)] if frame.height > POINTS else frame
    title = f"{x} ({POINTS:,} of {frame.height:,} points drawn)" if frame.height > POINTS else x
    right = x_axis("x", title, scale=alt.Scale(zero=False))
    up = alt.Y("y:Q", title=y, scale=alt.Scale(zero=False))
    columns = {"label": "label", "group": "group", "x": x, "y": y}
    hue: dict[str, Any] = {"color": color_channel("group", groups)} if groups else {}
    paint = {} if groups else {"color": theme_color("main")}
    marks = {"shape": shape_channel("group", groups)} if groups else {}
    cloud = (
        alt.Chart(chart_data(drawn))
        .mark_point(filled=True, size=34, opacity=0.5, **paint)
        .encode(x=right, y=up, tooltip=tooltip_fields(frame, columns), **hue, **marks)
    )
    layers = [cloud]
    lines = _fit_lines(frame) if fit else None
    if lines is not None and lines.height:
        stroke = {"strokeDash": dash_channel(groups)} if groups else {}
        line = alt.Chart(chart_data(with_dashes(lines, "group", groups))).mark_line(strokeWidth=2.2, **paint)
        layers.append(line.encode(x=right, y=up, **hue, **stroke))
    known = {key: name for key, name in columns.items() if key in frame.columns}
    return describe_spec(finish_chart(alt.layer(*layers), 320), groups, known)


def _fit_lines(frame: pl.DataFrame) -> pl.DataFrame:
    """Two ends of a line of least squares for each group that has two different x."""
    grouped = frame if "group" in frame.columns else frame.with_columns(group=pl.lit(""))
    rows: list[dict[str, Any]] = []
    for (group,), part in grouped.group_by("group", maintain_order=True):
        x, y = part["x"].cast(pl.Float64).to_numpy(), part["y"].cast(pl.Float64).to_numpy()
        if np.ptp(x) == 0:
            continue
        slope = ((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum()
        rows += [
            {"group": group, "x": float(at), "y": float(y.mean() + slope * (at - x.mean()))}
            for at in (x.min(), x.max())
        ]
    return pl.DataFrame(rows, schema={"group": pl.String, "x": pl.Float64, "y": pl.Float64})


def heat_chart(
    frame: pl.DataFrame,
    rows: Sequence[str],
    columns: Sequence[str],
    legend: str,
    kind: Literal["diverging", "correlation", "share", "plain"] = "diverging",
    *,
    down: str = "",
    along: str = "",
) -> Spec:
    """A cell for each pair, with its number in it: first (of ``rows``), second (of ``columns``), value.

    Maybe also label (to stand in the cell in place of the number) and n. ``legend`` says what the value is. Colours:
    ``diverging`` from the largest distance below 0 through 0 to as much above; ``correlation`` from −1 through 0 to 1;
    ``share`` from 0 to 1; ``plain`` from the least to the greatest value. Cells without a value are marked. ``down``
    and ``along`` are titles of the axes.
    """
    alt = load_altair()
    said = {"words": pl.col("label").cast(pl.String)} if "label" in frame.columns else {"words": _number("value")}
    frame = prepare_frame(frame.with_columns(**said), {"first": True, "second": True, "value": False}, ("words", "n"))
    names = [list(short_names([format_cell(str(name)) for name in each]).values()) for each in (rows, columns)]
    step = min(96, max(54, 640 // max(1, len(columns))))
    places = _places(names, step, down, along)
    ends, colors = _span(frame["value"].drop_nulls(), kind)
    filled = frame.drop_nulls("value").with_columns(strong=_is_dark(ends))
    shown = {"first": down or "row", "second": along or "column", "value": legend, "n": "n"}
    scale = alt.Scale(domain=ends, range=[theme_color(name) for name in colors], interpolate="rgb", clamp=True)
    base = alt.Chart().encode(**places)
    cells = base.mark_rect(stroke=theme_color("paper"), strokeWidth=1).encode(
        color=alt.Color("value:Q", title=legend, scale=scale, legend=alt.Legend(gradientLength=180)),
        tooltip=tooltip_fields(filled, shown),
    )
    # Altair's own `condition` takes as long as the rest of the chart.
    dark = alt.ColorValue(theme_color("text"), condition={"test": "datum.strong", "value": theme_color("strong")})
    layers = [cells, base.mark_text(fontSize=11, limit=step - 4).encode(text=alt.Text("words:N"), color=dark)]
    every = [pl.Series(name, each, pl.String).to_frame() for name, each in zip(("first", "second"), names, strict=True)]
    empty = every[0].join(every[1], how="cross").join(filled, on=["first", "second"], how="anti")
    if empty.height:
        none = alt.Chart(chart_data(empty)).encode(**places)
        layers.append(none.mark_text(fontSize=12, color=theme_color("soft")).encode(text=alt.TextValue("–")))
    made = finish_chart(alt.layer(*layers, data=chart_data(filled)), 30 * len(rows), {"step": step})
    return describe_spec(
        made, [], {key: name for key, name in shown.items() if key in frame.columns}, wide=len(columns) > 4
    )


def _number(column: str) -> pl.Expr:
    """Two decimals with a true minus, and none before 0.00."""
    plain = pl.col(column).cast(pl.Float64).map_elements(lambda v: f"{v:.2f}", return_dtype=pl.String)
    return plain.replace({"-0.00": "0.00"}).str.replace("-", "−", literal=True)


def _places(names: Sequence[list[str]], step: int, down: str, along: str) -> dict[str, Any]:
    """The two axes of a matrix; labels lean where they are longer than a cell is wide."""
    alt = load_altair()
    rows, columns = names
    lean = -40 if 7 * max(map(len, columns), default=0) > step else 0
    return {
        "x": alt.X(
            "second:N",
            sort=columns,
            title=along or None,
            scale=alt.Scale(domain=columns),
            axis=alt.Axis(labelAngle=lean, labelLimit=190),
        ),
        "y": alt.Y("first:N", sort=rows, title=down or None, scale=alt.Scale(domain=rows)),
    }


def _span(found: pl.Series, kind: str) -> tuple[list[float], list[str]]:
    """Between which values the colours are, and the colours."""
    low, high = (float(found.min()), float(found.max())) if len(found) else (0.0, 1.0)  # type: ignore[arg-type]
    if kind in ("diverging", "correlation"):
        end = 1.0 if kind == "correlation" else max(abs(low), abs(high)) or 1.0
        return [-end, 0.0, end], ["minus", "middle", "plus"]
    if kind == "share":
        return [0.0, 1.0], ["middle", "plus"]
    return [low, high if high > low else low + 1], ["middle", "plus"]


def _is_dark(ends: Sequence[float]) -> pl.Expr:
    """Where a cell is so dark that its number must be light."""
    if len(ends) == 3:
        return pl.col("value").abs() > 0.6 * ends[2]
    return pl.col("value") > ends[0] + 0.6 * (ends[1] - ends[0])
