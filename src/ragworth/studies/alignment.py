"""``alignment``: does a metric rank the contexts of a query as the answers from them turn out?

Contexts of k passages are drawn from the first that a retriever found, the model answers from each, and within each
query the metric is correlated with the grades. From results of an evaluation, the systems are the contexts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, cast

import polars as pl

from ragworth.core.errors import InputError, format_count
from ragworth.judging.contract import option
from ragworth.metrics.parsing import try_parse
from ragworth.prediction.correlations import Prediction, average_rows, draw_agreement
from ragworth.prediction.system_order import order_notes
from ragworth.report.study.charts import dot_chart
from ragworth.report.study.page import Row, StudyPage, TableText, estimate_rows
from ragworth.report.wording import MEASURE_NAMES, count_queries
from ragworth.score_rows import GRADE, NO_GRADES_REMEDY, PARTIAL_GRADE, outcome_name, rows_of, rows_of_aspect
from ragworth.stats.systems import rank_systems
from ragworth.studies.bench import Bench
from ragworth.studies.candidates import draw_contexts
from ragworth.studies.contract import MEASURES, Case, PoolStudy, Published, parse_names

JUDGED = ("abstention", "downstream", "likelihood")
"""Kinds of judgment that a metric may need besides labels."""
RELEVANCE_METRICS = ("nDCG(ideal=retrieved)", "RR", "AP(ideal=retrieved)", "P", "Success", "eRAG", "UDCG")


@dataclass(frozen=True)
class Alignment(PoolStudy):
    """Which metric predicts what the model makes of a context, within each query.

    Contexts of k passages are drawn from the first that the retriever found. Balanced: every other context has at least
    one relevant passage, the others none; a query without a retrieved relevant passage, or with too few others, is left
    out and counted. Plain: drawn without regard to labels. A query whose contexts all have the same outcome, or for
    which a metric is constant, has no correlation: it is left out of that metric's mean and counted. Metrics are
    compared on the queries that both have, by a paired bootstrap, corrected by Holm.
    """

    contexts: int = option(10, "contexts drawn for each query", low=2)
    k: int = option(5, "passages of a context", low=1)
    sampling: str = option("balanced", "how contexts are drawn", choices=("balanced", "plain"))
    order: str = option("shuffled", "order of the passages in a context", choices=("shuffled", "ranked"))
    abstention: bool = option(True, "judge each passage by abstention, for UDCG")
    measure: str = option("spearman", "correlation within queries", choices=MEASURES)

    kind: ClassVar[str] = "alignment"
    title: ClassVar[str] = "which metric predicts what the model makes of a context"
    question: ClassVar[str] = "Alignment: which metric predicts the answers?"
    published: ClassVar[Mapping[str, Published]] = {
        "paper": Published(
            "Trappolini et al., Redefining Retrieval Evaluation in the Era of LLMs, Tables 3 and 5",
            {"contexts": 10, "k": 5, "depth": 25, "sampling": "balanced", "order": "shuffled", "measure": "spearman"},
            (*RELEVANCE_METRICS, "Likelihood"),
            queries=50,
            tasks={"downstream": {}},
            differences=(
                "queries for which the outcome or a metric is constant are left out; the paper doesn't say how it "
                "counts them",
                "UDCG with learned weights needs a file of them: ragworth train udcg, then -m 'UDCG(theta=FILE)@5'",
            ),
            partial=True,
        ),
        "crux": Published(
            "Ju et al., Controlled Retrieval-augmented Context Evaluation for Long-form RAG, Figure 5",
            {
                "contexts": 48,
                "k": 10,
                "depth": 50,
                "sampling": "plain",
                "order": "ranked",
                "abstention": False,
                "measure": "kendall",
            },
            ("Cov", "R", "AP", "nDCG", "alpha_nDCG"),
            differences=("the contexts come from as many retrievers as are named, three in the paper",),
        ),
    }
    why_ours: ClassVar[str] = "It compares the metrics that an evaluation shows, on all queries."

    def check(self) -> None:
        if self.depth < self.k:
            raise InputError(f"contexts of {self.k} passages can't be drawn from {self.depth}", expected="depth ≥ k")

    def judges_of(self, metrics: Sequence[str]) -> tuple[str, ...]:
        named = metrics or (self.design.metrics if self.design is not None else ("UDCG",))
        needs = {str(need) for name in named if (metric := try_parse(name)) is not None for need in metric.needs}
        return tuple(kind for kind in JUDGED if kind in needs and (kind != "abstention" or self.abstention))

    def run(self, bench: Bench) -> Case:
        names: list[str | None] = [*parse_names(self.retriever)] or [None]
        pools = [bench.pool(self.depth, name) for name in names]
        drawn = draw_contexts(pools, self.contexts, self.k, sampling=self.sampling, order=self.order)
        kinds = [kind for kind in bench.space.judgments if kind != "abstention" or self.abstention]
        bench.judge(kinds, drawn.contexts)
        bench.answer(drawn.contexts)
        design = pl.DataFrame({"system": list(drawn.shown), "size": [self.k] * self.contexts})
        if self.sampling == "balanced":
            design = design.with_columns(relevant=pl.int_range(pl.len()) % 2 == 0)
        return bench.case(drawn.contexts, design, bench.metrics_at(self.k), drawn.left)

    def take(self, case: Case) -> Case:
        rows_of(case.results, self.outcome, name=case.name)  # refuses results without scores or outcomes
        return case

    def tables(self) -> Mapping[str, TableText]:
        measure = MEASURE_NAMES[self.measure]
        return {
            "alignment": TableText(
                f"Mean {measure} with the outcome, within queries",
                "left out: queries for which the metric or the outcome is constant, or with fewer than two contexts",
            ),
            "differences": TableText(
                "The best metric against the others",
                "on the queries for which both have a correlation; p by a paired bootstrap over queries, p_holm "
                "corrected by Holm for the metrics of a case; UDCG against nDCG is always shown",
            ),
            "together": TableText(
                f"{measure} with the outcome, over all contexts",
                "what makes one query easier than another counts here too; intervals over queries",
            ),
            "average": TableText(
                "Averaged over the cases",
                "the mean of the cases' correlations within queries, each case counting the same; queries resampled "
                "within their case; p of no correlation, or of no difference",
            ),
            "systems": TableText(
                "Kendall τ-b of the mean over queries, over contexts drawn alike",
                "each context that is drawn for every query counts as a system; intervals over queries",
            ),
            "agreement": TableText("How far the metrics agree, over all contexts", aside=True),
        }

    def examine(self, case: Case, page: StudyPage) -> None:
        found = self._predict(case)
        rows, best = found.rows, found.within[found.best]
        contexts, metrics = format_count(len(rows.queries), "context"), format_count(len(rows.metrics), "metric")
        queries = count_queries(len(set(rows.queries)))
        page.lead(case, f"{contexts} of {queries} with the outcome {outcome_name(rows.aspect)}, {metrics}.")
        page.say(case, found.sentence())
        page.add("alignment", case, self._rows(case, found))
        page.add("differences", case, found.gap_rows())
        page.add("together", case, found.pooled_rows())
        page.leave_out(case, rows.lost | {f"{rows.metrics[found.best]}: {why}": n for why, n in best.reasons.items()})
        if self.sampling == "plain":
            outcome = rows.grid(rows.outcome)
            grids = {name: rows.grid(rows.values[:, at]) for at, name in enumerate(rows.metrics)}
            taus = {name: rank_systems(grid, outcome, self.plan, rows.query_clusters) for name, grid in grids.items()}
            page.add("systems", case, estimate_rows(("metric",), taus, "τ-b", "counts", "left out"))
            page.note(case, *order_notes(outcome, rows.aspect, self.plan, rows.query_clusters))
        also = rows.aspect if self.sampling == "plain" else ""
        draw_agreement(page, case, rows, "kendall" if self.measure == "kendall" else "spearman", also)

    def _rows(self, case: Case, found: Prediction) -> Iterator[Row]:
        """The metrics, with their correlation with `PARTIAL_GRADE` if the protocol has it."""
        if found.rows.aspect != GRADE or not case.results.outcomes_of(PARTIAL_GRADE).height:
            yield from found.within_rows()
            return
        halved = Prediction(rows_of_aspect(case.results, PARTIAL_GRADE, found.rows.metrics), self.measure, self.plan)
        values = dict(zip(halved.rows.metrics, [one.value for one in halved.within], strict=True))
        for row in found.within_rows():
            yield row | {f"with {PARTIAL_GRADE}": values[str(row["metric"])]}

    def _predict(self, case: Case) -> Prediction:
        rows = rows_of(case.results, self.outcome, name=case.name)
        if not rows.queries:
            raise InputError(f"{case.name}: no context has an outcome {rows.aspect!r}", remedy=NO_GRADES_REMEDY)
        return Prediction(rows, self.measure, self.plan)

    def finish(self, page: StudyPage) -> None:
        if page.several:
            cases = cast(Sequence[Case], page.cases)
            page.add("average", replace(cases[0], name="all"), average_rows([self._predict(case) for case in cases]))
        measure = MEASURE_NAMES[self.measure]
        caption = f"Mean {measure} within queries, with {self.level:.0%} intervals over queries."
        spec = dot_chart(page.dots("alignment", "metric", "correlation"), measure, zero=True)
        page.draw("alignment", "How well each metric predicts the answers", caption, spec)
