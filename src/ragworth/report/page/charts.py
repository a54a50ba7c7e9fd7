"""The kinds of charts of an evaluation, each from a small frame."""

from __future__ import annotations

import polars as pl

from ragworth.report.charts.base import ROW_HEIGHT, Spec, chart_data, escape_frame, finish_chart, load_altair
from ragworth.report.charts.theme import DASHES, SHAPES, theme_color
from ragworth.report.render import format_cell

MAX_LINES = 8
"""Systems that have a line of their own in the legend; the others are grey."""
OTHERS = "the others"


def _systems(frame: pl.DataFrame) -> list[str]:
    return frame["system"].unique(maintain_order=True).to_list()


def interval_chart(frame: pl.DataFrame, title: str) -> Spec:
    """Means with intervals, a row for each system: system, mean, low, high, n."""
    alt, frame = load_altair(), escape_frame(frame)
    order = _systems(frame)
    base = alt.Chart(chart_data(frame)).encode(y=alt.Y("system:N", sort=order, title=None))
    tips = [
        alt.Tooltip("name:N", title="system"),
        alt.Tooltip("mean:Q", format=".4f"),
        alt.Tooltip("low:Q", format=".4f"),
        alt.Tooltip("high:Q", format=".4f"),
        alt.Tooltip("n:N", title="n of N"),
    ]
    scale = alt.Scale(zero=False, nice=True)
    rule = base.mark_rule(strokeWidth=2, color=theme_color("main"), opacity=0.55).encode(
        x=alt.X("low:Q", title=title, scale=scale), x2="high:Q"
    )
    point = base.mark_point(filled=True, size=70, color=theme_color("main"), opacity=1).encode(
        x=alt.X("mean:Q", title=title, scale=scale), tooltip=tips
    )
    return finish_chart(alt.layer(rule, point), ROW_HEIGHT * len(order))


