"""Charts over two axes: curves with bands, clouds of points with fitted lines, and matrices of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import polars as pl

from ragworth.report.page.charts import Spec, finished, library, values
from ragworth.report.page.theme import ink
from ragworth.report.render import cell
from ragworth.report.study.channels import across, brief, color, dash, dashed, noted, order, prepared, shape, tips

HEIGHT = 280
TICKS = 16
"""Places that are each named at an axis; more are thinned out."""
POINTS = 1500
"""Points drawn at most: more hide each other and weigh the page down."""


def curve(
    frame: pl.DataFrame, x: str, y: str, zero: bool = False, band: bool = True, log: bool = False, height: int = HEIGHT
) -> Spec:
    """A line for each name, with its interval as a band: line, place, value, maybe low, high and n.

    ``place`` is a number, or a name (then in the order in which they first come). Lines differ by colour, dash and
    shape. ``zero`` draws a line where 0 is; ``log`` spaces the places by their logarithm.
    """
    alt = library()
    named = not frame.schema["place"].is_numeric() if "place" in frame.columns else False
    frame = prepared(frame, {"line": True, "place": named, "value": False}, ("low", "high", "n"))
    names = order(frame, "line")
    frame = dashed(frame, "line", names)
    columns = {"line": "line", "place": x, "value": y, "low": "low", "high": "high", "n": "n"}
    picked = alt.selection_point(fields=["line"], bind="legend", name="picked")
    base = alt.Chart().encode(
        x=_across(frame, x, named, log), color=color("line", names), opacity=_dimmed(picked, 0.95, 0.12)
    )
    up = alt.Y("value:Q", title=y, scale=alt.Scale(zero=zero))
    line = base.mark_line(strokeWidth=1.9).encode(y=up, strokeDash=dash(names))
    point = base.mark_point(filled=True, size=50).encode(y=up, shape=shape("line", names), tooltip=tips(frame, columns))
    layers = [line, point.add_params(picked)]
    if band and {"low", "high"} <= set(frame.columns):
        faint = 0.16 if len(names) <= 4 else 0.08  # bands that lie over each other hide what is below
        area = base.mark_area().encode(
            y=alt.Y("low:Q", title=y, scale=alt.Scale(zero=zero)), y2="high:Q", opacity=_dimmed(picked, faint, 0.02)
        )
        layers.insert(0, area)
    if zero:
        layers.insert(0, alt.Chart(values(pl.DataFrame({"at": [0]}))).mark_rule(color=ink("soft")).encode(y="at:Q"))
    known = {key: name for key, name in columns.items() if key in frame.columns}
    return noted(finished(alt.layer(*layers, data=values(frame)), height), names, known)


def _dimmed(picked: Any, shown: float, dimmed: float) -> Any:
    alt = library()
    return alt.condition(picked, alt.value(shown), alt.value(dimmed))


def _across(frame: pl.DataFrame, title: str, named: bool, log: bool) -> Any:
    """The axis of the places."""
    alt = library()
    if named:
        return alt.X("place:O", title=title, sort=order(frame, "place"), axis=alt.Axis(labelAngle=0))
    places = frame["place"].drop_nulls().unique().sort().to_list()
    whole = all(float(place).is_integer() for place in places)
    marks = {"values": places} if len(places) <= TICKS else {}
    # 0 has no logarithm; symlog is close to one elsewhere.
    kind = {"type": "log" if min(places, default=1) > 0 else "symlog"} if log else {"zero": False}
    scale = alt.Scale(**kind, nice=False, padding=12)
    return alt.X(
        "place:Q", title=title, scale=scale, axis=alt.Axis(format="d" if whole else ".3~g", grid=False, **marks)
    )


def points(frame: pl.DataFrame, x: str, y: str, fit: bool = True) -> Spec:
    """A point for each row: x, y, maybe group and label; ``fit`` draws the line of least squares for each group.

    Of more than 1,500 points so many are drawn, evenly through the rows, and the axis says so; lines are fitted to all.
    """
    alt = library()
    frame = prepared(frame, {"x": False, "y": False}, ("group", "label")).drop_nulls(["x", "y"])
    groups = order(frame, "group") if "group" in frame.columns else []
    drawn = frame[np.linspace(0, frame.height - 1, POINTS).astype(int)] if frame.height > POINTS else frame
    title = f"{x} ({POINTS:,} of {frame.height:,} points drawn)" if frame.height > POINTS else x
    right = across("x", title, scale=alt.Scale(zero=False))
    up = alt.Y("y:Q", title=y, scale=alt.Scale(zero=False))
    columns = {"label": "label", "group": "group", "x": x, "y": y}
    hue: dict[str, Any] = {"color": color("group", groups)} if groups else {}
    paint = {} if groups else {"color": ink("main")}
    marks = {"shape": shape("group", groups)} if groups else {}
    cloud = (
        alt.Chart(values(drawn))
        .mark_point(filled=True, size=34, opacity=0.5, **paint)
        .encode(x=right, y=up, tooltip=tips(frame, columns), **hue, **marks)
    )
    layers = [cloud]
    lines = _fitted(frame) if fit else None
    if lines is not None and lines.height:
        stroke = {"strokeDash": dash(groups)} if groups else {}
        line = alt.Chart(values(dashed(lines, "group", groups))).mark_line(strokeWidth=2.2, **paint)
        layers.append(line.encode(x=right, y=up, **hue, **stroke))
    known = {key: name for key, name in columns.items() if key in frame.columns}
    return noted(finished(alt.layer(*layers), 320), groups, known)


def _fitted(frame: pl.DataFrame) -> pl.DataFrame:
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


def heat(
    frame: pl.DataFrame,
    rows: Sequence[str],
    columns: Sequence[str],
    legend: str,
    kind: Literal["diverging", "share", "plain"] = "diverging",
    *,
    down: str = "",
    along: str = "",
) -> Spec:
    """A cell for each pair, with its number in it: first (of ``rows``), second (of ``columns``), value.

    Maybe also label (to stand in the cell in place of the number) and n. ``legend`` says what the value is. Colours:
    ``diverging`` from the largest distance below 0 through 0 to as much above; ``share`` from 0 to 1; ``plain`` from
    the least to the greatest value. Cells without a value are marked. ``down`` and ``along`` are titles of the axes.
    """
    alt = library()
    said = {"words": pl.col("label").cast(pl.String)} if "label" in frame.columns else {"words": _number("value")}
    frame = prepared(frame.with_columns(**said), {"first": True, "second": True, "value": False}, ("words", "n"))
    names = [list(brief([cell(str(name)) for name in each]).values()) for each in (rows, columns)]
    step = min(96, max(54, 640 // max(1, len(columns))))
    places = _places(names, step, down, along)
    ends, colors = _span(frame["value"].drop_nulls(), kind)
    filled = frame.drop_nulls("value").with_columns(strong=_strong(ends))
    shown = {"first": down or "row", "second": along or "column", "value": legend, "n": "n"}
    scale = alt.Scale(domain=ends, range=[ink(name) for name in colors], interpolate="rgb", clamp=True)
    base = alt.Chart().encode(**places)
    cells = base.mark_rect(stroke=ink("paper"), strokeWidth=1).encode(
        color=alt.Color("value:Q", title=legend, scale=scale, legend=alt.Legend(gradientLength=180)),
        tooltip=tips(filled, shown),
    )
    dark = alt.condition("datum.strong", alt.value(ink("strong")), alt.value(ink("text")))
    layers = [cells, base.mark_text(fontSize=11, limit=step - 4).encode(text="words:N", color=dark)]
    every = [pl.Series(name, each, pl.String).to_frame() for name, each in zip(("first", "second"), names, strict=True)]
    empty = every[0].join(every[1], how="cross").join(filled, on=["first", "second"], how="anti")
    if empty.height:
        none = alt.Chart(values(empty)).encode(**places)
        layers.append(none.mark_text(fontSize=12, color=ink("soft")).encode(text=alt.value("–")))
    made = finished(alt.layer(*layers, data=values(filled)), 30 * len(rows), alt.Step(step))
    return noted(made, [], {key: name for key, name in shown.items() if key in frame.columns}, wide=len(columns) > 4)


def _number(column: str) -> pl.Expr:
    """Two decimals with a true minus, and none before 0.00."""
    plain = pl.col(column).cast(pl.Float64).map_elements(lambda v: f"{v:.2f}", return_dtype=pl.String)
    return plain.replace({"-0.00": "0.00"}).str.replace("-", "−", literal=True)


def _places(names: Sequence[list[str]], step: int, down: str, along: str) -> dict[str, Any]:
    """The two axes of a matrix; labels lean where they are longer than a cell is wide."""
    alt = library()
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
    if kind == "diverging":
        end = max(abs(low), abs(high)) or 1.0
        return [-end, 0.0, end], ["minus", "middle", "plus"]
    if kind == "share":
        return [0.0, 1.0], ["middle", "plus"]
    return [low, high if high > low else low + 1], ["middle", "plus"]


def _strong(ends: Sequence[float]) -> pl.Expr:
    """Where a cell is so dark that its number must be light."""
    if len(ends) == 3:
        return pl.col("value").abs() > 0.6 * ends[2]
    return pl.col("value") > ends[0] + 0.6 * (ends[1] - ends[0])
