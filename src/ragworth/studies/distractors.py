"""``distractors``: what do passages cost that look like an answer and hold none?

One relevant passage among weak distractors, which the model declines to answer from, and the same one among hard ones,
from which it answers all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import polars as pl

from ragworth.core.errors import InputError, format_count
from ragworth.judging.contract import option
from ragworth.metrics.utility import HARD as HARD_EFFECT
from ragworth.metrics.utility import WEAK as WEAK_EFFECT
from ragworth.report.study.page import Row, StudyPage, TableText
from ragworth.report.study.table_charts import outcome_figure
from ragworth.report.wording import p_words
from ragworth.studies import contrast
from ragworth.studies.bench import Bench, JudgedValues
from ragworth.studies.candidates import ContextLists, Unusable
from ragworth.studies.contract import Case, PoolStudy, Published

WEAK, HARD = "weak", "hard"
ARMS = [WEAK, HARD]
REMEDY = "look deeper (--depth), show fewer passages (--k), or change the limits (--weak, --hard)"


@dataclass(frozen=True)
class Distractors(PoolStudy):
    """What hard distractors cost: one relevant passage among k − 1 weak ones, and among k − 1 hard ones.

    A distractor is a passage that was found and isn't relevant; its distracting effect is 1 − the probability that the
    model declines to answer from it alone. The first k − 1 of each kind are shown, with the first relevant passage at
    the same position in both contexts, drawn once for the query. A query without enough of one kind is left out and
    counted.
    """

    k: int = option(5, "passages of a context, one of them relevant", low=2, high=1000)
    weak: float = option(WEAK_EFFECT, "distracting effect below which a distractor is weak", low=0, high=1)
    hard: float = option(HARD_EFFECT, "distracting effect above which a distractor is hard", low=0, high=1)

    kind: ClassVar[str] = "distractors"
    title: ClassVar[str] = "what hard distractors cost beside weak ones"
    question: ClassVar[str] = "Distractors: what do misleading passages cost?"
    published: ClassVar[Mapping[str, Published]] = {
        "paper": Published(
            "Trappolini et al., Redefining Retrieval Evaluation in the Era of LLMs, Table 1",
            {"k": 5, "depth": 25, "weak": 0.2, "hard": 0.8},
            differences=(
                "the paper doesn't say where the relevant passage stands: here at a random position, the same in both",
            ),
        )
    }
    design_column: ClassVar[str] = "distractors"
    why_ours: ClassVar[str] = "Its defaults are those of the published design."
    judges: ClassVar[tuple[str, ...]] = ("abstention",)

    def check(self) -> None:
        if self.weak > self.hard:
            raise InputError(f"weak ones below {self.weak:g} and hard ones above {self.hard:g}", expected="weak ≤ hard")
        if self.depth < 2 * (self.k - 1):
            found = f"{self.depth} passages can't hold {self.k - 1} distractors of each kind"
            raise InputError(found, expected="depth ≥ 2·(k − 1)")

    def run(self, bench: Bench) -> Case:
        pool = bench.pool(self.depth, self.retriever)

        def find(query: str) -> dict[str, list[str]]:
            return {"pool": [pool.first_relevant(query), *pool.others(query)]}

        def build(query: str, known: JudgedValues) -> dict[str, list[str]]:
            gold, *others = candidates.shown["pool"][query]
            values = {each: known["abstention"].get((query, each)) for each in others}
            effect = {each: 1 - value for each, value in values.items() if value is not None}
            kinds = {
                WEAK: [each for each, value in effect.items() if value < self.weak][: self.k - 1],
                HARD: [each for each, value in effect.items() if value > self.hard][: self.k - 1],
            }
            if few := [kind for kind, some in kinds.items() if len(some) < self.k - 1]:
                one, more = (f"{few[0]} distractor", f"{few[0]} distractors")
                if len(few) > 1:
                    one, more = "distractor of either kind", "distractors of either kind"
                raise Unusable(f"fewer than {format_count(self.k - 1, one, more)}")
            place = pool.rng("distractors", query).randrange(self.k)
            return {kind: [*some[:place], gold, *some[place:]] for kind, some in kinds.items()}

        def at_most(judged: Mapping[str, list[str]]) -> ContextLists:
            last = {query: [each[0], *each[1 - self.k :]] for query, each in judged.items()}
            return {WEAK: {query: each[: self.k] for query, each in judged.items()}, HARD: last}

        candidates = replace(pool, limit=None).draw(["pool"], find, REMEDY)
        drawn = bench.draw_judged(pool, ARMS, candidates, build, at_most, REMEDY)
        bench.answer(drawn.contexts)
        effects = [f"below {self.weak:g}", f"above {self.hard:g}"]
        design = pl.DataFrame({"system": ARMS, "distractors": ARMS, "effect": effects})
        return bench.case(drawn.contexts, design, bench.metrics_at(self.k), drawn.left)

    def tables(self) -> Mapping[str, TableText]:
        return {
            "outcomes": TableText(
                "What became of the answers", "low and high: of the share of correct answers, or of the mean"
            ),
            "differences": TableText(
                "Weak minus hard distractors", f"{contrast.CONTRAST_NOTE}; p by Wilcoxon's signed-rank test"
            ),
            "metrics": TableText(
                "What the metrics say of the two",
                "means over the same queries; a metric that only reads relevance can't tell the two apart",
            ),
        }

    def examine(self, case: Case, page: StudyPage) -> None:
        grid = contrast.outcome_grid(case, ARMS, self.outcome, page)
        twice = "from one relevant passage among weak distractors, and from the same one, at the same position"
        page.lead(case, f"the model answered {grid.number} twice: {twice}, among hard ones.")
        page.add("outcomes", case, contrast.arm_rows(grid, "distractors", self.plan))
        measures = {grid.what: (grid.worth, grid.bounds)}
        for kind in contrast.KINDS:
            if grid.graded and kind != "correct" and grid.share(kind).any():
                measures[kind] = grid.share(kind), grid.bounds
        found = contrast.compare_arms(measures, ARMS, self.plan, pairs=[(0, 1)], clusters=grid.clusters)
        page.add("differences", case, contrast.contrast_rows(found))
        page.add("metrics", case, [_metric_row(*each) for each in contrast.metric_grids(case, grid).items()])
        one = found[grid.what, WEAK, HARD]
        (weak, hard), value = grid.means(), one.value or 0.0
        means = f"{grid.what} {grid.say(weak)} among weak distractors and {grid.say(hard)} among hard ones, {grid.over}"
        test = f"{grid.interval(one)}, Wilcoxon {p_words(one.p)}"
        sure = f"hard distractors {'cost' if value > 0 else 'add'} {grid.gap(value)} of {grid.what} {test}: {means}."
        unsure = (
            f"it can't be told whether hard distractors cost anything: {means}, a difference of {grid.change(value)} "
            f"{test}{grid.power(one.detectable)}."
        )
        page.say(case, sure if one.is_significant(self.plan.alpha) else unsure)

    def finish(self, page: StudyPage) -> None:
        caption = "One relevant passage, at the same position, among weak and among hard distractors."
        spec = outcome_figure(page.table("outcomes"), "distractors", "accuracy")
        page.draw("outcomes", "What became of the answers, by kind of distractor", caption, spec)


def _metric_row(metric: str, values: contrast.Floats) -> Row:
    known = values[~np.isnan(values).any(axis=1)]
    weak, hard = known.mean(axis=0) if len(known) else np.full(2, np.nan)
    return {"metric": metric, WEAK: weak, HARD: hard, "difference": weak - hard, "queries": len(known)}
