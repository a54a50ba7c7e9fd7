"""Charts with a row, or a column, for each label: values with intervals, bars, and what came of answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from ragworth.core.errors import TableError, format_list
from ragworth.report.charts.base import ROW_HEIGHT, Spec, chart_data, finish_chart, load_altair, theme_color
from ragworth.report.charts.planes import (
    color_channel,
    describe_spec,
    prepare_frame,
    shape_channel,
    tooltip_fields,
    unique_names,
    x_axis,
)

KINDS = {"correct": "good", "partial": "fair", "abstained": "none", "wrong": "bad"}
"""What can come of an answer, best first, with its colour."""
ROOM = 32
"""Width of a share in words."""
WIDEST = 30
"""Letters of labels for which there is room below columns; beyond it bars lie on their side."""


def dot_chart(frame: pl.DataFrame, title: str, zero: bool = False) -> Spec:
    """A row for each label: label, value, low, high, maybe group and n. ``title`` says what the value is.

    Groups stand below each other in a row, each with its colour and shape. ``zero`` draws a line where 0 is.
    """
    alt = load_altair()
    frame = prepare_frame(frame, {"label": True, "value": False, "low": False, "high": False}, ("group", "n"))
    labels, groups = unique_names(frame, "label"), unique_names(frame, "group") if "group" in frame.columns else []
    columns = {"label": "label", "group": "group", "value": title, "low": "low", "high": "high", "n": "n"}
    base = alt.Chart().encode(y=alt.Y("label:N", sort=labels, title=None))
    if groups:
        base = base.encode(yOffset=alt.YOffset("group:N", sort=groups, scale=alt.Scale(domain=groups)))
    scale = alt.Scale(zero=zero, nice=True)
    hue: dict[str, Any] = {"color": color_channel("group", groups)} if groups else {}
    paint = {} if groups else {"color": theme_color("main")}
    rule = base.mark_rule(strokeWidth=2, opacity=0.55, **paint).encode(
        x=x_axis("low", title, scale=scale), x2=alt.X2("high:Q"), **hue
    )
    if groups:
        hue["shape"] = shape_channel("group", groups)
    point = base.mark_point(filled=True, size=64, opacity=1, **paint).encode(
        x=x_axis("value", title, scale=scale), tooltip=tooltip_fields(frame, columns), **hue
    )
    layers = [rule, point, _missing_value_text(base, "value")]
    if zero:
        line = alt.Chart(chart_data(pl.DataFrame({"at": [0]}))).mark_rule(color=theme_color("soft"))
        layers.insert(0, line.encode(x=alt.X("at:Q")))
    known = {key: name for key, name in columns.items() if key in frame.columns}
    return describe_spec(
        finish_chart(alt.layer(*layers, data=chart_data(frame)), _height(labels, groups)), groups, known
    )


def _missing_value_text(base: Any, column: str, lying: bool = True) -> Any:
    """The words that stand where there is no value."""
    alt = load_altair()
    where = {"x": alt.XValue(0)} if lying else {"y": alt.YDatum(0)}
    mark = {"align": "left", "dx": 6} if lying else {"dy": -8}
    return (
        base.mark_text(fontSize=11, fontStyle="italic", color=theme_color("soft"), **mark)
        .encode(**where, text=alt.TextValue("no value" if lying else "–"))
        .transform_filter(f"!isValid(datum.{column})")
    )


def bar_chart(frame: pl.DataFrame, y: str) -> Spec:
    """A bar for each label, or one for each of its groups: label, value, maybe low, high, group and n.

    ``y`` says what the value is. Where there is no room for the labels below the bars, the bars lie on their side.
    """
    frame = prepare_frame(frame, {"label": True, "value": False}, ("low", "high", "group", "n"))
    labels, groups = unique_names(frame, "label"), unique_names(frame, "group") if "group" in frame.columns else []
    columns = {"label": "label", "group": "group", "value": y, "low": "low", "high": "high", "n": "n"}
    lying = sum(map(len, labels)) > WIDEST or len(labels) * max(1, len(groups)) > 12
    layers = _bars(frame, labels, groups, y, tooltip_fields(frame, columns), lying)
    height = _height(labels, groups) if lying else 260
    known = {key: name for key, name in columns.items() if key in frame.columns}
    return describe_spec(finish_chart(load_altair().layer(*layers, data=chart_data(frame)), height), groups, known)


def _height(labels: list[str], groups: list[str]) -> int:
    return len(labels) * max(ROW_HEIGHT, 12 * len(groups) + 10)


def _bars(
    frame: pl.DataFrame, labels: list[str], groups: list[str], y: str, shown: list[Any], lying: bool
) -> list[Any]:
    """The layers of bars, standing or lying: bars, intervals, and words where there is no value."""
    alt = load_altair()
    along, up = ("y", "x") if lying else ("x", "y")
    place = alt.Y("label:N", sort=labels, title=None)
    if not lying:
        place = alt.X("label:N", sort=labels, title=None, axis=alt.Axis(labelAngle=0))
    base = alt.Chart().encode(**{along: place})
    thick: dict[str, Any] = {"height" if lying else "width": {"band": 0.66}, "color": theme_color("main")}
    hue: dict[str, Any] = {}
    if groups:
        offset = alt.YOffset if lying else alt.XOffset
        base = base.encode(**{f"{along}Offset": offset("group:N", sort=groups, scale=alt.Scale(domain=groups))})
        thick, hue = {}, {"color": color_channel("group", groups)}

    def ends(field: str) -> Any:
        return x_axis(field, y) if lying else alt.Y(f"{field}:Q", title=y)

    layers = [base.mark_bar(**thick).encode(**{up: ends("value")}, tooltip=shown, **hue)]
    if {"low", "high"} <= set(frame.columns):
        rule = base.mark_rule(strokeWidth=1.5, color=theme_color("text"))
        layers.append(rule.encode(**{up: ends("low"), f"{up}2": (alt.X2 if lying else alt.Y2)("high:Q")}))
    return [*layers, _missing_value_text(base, "value", lying)]


def outcome_chart(frame: pl.DataFrame, title: str = "share of the answers", kinds: Mapping[str, str] = KINDS) -> Spec:
    """Bars that add up to 1: label, kind (correct, partial, abstained, wrong), share, count, maybe group.

    Groups follow each other, each below its name. ``kinds`` are other kinds and their colours.
    """
    alt = load_altair()
    frame = frame.with_columns(pl.col("kind").replace({"partially-correct": "partial"}))
    unknown = sorted(set(frame["kind"].to_list()) - set(kinds))
    if unknown:
        raise TableError(f"{format_list(unknown)} is no outcome", expected=format_list(list(kinds)))
    frame = prepare_frame(frame, {"label": True, "kind": False, "share": False, "count": False}, ("group",))
    frame, keys, heads = _stack_bars(frame, list(kinds))
    names = [kind for kind in kinds if kind in frame["kind"].to_list()]
    up = alt.Y(
        "key:N", sort=keys, title=None, scale=alt.Scale(domain=keys), axis=alt.Axis(labelExpr="slice(datum.label, 4)")
    )
    base = alt.Chart().encode(y=up)
    columns = {"label": "label", "group": "group", "kind": "which", "count": "how many", "share": "share"}
    scale = alt.Scale(domain=names, range=[theme_color(kinds[name]) for name in names])
    bar = base.mark_bar(height={"band": 0.78}, stroke=theme_color("paper"), strokeWidth=1).encode(
        x=x_axis("start", title, scale=alt.Scale(domain=[0, 1]), format="%"),
        x2=alt.X2("end:Q"),
        color=alt.Color("kind:N", title=None, sort=names, scale=scale),
        tooltip=tooltip_fields(frame, columns, ".1%"),
    )
    strong = {"field": "kind", "oneOf": [name for name in names if kinds[name] in ("good", "bad")]}
    words = base.mark_text(fontSize=11).encode(
        x=alt.X("middle:Q"),
        text=alt.Text("words:N"),
        color=alt.ColorValue(theme_color("text"), condition={"test": strong, "value": theme_color("strong")}),
        # Only where the part is wider than its words, on a phone too.
        opacity=alt.OpacityValue(0, condition={"test": f"datum.share * width > {ROOM}", "value": 1}),
    )
    layers = [bar, words]
    if heads.height:
        head = alt.Chart(chart_data(heads)).mark_text(align="left", fontWeight=600, dy=3)
        layers.append(head.encode(y=up, x=alt.XValue(0), text=alt.Text("group:N")))
    known = {key: name for key, name in columns.items() if key in frame.columns}
    return describe_spec(finish_chart(alt.layer(*layers, data=chart_data(frame)), ROW_HEIGHT * len(keys)), names, known)


def _stack_bars(frame: pl.DataFrame, kinds: list[str]) -> tuple[pl.DataFrame, list[str], pl.DataFrame]:
    """Where each part of each bar begins and ends, the rows in their order, and the rows of the groups' names."""
    grouped = "group" in frame.columns
    frame = frame if grouped else frame.with_columns(group=pl.lit(""))
    keys: dict[tuple[str, str], str] = {}
    heads: list[dict[str, str]] = []
    for group in unique_names(frame, "group"):
        if grouped:
            heads.append({"key": f"{len(keys):04d}", "group": group})
            keys[group, ""] = heads[-1]["key"]
        for label in unique_names(frame.filter(pl.col("group") == group), "label"):
            keys[group, f"{label} "] = f"{len(keys):04d}{label}"
    rank = pl.col("kind").replace_strict({kind: i for i, kind in enumerate(kinds)}, return_dtype=pl.Int64)
    named = pl.struct("group", "label").map_elements(
        lambda row: keys[row["group"], f"{row['label']} "], return_dtype=pl.String
    )
    share, end = pl.col("share").fill_null(0), pl.col("share").fill_null(0).cum_sum().over("key")
    made = (
        frame.with_columns(named.alias("key"))
        .sort("key", rank)
        .with_columns(end.alias("end"), (end - share).alias("start"), (end - share / 2).alias("middle"))
        .with_columns(((100 * share).round(0).cast(pl.Int64).cast(pl.String) + pl.lit(" %")).alias("words"))
    )
    made = made if grouped else made.drop("group")
    return made, list(keys.values()), pl.DataFrame(heads, schema={"key": pl.String, "group": pl.String})
