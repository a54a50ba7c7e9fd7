"""Charts of labels and utility, and of metrics and outcomes, with the correlations behind them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from ragworth.answer_outcomes import outcome_direction
from ragworth.comparison import higher_is_better
from ragworth.core.errors import format_count, format_list
from ragworth.diagnosis import passage_kind
from ragworth.metrics.utility import READER_REASON
from ragworth.report.charts.base import SHAPES, Spec, chart_data, escape_frame, finish_chart, load_altair, theme_color
from ragworth.report.charts.rows import dot_chart
from ragworth.report.document import ChartPanel, Figure
from ragworth.report.page.answer_sentences import ROUNDING
from ragworth.report.page.overview import Overview
from ragworth.report.page.survey import MAX_POINTS, Survey
from ragworth.report.wording import best_words, few_queries_hint, signed
from ragworth.results import Results
from ragworth.score_rows import ScoreRows, rows_of_aspect
from ragworth.stats.paired import correct_alike, is_reliable
from ragworth.stats.pooled import pooled_correlations, pooled_gaps

RESAMPLES = 400
ALPHA = 0.05
MOST_QUERIES = 20_000
"""Queries that predictions are from; where there are more, so many of them, evenly spaced."""
SCHEMA = {
    "metric": pl.String,
    "outcome": pl.String,
    "rho": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "apart": pl.Boolean,
    "reliable": pl.Boolean,
    "n": pl.Int64,
    "queries": pl.Int64,
}


def outcome_predictions(results: Results, metrics: list[str], seed: int) -> pl.DataFrame:
    """How well each metric predicts each outcome: Spearman's ρ over all (system, query), best first: the
    highest, or the lowest if the metric or the outcome, and not both, is better if lower.

    Intervals and tests are those of :mod:`ragworth.stats.pooled`, as in studies. Returns metric, outcome, rho, low,
    high, apart, reliable, n (contexts) and queries. ``apart`` says whether the best metric predicts significantly
    better: null for the best itself. ``reliable``: the metric predicts the outcome as it should, by a test that is
    corrected for all metrics. ``n`` and ``queries`` are those of a sample if there are many queries.
    """
    rows: list[dict[str, object]] = []
    for aspect in results.outcomes.distinct("aspect") if results.outcomes is not None else []:
        sample = _sampled(rows_of_aspect(results, aspect, metrics))
        data = sample.values, sample.outcome, sample.units
        how: dict[str, Any] = {"resamples": RESAMPLES, "level": 1 - ALPHA, "seed": seed, "clusters": sample.clusters}
        every = correct_alike(pooled_correlations(*data, **how))
        order = sorted(
            (at for at, one in enumerate(every) if one.value is not None), key=lambda at: -(every[at].value or 0.0)
        )
        pairs = [(order[0], at) for at in order[1:]]
        gaps = dict(zip(order[1:], correct_alike(pooled_gaps(*data, pairs=pairs, **how)), strict=True))
        for at in order:
            one, gap = every[at], gaps.get(at)
            up = higher_is_better(metrics[at]) == higher_is_better(aspect)
            ends = (one.low, one.high) if up else (one.high, one.low)
            rho, low, high = (each if up or each is None else 0 - each for each in (one.value, *ends))
            rows.append(
                {
                    "metric": metrics[at],
                    "outcome": aspect,
                    "rho": rho,
                    "low": low,
                    "high": high,
                    "apart": None if gap is None else gap.is_significant(ALPHA),
                    "reliable": is_reliable(one, ALPHA),
                    "n": one.n,
                    "queries": one.counts["queries"],
                }
            )
    return pl.DataFrame(rows, schema=SCHEMA)


def _sampled(rows: ScoreRows) -> ScoreRows:
    """The rows of at most `MOST_QUERIES` queries."""
    units = rows.units
    queries = int(units.max(initial=-1)) + 1
    if queries <= MOST_QUERIES:
        return rows
    return rows.only(np.isin(units, np.linspace(0, queries - 1, MOST_QUERIES).round()))


KIND_COLORS = {"helpful": "good", "harmless": "none", "distracting": "poor", "misleading": "bad"}
NO_UTILITY = "utility needs judgments of relevance and of abstention"


@dataclass(frozen=True)
class FigureSources:
    """What figures are made from."""

    results: Results
    survey: Survey
    overview: Overview
    seed: int

    @property
    def no_utility(self) -> str:
        """Why no passage has a utility."""
        return f"it {READER_REASON}" if self.survey.reader_judged else NO_UTILITY

    @property
    def systems(self) -> list[str]:
        """Best first."""
        return [each.system for each in self.overview.standings]


def utility_figure(given: FigureSources) -> Figure | str:
    """Relevance labels against utility, a point for each judged passage."""
    judgments = given.results.judgments
    if judgments is None or not judgments.of("abstention").height:
        return given.no_utility
    points, total = given.survey.points, given.survey.points.height
    if not total:
        return given.no_utility if given.survey.reader_judged else "no passage has a utility"
    rng = np.random.default_rng(given.seed)
    if points.height > MAX_POINTS:
        points = points[np.sort(rng.choice(points.height, MAX_POINTS, replace=False))]
    labels = judgments.of("relevance").select("query", "passage", pl.col("value").alias("relevance"))
    frame = points.join(labels, on=["query", "passage"], how="left", maintain_order="left").select(
        "query", "passage", pl.col("relevance").fill_null(0.0), "utility"
    )
    levels = sorted(frame["relevance"].unique().to_list())
    step = min((b - a for a, b in pairwise(levels)), default=1.0)
    jitter = rng.uniform(-0.3, 0.3, frame.height) * step
    drawn = frame.with_columns(
        (pl.col("relevance") + pl.Series(jitter)).alias("at"),
        pl.col("utility").map_elements(passage_kind, return_dtype=pl.String).alias("kind"),
    )
    data = (
        frame.with_columns(drawn["kind"])
        .group_by("relevance", "kind")
        .agg(pl.len().alias("passages"), pl.col("utility").mean().alias("mean utility"))
        .sort("relevance", "kind")
    )
    some = (
        f"{MAX_POINTS:,} of {total:,} passages, drawn at random"
        if total > MAX_POINTS
        else format_count(total, "passage")
    )
    caption = (
        f"Each point is a passage ({some}), moved a little sideways so that points do not hide each other. A relevant "
        "passage near 0 is one that the model makes nothing of; an irrelevant one near −1 is one that it answers from. "
        "Lines: where the kinds part."
    )
    caption = f"{caption} {given.survey.sample_note}".rstrip()
    spec = scatter_chart(drawn, KIND_COLORS, levels[:12], "relevance label", "utility u")
    return Figure("scatter", "Relevance is not utility", caption, [ChartPanel("scatter", "", spec)], data)


def prediction_figure(given: FigureSources) -> Figure | str:
    """How well each metric predicts each outcome."""
    if given.results.outcomes is None:
        return "there are no outcomes to predict"
    predictions = outcome_predictions(given.results, given.overview.metrics, given.seed)
    if not predictions.height:
        return "no metric and outcome vary over the same contexts"
    panels: list[ChartPanel] = []
    for (aspect,), part in predictions.group_by("outcome", maintain_order=True):
        frame = part.select(
            pl.col("metric").alias("label"),
            pl.col("rho").alias("value"),
            "low",
            "high",
            pl.format("{} contexts of {} queries", "n", "queries").alias("n"),
        )
        panels.append(
            ChartPanel(f"predicted-{len(panels)}", str(aspect), dot_chart(frame, f"Spearman ρ with {aspect}"))
        )
    units = "whole conversations" if given.results.conversations else "queries"
    drawn = MOST_QUERIES
    sample = f" From {drawn:,} of {given.overview.queries:,} queries." if given.overview.queries > drawn else ""
    caption = (
        "Rank correlation of each metric with what came of the context, over all systems and queries; intervals by "
        f"resampling {units}.{sample} If lower is better for one of the two, ρ should be negative. "
        f"{' '.join(_best(predictions))}"
    )
    if flat := [name for name in given.overview.metrics if name not in predictions["metric"]]:
        caption += f" Without a correlation, because their values are equal or unknown: {format_list(flat, 6)}."
    return Figure("predicted", "Which metric predicts the answers", caption, panels, predictions)


def _best(found: pl.DataFrame) -> Iterator[str]:
    """Sentences on which metrics predict each outcome best, or that none reliably does."""
    for (outcome,), part in found.group_by("outcome", maintain_order=True):
        if outcome_direction(str(outcome)):  # else neither direction is better
            yield _best_sentence(str(outcome), part)


def _best_sentence(outcome: str, part: pl.DataFrame) -> str:
    reliable = part.filter("reliable")
    rows = reliable if reliable.height else part
    first, top = rows.row(0, named=True), part.row(0, named=True)
    names = rows.filter((pl.col("rho") - first["rho"]).abs() < ROUNDING)["metric"].to_list()
    surest, none = first["metric"] != top["metric"], f"No metric reliably predicts {outcome}"
    words = best_words(names, sure=bool(reliable.height), how=f"{outcome} best", none=none, surest=surest)
    alike = higher_is_better(first["metric"]) == higher_is_better(outcome)
    if not reliable.height and first["rho"] * (1 if alike else -1) < 0:
        words += ", in the wrong direction"
    words += f": {_rho(first)}"
    others = part.filter(pl.col("apart").is_not_null() & ~pl.col("metric").is_in(names))
    if surest:
        words += f"; {top['metric']} has a stronger correlation that isn't reliable, {_rho(top)}"
    elif reliable.height and others.height:
        close = others.filter(~pl.col("apart")).height
        number = format_count(others.height, "other")
        words += f"; {close} of {number} not significantly worse" if close else f"; {number} significantly worse"
    return f"{words}.{few_queries_hint(first['queries'])}"


def _rho(row: Mapping[str, Any]) -> str:
    """A correlation with its interval."""
    ends = f"95 % interval {signed(row['low'])} to {signed(row['high'])}" if row["low"] is not None else "no interval"
    return f"ρ = {signed(row['rho'])} ({ends})"


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
