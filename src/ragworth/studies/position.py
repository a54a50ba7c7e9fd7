"""``position``: does it matter where in the context the relevant passage stands?

One relevant passage is moved through the context, among the same others in the same order; what the model makes of each
place is set beside what metrics give for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from ragworth.errors import InputError, format_count
from ragworth.report.study import Findings, StudyFigure, StudyTable
from ragworth.report.study.charts import curve_chart
from ragworth.studies.arms import CONTRASTED, contrasts, left_out_rows_of, no_queries_error, of_design
from ragworth.studies.bench import Bench
from ragworth.studies.contract import MEASURES, Case, Study
from ragworth.studies.number_lists import numbers
from ragworth.studies.pool import PassagePool, contexts_from_lists
from ragworth.studies.position_results import PositionCase
from ragworth.studies.sentences import left_out_rows, measure_words
from ragworth.tasks.options import option

HOW = (
    "planned in advance: the first position against each other one, and the mean of the two ends against the mean of "
    "those between; p_holm: corrected by Holm for all of them"
)


@dataclass(frozen=True)
class Position(Study):
    """Whether it matters where the relevant passage stands.

    The first relevant passage of a query is moved through positions 1 to k among the first k − 1 others that were
    found, which keep their order. Position matters where, after Holm's correction, the first position differs from
    another one, or the two ends differ from the positions between them (Wilcoxon over queries).
    """

    k: int = option(5, "passages of a context, one of them relevant", low=2, high=1000)
    depth: int = option(25, "passages from the top that the others are taken from", low=1, high=10_000)
    positions: str | None = option(None, "positions to try, such as 1,5,10; all of them where none are named")
    measure: str = option("spearman", "correlation of metrics with the outcome over positions", choices=MEASURES)
    outcome: str | None = option(None, "which outcome to compare; the grade where there is one")

    kind: ClassVar[str] = "position"
    title: ClassVar[str] = "whether it matters where the relevant passage stands"
    paper: ClassVar[str] = (
        "Trappolini et al., Redefining Retrieval Evaluation in the Era of LLMs, Figure 1; with --k 10 --positions "
        "1,5,10 the layouts of the paper on grounding utility (GroGU), section 4.3"
    )
    judges: ClassVar[tuple[str, ...]] = ("abstention",)

    def check(self) -> None:
        if self.depth < self.k - 1:
            raise InputError(f"{self.depth} passages cannot hold {self.k - 1} others", expected="depth ≥ k − 1")
        if len(self.places) < 2:
            raise InputError("one position has nothing to be compared with", expected="two positions or more")

    @property
    def places(self) -> list[int]:
        if self.positions is None:
            return list(range(1, self.k + 1))
        return numbers(self.positions, "positions", self.k)

    def run(self, bench: Bench) -> Case:
        left: Counter[str] = Counter()
        contexts = contexts_from_lists(self._shown(bench.pool(self.depth), left))
        bench.judge(list(bench.space.judgments), contexts)
        bench.answer(contexts)
        design = pl.DataFrame({"system": [_name(place) for place in self.places], "position": self.places})
        return bench.case(contexts, design, _metrics(bench, self.k), left)

    def _shown(self, pool: PassagePool, left: Counter[str]) -> dict[str, dict[str, list[str]]]:
        shown: dict[str, dict[str, list[str]]] = {_name(place): {} for place in self.places}
        for query in pool.queries:
            relevant, others = pool.relevant(query), pool.others(query)[: self.k - 1]
            if why := self._unfit(pool, query, relevant, others):
                left[why] += 1
                continue
            for place in self.places:
                shown[_name(place)][query] = [*others[: place - 1], relevant[0], *others[place - 1 :]]
        if not any(shown.values()):
            raise no_queries_error(left, "retrieve more passages, give more labels, or show fewer (--k)")
        return shown

    def _unfit(self, pool: PassagePool, query: str, relevant: list[str], others: list[str]) -> str:
        if query in pool.without_answers:
            return "no accepted answers"
        if not relevant:
            return "no relevant passage"
        few = len(others) < self.k - 1
        return (
            f"fewer than {format_count(self.k - 1, 'passage')} that {'is' if self.k == 2 else 'are'} not relevant"
            if few
            else ""
        )

    def take(self, case: Case) -> Case:
        return of_design(case, self.kind, "position")

    def find(self, cases: Sequence[Case]) -> Findings:
        every = [PositionCase(self, case) for case in cases]
        tables = [each.table() for each in every]
        queries = sum(len(each.arms.queries) for each in every)
        return Findings(
            "Position: does it matter where the relevant passage stands?",
            f"One relevant passage of {format_count(queries, 'query', 'queries')} was moved through the context, "
            "among the "
            "same others in the same order; the model answered from each.",
            tuple(sentence for each in every for sentence in each.sentences()),
            (
                StudyTable(
                    "outcomes",
                    "What became of the answers, by position of the relevant passage",
                    pl.concat(tables, how="diagonal"),
                    "low and high: of the share of correct answers, or of the mean",
                ),
                StudyTable(
                    "differences",
                    "Positions against each other",
                    pl.concat([contrasts(each.case, each.contrasts) for each in every]),
                    f"{HOW}. {CONTRASTED}",
                ),
                StudyTable(
                    "metrics",
                    "Metrics by position",
                    pl.concat([each.metrics() for each in every], how="diagonal"),
                    "mean over queries at each position",
                ),
                StudyTable(
                    "sight",
                    "What metrics see of the position",
                    pl.concat([each.sight() for each in every]),
                    "blind: the same at every position of every query; correlation: mean "
                    f"{measure_words(self.measure)} with the outcome over the positions of a query, positive where "
                    "a metric sees what the model does, whatever its direction",
                ),
            ),
            tuple(self._figures(every, tables)),
            left_out_rows([row for each in every for row in left_out_rows_of(each.case, each.arms)]),
            tuple(note for each in every for note in each.notes),
        )

    def _figures(self, every: Sequence[PositionCase], tables: Sequence[pl.DataFrame]) -> list[StudyFigure]:
        figures = []
        if len(every) > 1:
            lines = [_line(table, str(table["case"][0])) for table in tables]
            caption = f"{self.level:.0%} intervals over queries."
            spec = curve_chart(pl.concat(lines), "position of the relevant passage", every[0].arms.what)
            figures.append(StudyFigure("answers", "The answers by position", caption, spec))
        for number, (each, table) in enumerate(zip(every, tables, strict=True), 1):
            drawn, more = each.drawn()
            others = f" {format_count(more, 'more metric')} in the table." if more else ""
            title = "The answers and the metrics by position"
            figures.append(
                StudyFigure(
                    "position" if len(every) == 1 else f"position-{number}",
                    title if len(every) == 1 else f"{title}: {each.case.name}",
                    f"{each.arms.what.capitalize()} with its {self.level:.0%} interval over queries, and the means of "
                    f"metrics.{others}",
                    curve_chart(
                        pl.concat([_line(table, each.arms.what), drawn]), "position of the relevant passage", "mean"
                    ),
                )
            )
        return figures


def _name(place: int) -> str:
    return f"p{place:02d}"


def _metrics(bench: Bench, k: int) -> list[str]:
    """Metrics to set beside the answers; ideal rankings are of the context, which holds one relevant passage."""
    known = set(bench.default_metrics(k))
    first = [f"UDCG@{k}", f"nDCG(ideal=retrieved)@{k}", f"AP(ideal=retrieved)@{k}", f"RR@{k}", f"P@{k}", f"Success@{k}"]
    return [each for each in first if each in known or "ideal" in each] + [
        each for each in (f"eRAG@{k}", f"Likelihood@{k}", f"Cov@{k}", f"alpha_nDCG@{k}") if each in known
    ]


def _line(table: pl.DataFrame, name: str) -> pl.DataFrame:
    """The answers as a line of a figure."""
    value = "correct" if "correct" in table.columns else "mean"
    return table.select(
        pl.lit(name).alias("line"),
        pl.col("position").alias("place"),
        pl.col(value).alias("value"),
        "low",
        "high",
        pl.col("queries").alias("n"),
    )
