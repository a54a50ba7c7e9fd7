"""``ideal``: if passages could be chosen by the best possible judgment, by which judgment should it be?

All of the first passages of a query are judged; an oracle for each kind of judgment shows the model the k best; the
answers are graded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import ClassVar, cast

import polars as pl

from ragworth.comparison import higher_is_better
from ragworth.core.errors import InputError, format_count
from ragworth.judging.contract import option
from ragworth.report.study.page import Row, StudyPage, TableText, columns
from ragworth.report.study.table_charts import outcome_figure
from ragworth.stats.estimate import mean_of_groups
from ragworth.stats.paired import correct_by_holm
from ragworth.studies import contrast
from ragworth.studies.bench import Bench, JudgedValues
from ragworth.studies.candidates import ContextLists, Unusable
from ragworth.studies.contract import Case, PoolStudy, Published
from ragworth.studies.contrast import SHARE, OutcomeGrid

ORACLES = {
    "relevance": "relevant passages in the order found, then others",
    "erag": "the downstream score (eRAG), highest first",
    "utility": "the utility u = R·(1 − p_abstain), highest first",
}
NEEDS = {"relevance": "", "erag": "downstream", "utility": "abstention"}
"""The aspect that each oracle reads besides relevance."""
REMEDY = "retrieve more passages, give accepted answers, or see why passages could not be judged: ragworth annotate"


@dataclass(frozen=True)
class IdealStudy(PoolStudy):
    """Which kind of judgment makes the best oracle.

    The first passages that the retriever found are judged, and for each kind of judgment an oracle picks the k best: by
    binary relevance (relevant ones in the order found, then others), by the downstream score (eRAG), by utility; equals
    stay in the order found. All oracles pick from the same passages: one that could not be judged by some kind is no
    candidate for any. Queries without accepted answers, or with no more than k candidates, are left out and counted;
    those without a relevant passage stay, since a good context then makes the model abstain.
    """

    k: int = option(5, "passages that an oracle picks", low=1, high=1000)
    erag: bool = option(True, "include an oracle by the downstream score: an answer from each passage alone")

    kind: ClassVar[str] = "ideal"
    title: ClassVar[str] = "which judgment makes the best oracle"
    question: ClassVar[str] = "Ideal: which judgment makes the best oracle?"
    published: ClassVar[Mapping[str, Published]] = {
        "paper": Published(
            "Trappolini et al., Redefining Retrieval Evaluation in the Era of LLMs, Tables 2 and 6",
            {"k": 5, "depth": 25, "erag": True},
            queries=1000,
            differences=("passages that some judge could not judge are no candidates for any oracle",),
            partial=True,
        )
    }
    design_column: ClassVar[str] = "oracle"
    why_ours: ClassVar[str] = "It is the published design, on all queries."
    needs_relevant: ClassVar[bool] = False

    def check(self) -> None:
        if self.depth <= self.k:
            raise InputError(f"{self.k} of {self.depth} passages is no choice", expected="depth > k")

    @property
    def oracles(self) -> list[str]:
        return [name for name in ORACLES if name != "erag" or self.erag]

    @property
    def judges(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(NEEDS[name] for name in self.oracles if NEEDS[name])

    def run(self, bench: Bench) -> Case:
        pool = bench.pool(self.depth, self.retriever)

        def candidates(query: str) -> dict[str, list[str]]:
            pool.check_answered(query)
            if len(pool.found[query]) <= self.k:
                raise Unusable(f"no more than {format_count(self.k, 'passage')} found")
            return {"pool": pool.found[query]}

        def pick(query: str, known: JudgedValues) -> dict[str, list[str]]:
            shown = judged.shown["pool"][query]
            good = [each for each in shown if all((query, each) in values for values in known.values())]
            if len(good) <= self.k:
                raise Unusable(f"no more than {format_count(self.k, 'passage')} that could be judged")

            def worth(oracle: str, passage: str) -> float:
                relevant = pool.is_relevant(query, passage)
                if oracle == "relevance":
                    return float(relevant)
                value = known[NEEDS[oracle]][query, passage]
                return value if oracle == "erag" else (1 if relevant else -1) * (1 - value)

            return {o: sorted(good, key=partial(worth, o), reverse=True)[: self.k] for o in self.oracles}

        def at_most(found: Mapping[str, list[str]]) -> ContextLists:
            return {o: {q: shown[at : at + self.k] for q, shown in found.items()} for at, o in enumerate(self.oracles)}

        judged = replace(pool, limit=None).draw(["pool"], candidates, REMEDY)
        drawn = bench.draw_judged(pool, self.oracles, judged, pick, at_most, REMEDY)
        bench.answer(drawn.contexts)
        design = pl.DataFrame({"system": self.oracles, "oracle": [ORACLES[name] for name in self.oracles]})
        return bench.case(drawn.contexts, design, bench.metrics_at(self.k), drawn.left)

    def tables(self) -> Mapping[str, TableText]:
        return {
            "outcomes": TableText(
                "What became of the answers",
                "low and high: of the share of correct answers, or of the mean; with_relevant: share of the contexts "
                "that hold a relevant passage",
            ),
            "differences": TableText(
                "Oracles against each other",
                f"{contrast.CONTRAST_NOTE}; p by Wilcoxon's signed-rank test, p_holm corrected by Holm for the pairs",
            ),
            "average": TableText(
                "Averaged over the cases",
                "the mean of the cases' shares, each case counting the same; queries resampled within their case; for "
                "two oracles the first minus the second, p of no difference, p_holm corrected by Holm for all of them",
            ),
        }

    def examine(self, case: Case, page: StudyPage) -> None:
        grid = contrast.outcome_grid(case, case.design["system"].to_list(), self.outcome, page)
        size = format_count(int(case.results.contexts.frame["rank"].max() or 0), "passage")  # type: ignore[arg-type]
        picked = f"the {size} that an oracle picked by each kind of judgment"
        page.lead(case, f"the model answered {grid.number} from {picked}.")
        rows = contrast.arm_rows(grid, "oracle", self.plan)
        page.add("outcomes", case, [row | {"with_relevant": _with_relevant(case, grid, row["oracle"])} for row in rows])
        kinds = ["correct", "wrong"] if grid.graded else []
        measures = {"grade" if grid.graded else grid.aspect: (grid.values, (-1.0, 1.0) if grid.graded else None)}
        measures |= {k: (grid.share(k), SHARE) for k in kinds}
        found = contrast.compare_arms(measures, grid.arms, self.plan, clusters=grid.clusters)
        page.add("differences", case, contrast.contrast_rows(found))
        page.say(case, _best(grid))
        for pair in dict.fromkeys((first, second) for _, first, second in found):
            said = {measure: found[measure, *pair] for measure in (kinds or [grid.aspect])}
            words = "; ".join(contrast.contrast_words(grid, *one, self.plan.alpha) for one in said.items())
            page.say(case, f"the {pair[0]} oracle against the {pair[1]} oracle: {words}.")

    def _average(self, cases: Sequence[Case]) -> Iterator[Row]:
        """The shares of correct, abstained and wrong answers over all cases, then those of every two oracles apart."""
        arms = [name for name in self.oracles if all(name in case.design["system"].to_list() for case in cases)]
        grids = [contrast.read_grid(case, arms, self.outcome) for case in cases]
        if not all(grid.graded for grid in grids):
            return
        turns = [grid.clusters for grid in grids]
        for at, name in enumerate(arms):
            for kind in contrast.KINDS:
                one = mean_of_groups([grid.share(kind)[:, at] for grid in grids], self.plan, turns)
                yield {"oracle": name, "answers": kind} | columns(one._replace(p=None), "share", "p", "p_holm")
        pairs = [(b, a, kind) for a, b in combinations(range(len(arms)), 2) for kind in contrast.KINDS]
        gaps = {
            (a, b, kind): mean_of_groups([g.share(kind)[:, a] - g.share(kind)[:, b] for g in grids], self.plan, turns)
            for a, b, kind in pairs
        }
        for (a, b, kind), one in correct_by_holm(gaps).items():
            yield {"oracle": f"{arms[a]} − {arms[b]}", "answers": kind} | columns(one, "share", "p", "p_holm")

    def finish(self, page: StudyPage) -> None:
        if page.several:
            cases = cast(Sequence[Case], page.cases)
            page.add("average", replace(cases[0], name="all"), self._average(cases))
        caption = "All oracles pick from the same passages; only what they go by differs."
        spec = outcome_figure(page.table("outcomes"), "oracle", "accuracy")
        page.draw("outcomes", "What became of the answers, by oracle", caption, spec)


def _with_relevant(case: Case, grid: OutcomeGrid, oracle: object) -> float | None:
    """Share of an oracle's contexts that hold a relevant passage; None if there are no labels."""
    if case.results.judgments is None:
        return None
    mine = (pl.col("system") == oracle) & pl.col("query").is_in(grid.queries)
    labels = case.results.judgments.of("relevance").filter(pl.col("value") >= 1)
    hits = case.results.contexts.frame.filter(mine).join(labels, on=["query", "passage"], how="semi")
    return hits["query"].n_unique() / len(grid.queries)


def _best(grid: OutcomeGrid) -> str:
    means, up = grid.means(), higher_is_better(grid.aspect)
    top = max(means) if up else min(means)
    best = [name for name, each in zip(grid.arms, means, strict=True) if each == top]
    if len(best) == len(grid.arms):
        return f"all oracles have the same {grid.what}, {grid.say(top)} {grid.over}."
    who = f"the {best[0]} oracle has" if len(best) == 1 else f"the oracles {' and '.join(best)} have"
    return f"{who} the {'highest' if up else 'lowest'} {grid.what}, {grid.say(top)} {grid.over}."
