"""``distractors``: what do passages cost that look like an answer and hold none?

One relevant passage among weak distractors, which the model declines to answer from, and the same one among hard ones,
from which it answers all the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl

from ragworth.errors import InputError, format_count
from ragworth.report.study import Findings, StudyFigure, StudyTable
from ragworth.studies.arms import (
    CONTRASTED,
    KINDS,
    Arms,
    Contrast,
    arm_means,
    arms_figure,
    arms_of,
    arms_table,
    contrast,
    contrasts,
    left_out_rows_of,
    matrix,
    no_queries_error,
    of_design,
    p_words,
)
from ragworth.studies.bench import Bench, PlanComplete
from ragworth.studies.contract import Case, Study
from ragworth.studies.plan_gaps import has_unasked
from ragworth.studies.pool import PassagePool, contexts_from_lists
from ragworth.studies.sentences import left_out_rows
from ragworth.tasks.options import option

WEAK, HARD = "weak", "hard"


@dataclass(frozen=True)
class Distractors(Study):
    """What hard distractors cost: one relevant passage among k − 1 weak ones, and among k − 1 hard ones.

    A distractor is a passage that was found and is not relevant; its distracting effect is 1 − the probability that
    the model declines to answer from it alone. The first k − 1 of each kind in the order found are shown, with the
    first relevant passage at the same position in both contexts, drawn once for the query. A query without enough of
    one kind is left out and counted.
    """

    k: int = option(5, "passages of a context, one of them relevant", low=2, high=1000)
    depth: int = option(25, "passages from the top that distractors are taken from", low=2, high=10_000)
    weak: float = option(0.2, "distracting effect below which a distractor is weak", low=0, high=1)
    hard: float = option(0.8, "distracting effect above which a distractor is hard", low=0, high=1)
    outcome: str | None = option(None, "which outcome to compare; the grade where there is one")

    kind: ClassVar[str] = "distractors"
    title: ClassVar[str] = "what hard distractors cost beside weak ones"
    paper: ClassVar[str] = "Trappolini et al., Redefining Retrieval Evaluation in the Era of LLMs, Table 1"
    judges: ClassVar[tuple[str, ...]] = ("abstention",)

    def check(self) -> None:
        if self.weak > self.hard:
            raise InputError(f"weak ones below {self.weak:g} and hard ones above {self.hard:g}", expected="weak ≤ hard")
        if self.depth < 2 * (self.k - 1):
            raise InputError(
                f"{self.depth} passages cannot hold {self.k - 1} distractors of each kind", expected="depth ≥ 2·(k − 1)"
            )

    def run(self, bench: Bench) -> Case:
        pool = bench.pool(self.depth)
        left: Counter[str] = Counter()
        relevant = {query: self._relevant(pool, query, left) for query in pool.queries}
        relevant = {query: passage for query, passage in relevant.items() if passage}
        if not relevant:
            raise no_queries_error(left, "retrieve more passages, or give more labels")
        judged = {query: [passage, *pool.others(query)] for query, passage in relevant.items()}
        bench.judge(self.judges, contexts_from_lists({"pool": judged}))
        if bench.plan is not None and has_unasked(bench, "abstention", ((q, p) for q in judged for p in judged[q])):
            # Which distractors are weak or hard is not known before; how many contexts at most is.
            some = {WEAK: {q: all_[: self.k] for q, all_ in judged.items()}}
            some[HARD] = {q: [all_[0], *all_[1 - self.k :]] for q, all_ in judged.items()}
            bench.answer(contexts_from_lists(some), "answered-at-most")
            raise PlanComplete
        known = bench.known("abstention")
        shown: dict[str, dict[str, list[str]]] = {WEAK: {}, HARD: {}}
        for query, passages in judged.items():
            effect = {each: 1 - known[query, each] for each in passages[1:] if (query, each) in known}
            kinds = {
                WEAK: [each for each, value in effect.items() if value < self.weak],
                HARD: [each for each, value in effect.items() if value > self.hard],
            }
            if self._lacking(kinds, left):
                continue
            place = pool.dice("distractors", query).randrange(self.k)
            for kind, some_ in kinds.items():
                others = some_[: self.k - 1]
                shown[kind][query] = [*others[:place], passages[0], *others[place:]]
        if not shown[WEAK]:
            raise no_queries_error(
                left, "a deeper pool (--depth), fewer passages (--k), or other limits (--weak, --hard)"
            )
        contexts = contexts_from_lists(shown)
        bench.answer(contexts)
        effects = [f"below {self.weak:g}", f"above {self.hard:g}"]
        design = pl.DataFrame({"system": [WEAK, HARD], "distractors": [WEAK, HARD], "effect": effects})
        return bench.case(contexts, design, bench.default_metrics(self.k), left)

    def _relevant(self, pool: PassagePool, query: str, left: Counter[str]) -> str:
        """The relevant passage of a query's contexts; nothing where the query is left out."""
        found = pool.relevant(query)
        why = "no relevant passage" if not found else ""
        why = "no accepted answers" if query in pool.without_answers else why
        left.update([why] if why else [])
        return "" if why else found[0]

    def _lacking(self, kinds: dict[str, list[str]], left: Counter[str]) -> bool:
        """Whether there are too few distractors of some kind; it is counted."""
        few = [kind for kind, passages in kinds.items() if len(passages) < self.k - 1]
        if few:
            number = self.k - 1
            words = f"{few[0]} ones" if len(few) == 1 else "either kind"
            left[f"fewer than {format_count(number, 'distractor')}, {words}"] += 1
        return bool(few)

    def take(self, case: Case) -> Case:
        return of_design(case, self.kind, "distractors")

    def find(self, cases: Sequence[Case]) -> Findings:
        every = [_DistractorCase(self, case) for case in cases]
        tables = [each.table() for each in every]
        queries = sum(len(each.arms.queries) for each in every)
        return Findings(
            "Distractors: what do misleading passages cost?",
            f"The model answered {format_count(queries, 'query', 'queries')} twice: from one relevant passage among "
            "weak "
            f"distractors, and from the same one, at the same position, among hard ones.",
            tuple(each.sentence() for each in every),
            (
                StudyTable(
                    "outcomes",
                    "What became of the answers",
                    pl.concat(tables, how="diagonal"),
                    "low and high: of the share of correct answers, or of the mean",
                ),
                StudyTable(
                    "differences",
                    "Weak against hard distractors",
                    pl.concat([contrasts(each.case, each.contrasts).drop("p_holm") for each in every]),
                    CONTRASTED,
                ),
                StudyTable(
                    "metrics",
                    "What the metrics say of the two",
                    pl.concat([each.metrics() for each in every]),
                    "means over the same queries; a metric that only reads relevance cannot tell the two apart",
                ),
            ),
            (
                StudyFigure(
                    "outcomes",
                    "What became of the answers, by kind of distractor",
                    "One relevant passage, at the same position, among weak and among hard distractors.",
                    arms_figure(tables, "distractors", every[0].arms.what),
                ),
            ),
            left_out_rows([row for each in every for row in left_out_rows_of(each.case, each.arms)]),
        )


