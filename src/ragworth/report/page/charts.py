"""Charts that only evaluations draw."""

from __future__ import annotations

import polars as pl

from ragworth.report.charts.base import Spec, chart_data, escape_frame, finish_chart, load_altair
from ragworth.report.charts.theme import SHAPES, theme_color


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
