"""``position``: does it matter where in the context the relevant passage stands?

One relevant passage is moved through the context, among the same others in the same order. What the model makes of each
position is compared with what metrics give for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl

from ragworth.comparison import value_bounds
from ragworth.core.errors import InputError, format_list
from ragworth.judging.annotators.confidence import MEASURES as CONFIDENCES
from ragworth.judging.contract import option
from ragworth.report.study.charts import curve_chart
from ragworth.report.study.page import StudyPage, TableText, estimate_rows
from ragworth.report.study.table_charts import outcome_curve, shared_lines
from ragworth.report.wording import p_words, signed
from ragworth.stats.estimate import mean_estimates
from ragworth.studies import contrast
from ragworth.studies.bench import Bench
from ragworth.studies.candidates import draw_positions
from ragworth.studies.confidences import KIND, TASKS, with_confidence
from ragworth.studies.contract import Case, PoolStudy, Published, parse_numbers
from ragworth.studies.contrast import Contrasts, Floats, OutcomeGrid
from ragworth.workspace.config import Workspace

DRAWN = 7
"""Metrics drawn beside the answers; more would hide each other."""
ROUNDING = 1e-12


@dataclass(frozen=True)
class Position(PoolStudy):
    """Whether it matters where the relevant passage stands.

    The first relevant passage of a query is moved through positions 1 to k among the first k − 1 others that were
    found, which keep their order. Position matters if, after Holm's correction, the first position differs from another
    one, or the two ends differ from the positions between them (Wilcoxon over queries).
    """

    k: int = option(5, "passages of a context, one of them relevant", low=2, high=1000)
    positions: str | None = option(None, "positions to try, such as 1,5,10; by default all")

    kind: ClassVar[str] = "position"
    title: ClassVar[str] = "whether it matters where the relevant passage stands"
    question: ClassVar[str] = "Position: does it matter where the relevant passage stands?"
    published: ClassVar[Mapping[str, Published]] = {
        "paper": Published(
            "Trappolini et al., Redefining Retrieval Evaluation in the Era of LLMs, Figure 1",
            {"k": 5, "depth": 25},
            ("nDCG(ideal=retrieved)", "AP(ideal=retrieved)", "RR", "P"),
            queries=500,
            differences=("the paper doesn't say how many passages a context has, nor how the others are chosen",),
        ),
        "grogu": Published(
            "Hua et al., Evaluating the Utility of Grounding Documents, section 4.3",
            {"k": 10, "positions": "1,5,10", "depth": 25},
            tasks=TASKS,
        ),
    }
    design_column: ClassVar[str] = "position"
    why_ours: ClassVar[str] = "It adds the metrics that an evaluation shows, tests, and all queries."

    @property
    def judges(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("abstention", KIND) if self.protocol == "grogu" else ("abstention",)

    def fit(self, space: Workspace) -> Workspace:
        return with_confidence(space) if KIND in space.judgments else space

    def check(self) -> None:
        if self.depth < self.k - 1:
            raise InputError(f"{self.depth} passages can't hold {self.k - 1} others", expected="depth ≥ k − 1")
        if len(self.places) < 2:
            raise InputError("one position has nothing to be compared with", expected="two positions or more")

    @property
    def places(self) -> list[int]:
        wanted = self.positions if self.positions is not None else f"1-{self.k}"
        return parse_numbers(wanted, "positions", self.k)

    def run(self, bench: Bench) -> Case:
        drawn = draw_positions(bench.pool(self.depth, self.retriever), self.k, self.places)
        bench.judge([kind for kind in bench.space.judgments if kind != KIND], drawn.contexts)
        (bench.answer_with_confidence if KIND in bench.space.judgments else bench.answer)(drawn.contexts)
        design = pl.DataFrame({"system": list(drawn.shown), "position": self.places})
        return bench.case(drawn.contexts, design, bench.metrics_at(self.k), drawn.left)

    def tables(self) -> Mapping[str, TableText]:
        return {
            "outcomes": TableText(
                "What became of the answers, by position of the relevant passage",
                "low and high: of the share of correct answers, or of the mean",
            ),
            "differences": TableText(
                "Positions against each other",
                "planned in advance: the first position against each other one, and the mean of the two ends against "
                f"the mean of those between. {contrast.CONTRAST_NOTE}; p by Wilcoxon's signed-rank test, p_holm "
                "corrected by Holm for all of them",
            ),
            "metrics": TableText("Metrics by position", "mean over queries at each position"),
        }

    def examine(self, case: Case, page: StudyPage) -> None:
        design = case.design.sort("position")
        places: list[int] = design["position"].to_list()
        grid = contrast.outcome_grid(case, design["system"].to_list(), self.outcome, page)
        moved = "was moved through the context, among the same others in the same order"
        page.lead(case, f"one relevant passage of {grid.number} {moved}; the model answered from each.")
        table = page.add("outcomes", case, contrast.arm_rows(grid, "position", self.plan, places))
        found = self._contrasts(grid, places)
        page.add("differences", case, contrast.contrast_rows(found))
        seen = self._seen(case, grid, places, page)
        means = {m: mean_estimates(values, self.plan, value_bounds(m), grid.clusters) for m, values in seen.items()}
        each = {(m, place): one for m, some in means.items() for place, one in zip(places, some, strict=True)}
        metrics = page.add("metrics", case, estimate_rows(("metric", "position"), each, "mean"))
        page.say(case, *self._sentences(grid, places, found), *_seen_sentences(seen, places))
        lines, more = outcome_curve(table, "position", pl.lit(grid.what)), ""
        if seen:
            drawn = metrics.filter(~pl.col("metric").is_in(list(CONFIDENCES))).select("metric", "position", "mean")
            others, more = shared_lines(drawn, "position", "mean", DRAWN)
            lines = pl.concat([lines, others.drop("metric")], how="diagonal")
        caption = f"{grid.what.capitalize()} with its {self.level:.0%} interval over queries, and the means of metrics."
        spec = curve_chart(lines, "position of the relevant passage", "mean")
        page.draw("position", "The answers and the metrics by position", caption + more, spec, case)

    def _contrasts(self, grid: OutcomeGrid, places: list[int]) -> Contrasts:
        """The first position against each other one, and the ends against the middle."""
        worth, names = grid.worth, [f"position {place}" for place in places]
        pairs = [(0, at) for at in range(1, len(names))]
        if len(names) > 2:
            ends, middle = worth[:, [0, -1]].mean(axis=1), worth[:, 1:-1].mean(axis=1)
            worth, names = np.column_stack([worth, ends, middle]), [*names, "the two ends", "the positions between"]
            pairs.append((len(names) - 2, len(names) - 1))
        return contrast.compare_arms(
            {grid.what: (worth, grid.bounds)}, names, self.plan, pairs=pairs, clusters=grid.clusters
        )

    def _seen(self, case: Case, grid: OutcomeGrid, places: list[int], page: StudyPage) -> dict[str, Floats]:
        """Metrics and confidences with a value at every position; others are named in a note."""
        found = contrast.metric_grids(case, grid) | contrast.confidence_grids(case, grid)
        whole = {}
        for metric, values in found.items():
            lost = [str(place) for place, gone in zip(places, np.isnan(values).T, strict=True) if gone.all()]
            if not lost:
                whole[metric] = values
                continue
            some = f"position{'s' if len(lost) > 1 else ''} {format_list(lost, 12)}"
            where = some if len(lost) < len(places) else "any position"
            page.note(case, f"{metric} has no value at {where}, and is left out")
        return whole

    def _sentences(self, grid: OutcomeGrid, places: list[int], found: Contrasts) -> list[str]:
        means = grid.means()
        best, worst = means.index(max(means)), means.index(min(means))
        high, low = (f"{grid.say(means[at])} at position {places[at]}" for at in (best, worst))
        same = f"{grid.say(means[best])} at every position"
        spread = f"{grid.what} {f'{high}, {low}' if means[best] > means[worst] else same}"
        sure = {key: one for key, one in found.items() if one.is_significant(self.plan.alpha)}
        if not sure:
            least = [one.detectable for one in found.values() if one.detectable is not None]
            p = min((one.p_holm for one in found.values() if one.p_holm is not None), default=1.0)
            return [
                f"it can't be told whether position matters: {spread}, {grid.over}; smallest Wilcoxon {p_words(p)} "
                f"after Holm{grid.power(max(least, default=None))}."
            ]
        said = [f"position matters: {spread}, {grid.over}."]
        for (_, first, second), one in sure.items():
            value = one.value or 0.0
            gap = f"{grid.gap(value)} {'higher' if value > 0 else 'lower'} than at {second} {grid.interval(one)}"
            said.append(f"{grid.what} at {first} is {gap}, Wilcoxon {p_words(one.p_holm)} after Holm.")
        return said


def _is_blind(values: Floats) -> bool:
    known = values[~np.isnan(values).all(axis=1)]
    return bool((np.nanmax(known, axis=1) - np.nanmin(known, axis=1) <= ROUNDING).all())


def _seen_sentences(seen: dict[str, Floats], places: list[int]) -> list[str]:
    """Which metrics don't see the position, and how the others change."""
    blind = [metric for metric, values in seen.items() if _is_blind(values)]
    means = {metric: np.nanmean(values, axis=0) for metric, values in seen.items() if metric not in blind}
    told = [f"{metric} ({signed(float(each[0]))} → {signed(float(each[-1]))})" for metric, each in means.items()]
    return [
        f"{format_list(blind, 20)} {'do' if len(blind) > 1 else 'does'} not depend on the position." if blind else "",
        f"from position {places[0]} to {places[-1]}, these change: {format_list(told, 20)}." if told else "",
    ]
