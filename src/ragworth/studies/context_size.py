"""``context-size``: does a metric keep predicting the answers when more passages are shown?

Contexts of each size are drawn as in ``alignment``; what metrics predict is told for each size. Of an evaluation's
results the contexts are cut at each size, and the outcome may be a metric, so that no model is needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import polars as pl

from ragworth.errors import InputError, format_count
from ragworth.metrics.parsing import parse
from ragworth.report.study import Findings, StudyFigure, StudyTable
from ragworth.report.study.charts import curve_chart, outcome_chart
from ragworth.studies.alignment import draw
from ragworth.studies.arms import KINDS
from ragworth.studies.bench import Bench
from ragworth.studies.context_size_results import SizedCase, family, scored
from ragworth.studies.context_size_sentences import lead, sentences
from ragworth.studies.context_size_tables import change, correlations, lines, spread
from ragworth.studies.context_size_tables import outcomes as became
from ragworth.studies.contract import MEASURES, Case, Study
from ragworth.studies.number_lists import numbers
from ragworth.studies.pool import PassagePool, contexts_from_lists
from ragworth.studies.sentences import left_out_rows, measure_words
from ragworth.tables import Scores
from ragworth.tasks.options import option

LINES = 8
"""Curves in a figure; more would hide each other."""
BANDS = 4
"""Curves up to which their intervals are drawn; the table has them all."""
OVER = {"queries": "within queries, over their contexts", "systems": "over systems, of their means"}


@dataclass(frozen=True)
class ContextSize(Study):
    """How well metrics predict what the model makes of contexts of each size.

    For each size k contexts are drawn as in alignment, of the same queries for every size: those that have enough
    passages for the largest. Metrics are cut at k. Within each query the metric is correlated with the outcome over
    the contexts of one size. Of an evaluation's results the contexts of the systems are cut at each k: metrics are
    computed anew, the outcome stays that of the whole context, or is a metric (against). Then the means of the systems
    are correlated too.
    """

    sizes: str = option("1-5,10,15", "numbers of passages shown, such as 1-5,10,15")
    contexts: int = option(10, "contexts of each size drawn for each query", low=2, high=1000)
    depth: int = option(25, "passages from the top that contexts are drawn from", low=2, high=10_000)
    measure: str = option("spearman", "correlation of metrics with the outcome", choices=MEASURES)
    outcome: str | None = option(None, "which outcome to predict; the grade where there is one")
    against: str | None = option(
        None, "metric to predict in place of an outcome: Cov is cut at each size, Cov@20 stays as it is"
    )

    kind: ClassVar[str] = "context-size"
    title: ClassVar[str] = "whether metrics keep predicting the answers when more is shown"
    paper: ClassVar[str] = (
        "Trappolini et al., Redefining Retrieval Evaluation in the Era of LLMs, Figures 2 and 3; over systems as in "
        "the paper on long-form context evaluation (coverage), Table 3"
    )
    judges: ClassVar[tuple[str, ...]] = ("abstention",)

    def check(self) -> None:
        numbers(self.sizes, "sizes")
        if self.against is not None:
            parse(self.against)
            if self.outcome is not None:
                raise InputError("both an outcome and a metric are to be predicted", expected="outcome or against")

    @property
    def cuts(self) -> list[int]:
        return numbers(self.sizes, "sizes")

    def run(self, bench: Bench) -> Case:
        largest = max(self.cuts)
        if self.depth < largest:
            raise InputError(
                f"contexts of {largest} passages cannot be drawn from {self.depth}", expected="depth ≥ the largest size"
            )
        drawn, left = self._drawn(bench.pool(self.depth))
        contexts = contexts_from_lists(drawn)
        bench.judge(list(bench.space.judgments), contexts)
        if self.against is None:
            bench.answer(contexts)
        names = list(drawn)
        design = pl.DataFrame(
            {
                "system": names,
                "size": [size for size in self.cuts for _ in range(self.contexts)],
                "relevant": [at % 2 == 0 for _ in self.cuts for at in range(self.contexts)],
            }
        )
        case = bench.case(contexts, design, (), left)
        wanted = list(bench.metrics) or bench.default_metrics(largest)
        families = list(dict.fromkeys(each for name in wanted if (each := family(name)) is not None))
        parts = [scored(case.results, of, families, size) for size, of in SizedCase.parts(case, self.cuts).items()]
        scores = Scores.trusted(pl.concat([part.frame for part in parts]))
        return replace(case, results=replace(case.results, scores=scores))

    def _drawn(self, pool: PassagePool) -> tuple[dict[str, dict[str, list[str]]], Counter[str]]:
        """Contexts of every size, of the queries that have enough passages for the largest."""
        try:
            by_size = {size: draw(pool, self.contexts, size) for size in reversed(self.cuts)}
        except InputError as error:
            remedy = f"retrieve more passages, or show fewer: --sizes below {max(self.cuts)}"
            raise InputError(error.found, remedy=remedy) from error
        widest, left = by_size[max(self.cuts)]
        fit = set(next(iter(widest.values())))
        return {
            f"k{size:02d}-{name}": {query: shown for query, shown in rows.items() if query in fit}
            for size in self.cuts
            for name, rows in by_size[size][0].items()
        }, left

    def take(self, case: Case) -> Case:
        if case.design.width > 1 and "size" not in case.design.columns:
            raise InputError(
                f"{case.name}: another study made these contexts, and they have no size",
                remedy=f"name the workspace, an evaluation's results, or what ragworth study {self.kind} wrote before",
            )
        SizedCase(self, case)  # refuses what cannot be cut and scored
        return case

    def find(self, cases: Sequence[Case]) -> Findings:
        every = [SizedCase(self, case) for case in cases]
        table = pl.concat([correlations(each) for each in every])
        return Findings(
            "Context size: do metrics keep predicting the answers when more is shown?",
            " ".join(lead(each) for each in every),
            tuple(sentence for each in every for sentence in sentences(each)),
            (
                StudyTable(
                    "correlation",
                    f"{measure_words(self.measure)} with the outcome, by context size",
                    table,
                    "over queries: mean of the correlations within queries; deviation: their standard deviation; n: "
                    "queries that have one. Over systems: of the systems' means; n: systems",
                ),
                StudyTable(
                    "spread",
                    "How far it strays over the sizes",
                    pl.concat([spread(each) for each in every]),
                    "deviation: standard deviation of the correlation over the sizes",
                ),
                StudyTable(
                    "change",
                    "From the smallest size to the largest",
                    pl.concat([change(each) for each in every]),
                    "correlation within queries at the largest size less that at the smallest, over queries that have "
                    "both; p by a paired bootstrap, p_holm corrected by Holm for the metrics of a case",
                ),
                StudyTable(
                    "outcomes",
                    "What became of the contexts, by size",
                    pl.concat([became(each) for each in every], how="diagonal"),
                    "shares and means over queries; low and high: of the share of correct answers, or of the mean",
                ),
            ),
            tuple(figure for number, each in enumerate(every, 1) for figure in self._figures(each, number, len(every))),
            left_out_rows([row for each in every for row in each.left_out()]),
            tuple(note for each in every for note in each.notes),
        )

    def _figures(self, each: SizedCase, number: int, cases: int) -> list[StudyFigure]:
        last, name = ("", "") if cases == 1 else (f"-{number}", f": {each.case.name}")
        words = measure_words(self.measure)
        figures = []
        for over in each.ways:
            drawn, more = lines(each, over, LINES)
            if not drawn.height:
                continue
            band = drawn["line"].n_unique() <= BANDS
            ends = f"; {self.level:.0%} intervals over queries" if band else "; intervals are in the table"
            caption = f"{words} {OVER[over]}{ends}. Metrics that agree share a line."
            caption += f" {format_count(more, 'more metric')} in the table." if more else ""
            title = f"How well metrics predict, by context size{'' if over == 'queries' else ', over systems'}{name}"
            below = drawn.filter(pl.min_horizontal("value", "low") < 0).height > 0
            spec = curve_chart(drawn, "passages shown", words, zero=below, band=band)
            figures.append(StudyFigure(f"correlation-{over}{last}", title, caption, spec))
        table = became(each)
        if each.moves and "correct" in table.columns:
            kinds = [kind for kind in KINDS if kind != "partial" or table["partial"].sum()]
            stacked = pl.concat(
                table.select(
                    pl.format("k = {}", "k").alias("label"),
                    pl.lit(kind).alias("kind"),
                    pl.col(kind).alias("share"),
                    (pl.col(kind) * pl.col("contexts")).round().cast(pl.Int64).alias("count"),
                )
                for kind in kinds
            )
            title = f"What became of the answers, by context size{name}"
            figures.append(
                StudyFigure(
                    f"answers{last}", title, "Half of the contexts hold a relevant passage.", outcome_chart(stacked)
                )
            )
        elif each.moves:
            line = table.select(
                pl.lit(each.aspect).alias("line"),
                pl.col("k").alias("place"),
                pl.col("mean").alias("value"),
                "low",
                "high",
            )
            title = f"{each.aspect} by context size{name}"
            caption = f"Mean with its {self.level:.0%} interval over queries."
            figures.append(StudyFigure(f"outcome{last}", title, caption, curve_chart(line, "passages shown", "mean")))
        return figures
