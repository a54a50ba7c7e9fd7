"""``alignment``: does a metric rank the contexts of a query as the answers from them turn out?

For each query contexts of k passages are drawn from the first d that were found, half of them with a relevant passage;
the model answers from each; within each query the metric is correlated with what became of the answers, and the
correlations are averaged. Of an evaluation's results, the systems are the contexts.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from ragworth.errors import InputError
from ragworth.report.study import Findings, StudyFigure, StudyTable
from ragworth.report.study.charts import dot_chart, heat_chart
from ragworth.studies.alignment_results import CaseAlignment, Resampling
from ragworth.studies.arms import no_queries_error
from ragworth.studies.bench import Bench
from ragworth.studies.contract import MEASURES, Case, Study
from ragworth.studies.pool import PassagePool, contexts_from_lists
from ragworth.studies.score_rows import rows_of
from ragworth.studies.sentences import left_out_rows, measure_words
from ragworth.tasks.options import option

TOGETHER = "here also what makes one query easier than another counts; intervals over queries"
CONSTANT = "left out: queries in which the metric or the outcome is constant, or that have fewer than two contexts"
PAIRED = (
    "over the queries in which both have a correlation; p by a paired bootstrap over queries, corrected by Holm for "
    "the metrics of a case"
)


@dataclass(frozen=True)
class Alignment(Study):
    """Which metric predicts what the model makes of a context, within each query.

    Contexts of k passages are drawn from the first d found, half of them with a relevant passage; a query with no
    relevant passage, too few others or no accepted answer is left out and counted. A query whose contexts all came to
    the same outcome, or in which a metric is constant, has no correlation: it is left out of that metric's mean and
    counted. Metrics are compared over the queries that both have, by a paired bootstrap, corrected by Holm.
    """

    contexts: int = option(10, "contexts drawn for each query", low=2)
    k: int = option(5, "passages of a context", low=1)
    depth: int = option(25, "passages from the top that contexts are drawn from", low=2)
    measure: str = option("spearman", "correlation within queries", choices=MEASURES)
    outcome: str | None = option(None, "which outcome to predict; the grade where there is one")

    kind: ClassVar[str] = "alignment"
    title: ClassVar[str] = "which metric predicts what the model makes of a context"
    paper: ClassVar[str] = "Trappolini et al., Redefining Retrieval Evaluation in the Era of LLMs, Table 3"
    judges: ClassVar[tuple[str, ...]] = ("abstention",)

    def check(self) -> None:
        if self.depth < self.k:
            raise InputError(f"contexts of {self.k} passages cannot be drawn from {self.depth}", expected="depth ≥ k")

    def run(self, bench: Bench) -> Case:
        pool = bench.pool(self.depth)
        drawn, left = draw(pool, self.contexts, self.k)
        contexts = contexts_from_lists(drawn)
        bench.judge(list(bench.space.judgments), contexts)
        bench.answer(contexts)
        design = pl.DataFrame(
            {"system": list(drawn), "relevant": [number % 2 == 0 for number in range(len(drawn))], "size": self.k},
            schema={"system": pl.String, "relevant": pl.Boolean, "size": pl.Int64},
        )
        return bench.case(contexts, design, bench.default_metrics(self.k), left)

    def take(self, case: Case) -> Case:
        rows_of(case.results, self.outcome, name=case.name)  # refuses results without scores or outcomes
        return case

    def find(self, cases: Sequence[Case]) -> Findings:
        measure = measure_words(self.measure)
        how = Resampling(self.measure, self.level, self.resamples, self.seed)  # type: ignore[arg-type]
        every = [CaseAlignment(case.name, rows_of(case.results, self.outcome, name=case.name), how) for case in cases]
        table = pl.concat([each.table() for each in every])
        pairs = pl.concat([each.pairs() for each in every])
        everything = pl.concat([each.together() for each in every])
        left = [(case.name, reason, number) for case in cases for reason, number in case.left_out.items()]
        left += [(each.name, reason, number) for each in every for reason, number in each.rows.lost.items()]
        for each in every:
            metric = each.rows.metrics[each.best]
            left += [(each.name, f"{metric}: {reason}", number) for reason, number in each.reasons.items()]
        return Findings(
            "Alignment: which metric predicts the answers?",
            " ".join(each.lead for each in every),
            tuple(each.sentence() for each in every),
            (
                StudyTable("alignment", f"Mean {measure} with the outcome, within queries", table, CONSTANT),
                StudyTable(
                    "differences", "The best metric against the others", pl.concat([e.gaps() for e in every]), PAIRED
                ),
                StudyTable("together", f"{measure} with the outcome, over all contexts at once", everything, TOGETHER),
                StudyTable("agreement", "How far the metrics agree: Spearman ρ over all contexts", pairs, aside=True),
            ),
            (self._correlations(table, measure), *agreements(pairs)),
            left_out_rows(left),
        )

    def _correlations(self, table: pl.DataFrame, measure: str) -> StudyFigure:
        group = [pl.col("case").alias("group")] if table["case"].n_unique() > 1 else []
        named = {"label": "metric", "value": "correlation", "low": "low", "high": "high", "n": "queries"}
        shown = table.drop_nulls("correlation").select(*(pl.col(old).alias(new) for new, old in named.items()), *group)
        return StudyFigure(
            "alignment",
            "How well each metric predicts the answers",
            f"Mean {measure} within queries, with {self.level:.0%} intervals over queries.",
            dot_chart(shown, measure, zero=True),
        )


def agreements(pairs: pl.DataFrame) -> list[StudyFigure]:
    """A matrix of how far the metrics agree, for each case."""
    figures = []
    names = pairs["case"].unique(maintain_order=True).to_list()
    for number, name in enumerate(names, 1):
        mine = pairs.filter(pl.col("case") == name)
        metrics = list(dict.fromkeys([*mine["first"], *mine["second"]]))
        other = mine.select(pl.col("second").alias("first"), pl.col("first").alias("second"), "value")
        same = pl.DataFrame({"first": metrics, "second": metrics, "value": [1.0] * len(metrics)})
        both = pl.concat([mine.select("first", "second", "value"), other, same]).drop_nulls("value")
        figures.append(
            StudyFigure(
                f"agreement-{number}",
                "How far the metrics agree" + (f": {name}" if len(names) > 1 else ""),
                "Spearman ρ between metrics over all contexts.",
                heat_chart(both, metrics, metrics, "Spearman ρ"),
            )
        )
    return figures


def draw(pool: PassagePool, number: int, k: int) -> tuple[dict[str, dict[str, list[str]]], Counter[str]]:
    """Contexts by their name and query, every other one with a relevant passage; and queries left out, by reason."""
    drawn: dict[str, dict[str, list[str]]] = {f"c{at:02d}": {} for at in range(number)}
    left: Counter[str] = Counter()
    for query in pool.queries:
        relevant, others = pool.relevant(query), pool.others(query)
        if why := _unfit(pool, query, relevant, others, k):
            left[why] += 1
            continue
        chance = pool.dice("alignment", query)
        for at, name in enumerate(drawn):
            drawn[name][query] = _context(relevant if at % 2 == 0 else [], others, k, chance)
    if not any(drawn.values()):
        raise no_queries_error(left, "retrieve more passages, or give more labels")
    return drawn, left


def _unfit(pool: PassagePool, query: str, relevant: list[str], others: list[str], k: int) -> str:
    if query in pool.without_answers:
        return "no accepted answers"
    if not relevant:
        return "no relevant passage"
    return f"fewer than {k} passages that are not relevant" if len(others) < k else ""


def _context(relevant: list[str], others: list[str], k: int, chance: random.Random) -> list[str]:
    """k passages in any order: drawn from all, but at least one relevant one where there are to be such."""
    first = [chance.choice(relevant)] if relevant else []
    rest = [each for each in (*relevant, *others) if each not in first]
    shown = [*first, *chance.sample(rest, k - len(first))]
    chance.shuffle(shown)
    return shown