class _DistractorCase:
    """Weak and hard distractors of one case."""

    def __init__(self, study: Distractors, case: Case) -> None:
        self.study, self.case = study, case
        self.arms: Arms = arms_of(case, [WEAK, HARD], study.outcome)
        arms = self.arms
        measures = {arms.what: arms.worth}
        if arms.graded:
            measures |= {kind: arms.of(kind) for kind in KINDS if kind != "correct" and arms.of(kind).any()}
        self.contrasts: list[Contrast] = [
            contrast(measure, (WEAK, values[:, 0]), (HARD, values[:, 1]), study, arms.bounds)
            for measure, values in measures.items()
        ]

    def table(self) -> pl.DataFrame:
        return arms_table(self.case, "distractors", self.arms, self.study, {WEAK: WEAK, HARD: HARD})

    def metrics(self) -> pl.DataFrame:
        rows = []
        for (metric,), part in self.case.results.scores.frame.group_by("metric", maintain_order=True):
            values = matrix(part, self.arms.names, self.arms.queries)
            values = values[~np.isnan(values).any(axis=1)]
            weak, hard = arm_means(values, self.study)
            gap = weak.value - hard.value if weak.value is not None and hard.value is not None else None
            rows.append((self.case.name, str(metric), weak.value, hard.value, gap, len(values)))
        numbers = dict.fromkeys((WEAK, HARD, "difference"), pl.Float64)
        schema = {"case": pl.String, "metric": pl.String, **numbers, "queries": pl.Int64}
        return pl.DataFrame(rows, schema=schema, orient="row")

    def sentence(self) -> str:
        arms, one = self.arms, self.contrasts[0]
        weak, hard = (float(each) for each in arms.worth.mean(axis=0))
        value = one.found.value or 0.0
        found = (
            f"{arms.what} {arms.say(weak)} among weak distractors and {arms.say(hard)} among hard ones, over "
            f"{format_count(len(arms.queries), 'query', 'queries')}"
        )
        test = f"{arms.span(one.found.interval)}, Wilcoxon {p_words(one.found.p)}"
        if one.found.p < 1 - self.study.level:
            verb = "cost" if value > 0 else "add"
            return f"{self.case.name}: hard distractors {verb} {arms.gap(value)} of {arms.what} {test}: {found}."
        return (
            f"{self.case.name}: it cannot be told whether hard distractors cost anything: {found}, a difference of "
            f"{arms.say(value) if not arms.graded else _points(value)} {test}{arms.shows(one.detectable)}."
        )


def _points(value: float) -> str:
    return f"{'−' if value < 0 else ''}{abs(100 * value):.1f} points"
