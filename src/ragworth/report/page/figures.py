"""Which charts the tables allow: the numbers behind each, its caption, and why others are left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ragworth.core.errors import format_list
from ragworth.data.conversations import cluster_labels
from ragworth.diagnosis import PASSAGE_KINDS
from ragworth.report.charts.base import Spec
from ragworth.report.charts.planes import curve_chart
from ragworth.report.charts.rows import dot_chart, outcome_chart
from ragworth.report.document import ChartPanel, Figure
from ragworth.report.page.rankings import RESAMPLES, MetricMean
from ragworth.report.page.relations import KIND_COLORS, FigureSources, prediction_figure, utility_figure
from ragworth.stats.bootstrap import mean_intervals


def means_figure(given: FigureSources) -> Figure | str:
    """Every metric by system, with intervals."""
    view = given.overview
    rows: list[pl.DataFrame] = []
    panels: list[ChartPanel] = []
    for metric in view.metrics:
        mine = [
            {"metric": metric, "system": each.system, **_facts(each.means[metric])}
            for each in view.standings
            if metric in each.means and each.means[metric].mean is not None
        ]
        if mine:
            frame = pl.DataFrame(mine, schema_overrides=dict.fromkeys(("low", "high"), pl.Float64))
            panels.append(
                ChartPanel(
                    f"means-{len(panels)}",
                    metric,
                    dot_chart(frame.rename({"system": "label", "mean": "value"}), f"mean {metric}"),
                )
            )
            rows.append(frame)
    if not panels:
        return "no metric has a value for any system"
    own = (
        " Systems have values for different queries, and each mean is over a system's own."
        if view.ranking.shared_means
        else ""
    )
    caption = f"Mean of each metric over the queries, with its 95 % interval.{own} Axes need not begin at 0."
    return Figure("means", "Metrics by system", caption, panels, pl.concat(rows))


def _facts(mean: MetricMean) -> dict[str, object]:
    return {"mean": mean.mean, "low": mean.low, "high": mean.high, "n": f"{mean.n} of {mean.total}"}


def grades_figure(given: FigureSources) -> Figure | str:
    """What became of the answers."""
    if given.survey.ungraded:
        return given.survey.ungraded
    counts = {(system, grade): n for (system, grade), n in given.survey.grades.items() if grade is not None}
    order = [*given.systems, *sorted({system for system, _ in counts} - set(given.systems))]
    frame = _shares_frame(counts, order, ("correct", "partially-correct", "abstained", "wrong"))
    caption = "What the model made of each system's passages: answers by grade."
    decided, asked = (_answer_counts(each, order) for each in (counts, given.survey.grades))
    if (answers := given.results.answers) is not None:  # one that nobody graded counts, too
        written = dict(answers.frame.group_by("system").len().iter_rows())
        asked = {system: max(n, written.get(system, 0)) for system, n in asked.items()}
    if decided != asked:
        decided_counts = [f"{system} {decided[system]:,} of {n:,}" for system, n in asked.items() if n]
        caption += f" Shares are of the decided answers, which aren't a random part: {format_list(decided_counts, 6)}."
    spec = outcome_chart(frame.rename({"system": "label"}), "share of graded answers")
    return Figure("grades", "Correct, abstained, wrong", caption, [ChartPanel("grades", "", spec)], frame)


def _answer_counts(counts: Mapping[tuple[str, Any], int], systems: Sequence[str]) -> dict[str, int]:
    """The number of answers of each system."""
    return {system: sum(n for (name, _), n in counts.items() if name == system) for system in systems}


def kinds_figure(given: FigureSources) -> Figure | str:
    """What the passages shown do to the model."""
    counts = given.survey.kinds
    if not counts:
        return given.no_utility
    frame = _shares_frame(counts, given.systems, PASSAGE_KINDS)
    caption = (
        "Passages shown, by utility u: helpful (u ≥ 0.2), harmless (|u| < 0.2), distracting (−0.8 ≤ u ≤ −0.2) and "
        "misleading (u < −0.8: irrelevant, and the model answers from it all the same)."
    )
    caption = f"{caption} {given.survey.sample_note}".rstrip()
    spec = outcome_chart(frame.rename({"system": "label"}), "share of judged passages", KIND_COLORS)
    return Figure("kinds", "Helpful, harmless, misleading", caption, [ChartPanel("kinds", "", spec)], frame)


def _shares_frame(counts: Mapping[tuple[str, str], int], systems: Sequence[str], names: Sequence[str]) -> pl.DataFrame:
    rows = []
    for system in systems:
        total = sum(counts.get((system, name), 0) for name in names)
        rows += [
            {
                "system": system,
                "kind": name,
                "count": counts.get((system, name), 0),
                "share": counts.get((system, name), 0) / total,
            }
            for name in names
            if total
        ]
    return pl.DataFrame(rows)


def ranks_figure(given: FigureSources) -> Figure | str:
    """Mean utility at each rank."""
    found = given.survey.ranks
    if not found.columns:
        return given.no_utility
    best_first = {system: i for i, system in enumerate(given.systems)}
    order = sorted(range(len(found.columns)), key=lambda i: (best_first[found.columns[i][0]], found.columns[i][1]))
    columns, values = [found.columns[i] for i in order], found.values[:, order]
    turns = cluster_labels(given.survey.examined, given.results.conversations)
    span = mean_intervals(values, resamples=RESAMPLES, seed=given.seed, bounds=(-1.0, 1.0), clusters=turns)
    frame = pl.DataFrame(
        {
            "system": [system for system, _ in columns],
            "place": [rank for _, rank in columns],
            "mean": np.nanmean(values, axis=0),
            "low": span.low,
            "high": span.high,
            "n": (~np.isnan(values)).sum(axis=0),
        }
    ).fill_nan(None)
    caption = (
        "Mean utility of the passage at each rank: above 0 it helps the model, below it misleads. "
        "A choice of a system in the legend brings it forward."
    )
    caption = f"{caption} {given.survey.sample_note}".rstrip()
    return Figure(
        "ranks",
        "Utility by rank",
        caption,
        [ChartPanel("ranks", "", _curves(frame, "rank", "mean utility", zero=True))],
        frame,
    )


def _curves(frame: pl.DataFrame, x: str, y: str, *, zero: bool = False) -> Spec:
    """A line for each system."""
    return curve_chart(frame.rename({"system": "line", "mean": "value"}), x, y, zero=zero, band=False, height=260)


class FigureSet(NamedTuple):
    """The figures that there are, and those that are left out with the reason."""

    figures: list[Figure]
    absent: dict[str, str]


FIGURE_BUILDERS: dict[str, Callable[[FigureSources], Figure | str]] = {
    "Metrics by system": means_figure,
    "Correct, abstained, wrong": grades_figure,
    "Helpful, harmless, misleading": kinds_figure,
    "Utility by rank": ranks_figure,
    "Relevance is not utility": utility_figure,
    "Which metric predicts the answers": prediction_figure,
}


ANSWER_FIGURES = ("Metrics by system", "Correct, abstained, wrong")
"""Those that need no metrics of passages."""


def build_figures(given: FigureSources, titles: Sequence[str] = tuple(FIGURE_BUILDERS)) -> FigureSet:
    """All of these figures that the tables allow."""
    made = {title: FIGURE_BUILDERS[title](given) for title in titles}
    return FigureSet(
        [each for each in made.values() if isinstance(each, Figure)],
        {title: each for title, each in made.items() if isinstance(each, str)},
    )