def share_chart(frame: pl.DataFrame, kinds: dict[str, str], title: str) -> Spec:
    """Bars that add up to 1, a row for each system: system, kind, count, share. ``kinds`` name their colours."""
    alt, frame = load_altair(), escape_frame(frame)
    order = _systems(frame)
    names = list(kinds)
    placed = frame.with_columns(
        pl.col("share").cum_sum().over("system").alias("end"),
        (pl.col("share").cum_sum() - pl.col("share")).over("system").alias("start"),
    ).with_columns(
        ((pl.col("start") + pl.col("end")) / 2).alias("middle"),
        pl.when(pl.col("share") >= 0.1)
        .then((100 * pl.col("share")).round(0).cast(pl.Int64).cast(pl.String) + pl.lit(" %"))
        .otherwise(pl.lit(""))
        .alias("label"),
    )
    base = alt.Chart(chart_data(placed)).encode(y=alt.Y("system:N", sort=order, title=None))
    bars = base.mark_bar(height={"band": 0.78}, stroke=theme_color("paper"), strokeWidth=1).encode(
        x=alt.X("start:Q", title=title, scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%")),
        x2="end:Q",
        color=alt.Color(
            "kind:N",
            title=None,
            sort=names,
            scale=alt.Scale(domain=names, range=[theme_color(kinds[n]) for n in names]),
        ),
        tooltip=[
            alt.Tooltip("name:N", title="system"),
            alt.Tooltip("kind:N", title="which"),
            alt.Tooltip("count:Q", title="how many"),
            alt.Tooltip("share:Q", format=".1%"),
        ],
    )
    dark = [name for name in names if kinds[name] in ("good", "bad")]
    labels = base.mark_text(fontSize=11).encode(
        x=alt.X("middle:Q"),
        text="label:N",
        color=alt.condition(
            alt.FieldOneOfPredicate(field="kind", oneOf=dark),
            alt.value(theme_color("strong")),
            alt.value(theme_color("text")),
        ),
    )
    return finish_chart(alt.layer(bars, labels), ROW_HEIGHT * len(order))


def line_chart(frame: pl.DataFrame, x: str, y: str, *, zero: bool = False) -> Spec:
    """A line for each system: system, place, mean, maybe low and high. Systems differ by colour, dash and shape."""
    alt, frame = load_altair(), escape_frame(frame)
    every = _systems(frame)
    order = every if len(every) <= MAX_LINES + 1 else [*every[:MAX_LINES], OTHERS]
    own = pl.when(pl.col("system").is_in(order)).then("system").otherwise(pl.lit(OTHERS))
    frame = frame.with_columns(own.alias("line"))
    dash = alt.Scale(domain=order, range=[DASHES[i % len(DASHES)] for i in range(len(order))])
    shape = alt.Scale(domain=order, range=[SHAPES[i % len(SHAPES)] for i in range(len(order))])
    hues = [
        theme_color("none") if name == OTHERS else theme_color(f"system-{i % MAX_LINES}")
        for i, name in enumerate(order)
    ]
    picked = alt.selection_point(fields=["line"], bind="legend", name="picked")
    places = sorted(frame["place"].unique().to_list())
    base = alt.Chart(chart_data(frame)).encode(
        x=alt.X("place:Q", title=x, axis=alt.Axis(values=places, format="d"), scale=alt.Scale(nice=False, padding=12)),
        y=alt.Y("mean:Q", title=y, scale=alt.Scale(zero=zero)),
        color=alt.Color("line:N", title=None, sort=order, scale=alt.Scale(domain=order, range=hues)),
        opacity=alt.condition(picked, alt.value(0.95), alt.value(0.12)),
        detail="system:N",
    )
    line = base.mark_line(strokeWidth=1.8).encode(
        strokeDash=alt.StrokeDash("line:N", title=None, sort=order, scale=dash)
    )
    points = (
        base.mark_point(filled=True, size=50)
        .encode(
            shape=alt.Shape("line:N", title=None, sort=order, scale=shape),
            tooltip=[
                alt.Tooltip("name:N", title="system"),
                alt.Tooltip("place:Q", title=x),
                *(alt.Tooltip(f"{name}:Q", format=".4f") for name in ("mean", "low", "high") if name in frame.columns),
            ],
        )
        .add_params(picked)
    )
    chart = alt.layer(line, points)
    if zero:
        chart = alt.layer(
            alt.Chart(chart_data(pl.DataFrame({"at": [0]}))).mark_rule(color=theme_color("soft")).encode(y="at:Q"),
            chart,
        )
    # The page gives the legend as many columns as there is room for.
    return finish_chart(chart, 260) | {"usermeta": {"longest": max(map(len, order), default=0)}}


def cross_chart(frame: pl.DataFrame, x: str, y: str) -> Spec:
    """A point for each system with an interval either way: system, x, x_low, x_high, y, y_low, y_high."""
    alt, frame = load_altair(), escape_frame(frame)
    base = alt.Chart(chart_data(frame))
    right, up = alt.X("x:Q", title=x, scale=alt.Scale(zero=False)), alt.Y("y:Q", title=y, scale=alt.Scale(zero=False))
    thin = {"strokeWidth": 1.5, "color": theme_color("main"), "opacity": 0.45}
    across = base.mark_rule(**thin).encode(x=alt.X("x_low:Q", title=x), x2="x_high:Q", y=up)
    along = base.mark_rule(**thin).encode(y=alt.Y("y_low:Q", title=y), y2="y_high:Q", x=right)
    tips = [
        alt.Tooltip("name:N", title="system"),
        alt.Tooltip("x:Q", title=x, format=".4f"),
        alt.Tooltip("y:Q", title=y, format=".4f"),
    ]
    points = base.mark_point(filled=True, size=80, color=theme_color("main"), opacity=1).encode(
        x=right, y=up, tooltip=tips
    )
    names = base.mark_text(align="left", dx=8, dy=-8, limit=140).encode(x=right, y=up, text="system:N")
    return finish_chart(alt.layer(across, along, points, names), 300)


def scatter_chart(frame: pl.DataFrame, kinds: dict[str, str], levels: list[float], x: str, y: str) -> Spec:
    """A point for each passage: at, relevance, utility, kind, query, passage; lines where the kinds part."""
    alt, frame = load_altair(), escape_frame(frame)
    names = list(kinds)
    rules = alt.Chart(chart_data(pl.DataFrame({"at": [-0.8, -0.2, 0.2]}))).mark_rule(
        strokeDash=[3, 3], color=theme_color("soft"), opacity=0.6
    )
    points = (
        alt.Chart(chart_data(frame))
        .mark_point(filled=True, size=28, opacity=0.6)
        .encode(
            x=alt.X("at:Q", title=x, axis=alt.Axis(values=levels), scale=alt.Scale(nice=False, padding=10)),
            y=alt.Y("utility:Q", title=y, scale=alt.Scale(domain=[-1, 1])),
            color=alt.Color(
                "kind:N", title=None, scale=alt.Scale(domain=names, range=[theme_color(kinds[n]) for n in names])
            ),
            shape=alt.Shape("kind:N", title=None, scale=alt.Scale(domain=names, range=SHAPES[: len(names)])),
            tooltip=[
                alt.Tooltip("query:N"),
                alt.Tooltip("passage:N"),
                alt.Tooltip("relevance:Q"),
                alt.Tooltip("utility:Q", format="+.3f"),
            ],
        )
    )
    return finish_chart(alt.layer(rules.encode(y="at:Q"), points), 300)


def heatmap_chart(frame: pl.DataFrame, rows: list[str], columns: list[str]) -> Spec:
    """A cell for each pair: first, second, value, n; the number stands in it."""
    alt = load_altair()
    rows, columns = [format_cell(name) for name in rows], [format_cell(name) for name in columns]
    labelled = escape_frame(frame).with_columns(
        pl.col("value").map_elements(lambda v: f"{v:.2f}".replace("-", "−"), return_dtype=pl.String).alias("label")
    )
    base = alt.Chart(chart_data(labelled)).encode(
        x=alt.X("second:N", sort=columns, title=None, axis=alt.Axis(labelAngle=-40, orient="bottom", labelLimit=140)),
        y=alt.Y("first:N", sort=rows, title=None),
    )
    scale = alt.Scale(
        domain=[-1, 0, 1], range=[theme_color("minus"), theme_color("middle"), theme_color("plus")], interpolate="rgb"
    )
    cells = base.mark_rect(stroke=theme_color("paper"), strokeWidth=1).encode(
        color=alt.Color("value:Q", scale=scale, legend=None),
        tooltip=[
            alt.Tooltip("first:N", title="between"),
            alt.Tooltip("second:N", title="and"),
            alt.Tooltip("value:Q", title="Spearman ρ", format=".3f"),
            alt.Tooltip("n:Q", title="contexts"),
        ],
    )
    strong = "abs(datum.value) > 0.6"
    words = base.mark_text(fontSize=11).encode(
        text="label:N", color=alt.condition(strong, alt.value(theme_color("strong")), alt.value(theme_color("text")))
    )
    return finish_chart(alt.layer(cells, words), 30 * len(rows), alt.Step(54))
