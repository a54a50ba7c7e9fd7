"""Charts of how things go together: labels and utility, metrics and outcomes, metrics among themselves."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import polars as pl

from ragworth.diagnosis import passage_kind
from ragworth.errors import format_count
from ragworth.report.charts.base import Spec
from ragworth.report.charts.planes import heat_chart
from ragworth.report.charts.rows import dot_chart
from ragworth.report.document import ChartPanel, Figure
from ragworth.report.page import prediction
from ragworth.report.page.charts import scatter_chart
from ragworth.report.page.figure_sources import KIND_COLORS, FigureSources
from ragworth.report.page.survey import MAX_POINTS
from ragworth.report.wording import signed


def utility_figure(given: FigureSources) -> Figure | str:
    """Relevance labels against utility, a point for each judged passage."""
    judgments = given.results.judgments
    if judgments is None or not judgments.of("abstention").height:
        return given.no_utility
    points, total = given.survey.points
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
    spec = scatter_chart(drawn, KIND_COLORS, levels[:12], "relevance label", "utility u")
    return Figure("scatter", "Relevance is not utility", caption, [ChartPanel("scatter", "", spec)], data)


def prediction_figure(given: FigureSources) -> Figure | str:
    """How well each metric predicts each outcome."""
    outcomes = given.results.outcomes
    if outcomes is None:
        return "there are no outcomes to predict"
    turns = given.results.conversations
    found = prediction.outcome_predictions(given.results.scores, outcomes, given.overview.metrics, given.seed, turns)
    if not found.height:
        return "no metric and outcome vary over the same contexts"
    panels: list[ChartPanel] = []
    for (aspect,), part in found.group_by("outcome", maintain_order=True):
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
    units = "whole conversations" if turns else "queries"
    caption = (
        "Rank correlation of each metric with what came of the context, over all systems and queries; intervals by "
        f"resampling {units}. If lower is better of either, they should go against each other. "
        f"Best: {'; '.join(_best(found))}."
    )
    return Figure("predicted", "Which metric predicts the answers", caption, panels, found)


def _best(found: pl.DataFrame) -> list[str]:
    """The metric that goes best with each outcome, in words."""
    words = []
    for row in found.unique("outcome", keep="first", maintain_order=True).iter_rows(named=True):
        ends = f" (95 % interval {signed(row['low'])} to {signed(row['high'])})" if row["low"] is not None else ""
        others = found.filter((pl.col("outcome") == row["outcome"]) & pl.col("apart").is_not_null())["apart"]
        alike = f", and {(~others).sum()} of {len(others)} others cannot be told from it" if len(others) else ""
        words.append(f"{row['metric']} for {row['outcome']}, ρ = {signed(row['rho'])}{ends}{alike}")
    return words


def agreement_figure(given: FigureSources) -> Figure | str:
    """How metrics, and metrics and outcomes, go together."""
    found = prediction.metric_correlations(given.results.scores, given.results.outcomes, given.overview.metrics)
    metrics = given.overview.metrics
    among = found.filter(
        pl.col("first").is_in(metrics) & pl.col("second").is_in(metrics) & pl.col("value").is_not_null()
    )
    outer = found.filter(
        pl.col("first").is_in(metrics) & ~pl.col("second").is_in(metrics) & pl.col("value").is_not_null()
    )
    panels = []
    if among.height:
        both = pl.concat(
            [among, among.select(pl.col("second").alias("first"), pl.col("first").alias("second"), "value", "n")]
        )
        panels.append(ChartPanel("agreement-0", "Metric and metric", _heat_map(both, metrics, metrics)))
    if outer.height:
        columns = outer["second"].unique(maintain_order=True).to_list()
        panels.append(ChartPanel("agreement-1", "Metric and outcome", _heat_map(outer, metrics, columns)))
    if not panels:
        return "fewer than two metrics, or nothing that varies"
    caption = "Spearman's ρ over all systems and queries. Metrics that rank contexts alike say the same thing twice."
    return Figure("agreement", "How metrics and outcomes go together", caption, panels, pl.concat([among, outer]))


def _heat_map(frame: pl.DataFrame, rows: list[str], columns: list[str]) -> Spec:
    first, second = frame["first"].to_list(), frame["second"].to_list()
    rows, columns = [name for name in rows if name in first], [name for name in columns if name in second]
    return heat_chart(frame, rows, columns, "Spearman ρ", "correlation")
