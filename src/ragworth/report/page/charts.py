"""Charts that only evaluations draw."""

from __future__ import annotations

import polars as pl

from ragworth.report.charts.base import Spec, chart_data, escape_frame, finish_chart, load_altair
from ragworth.report.charts.theme import SHAPES, theme_color


def cross_chart(frame: pl.DataFrame, x: str, y: str) -> Spec:
    """A point for each system with an interval either way: system, x, x_low, x_high, y, y_low, y_high."""
    alt, frame = load_altair(), escape_frame(frame)
    base = alt.Chart(chart_data(frame))
    right, up = alt.X("x:Q", title=x, scale=alt.Scale(zero=False)), alt.Y("y:Q", title=y, scale=alt.Scale(zero=False))
    thin = {"strokeWidth": 1.5, "color": theme_color("main"), "opacity": 0.45}
    across = base.mark_rule(**thin).encode(x=alt.X("x_low:Q", title=x), x2=alt.X2("x_high:Q"), y=up)
    along = base.mark_rule(**thin).encode(y=alt.Y("y_low:Q", title=y), y2=alt.Y2("y_high:Q"), x=right)
    tips = [
        alt.Tooltip("name:N", title="system"),
        alt.Tooltip("x:Q", title=x, format=".4f"),
        alt.Tooltip("y:Q", title=y, format=".4f"),
    ]
    points = base.mark_point(filled=True, size=80, color=theme_color("main"), opacity=1).encode(
        x=right, y=up, tooltip=tips
    )
    names = base.mark_text(align="left", dx=8, dy=-8, limit=140).encode(x=right, y=up, text=alt.Text("system:N"))
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
    return finish_chart(alt.layer(rules.encode(y=alt.Y("at:Q")), points), 300)
