"""``noise``: what hurts more beside the relevant passage, retrieved ones or random ones, and is the model aware?

For each query the same relevant passage stands at the same place among n random passages, and among n that were
retrieved and do not have the answer. Where the two answers come out differently, a confidence is worth something that
is higher with the context that led to the correct one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import polars as pl

from ragworth.config import Workspace
from ragworth.report.study import Findings, StudyFigure, StudyTable
from ragworth.report.study.charts import dot_chart
from ragworth.studies.arms import (
    arms_figure,
    no_queries_error,
    of_design,
)
from ragworth.studies.bench import Bench
from ragworth.studies.confidence_judgments import (
    KIND,
    SPARE,
    DistractorPool,
    gold,
    unsuited_reason,
    with_confidence,
)
from ragworth.studies.contract import Case, Study
from ragworth.studies.noise_results import RANDOM, RETRIEVED, SYSTEMS, NoiseCase
from ragworth.studies.pool import PassagePool, contexts_from_lists
from ragworth.studies.sentences import left_out_rows
from ragworth.tasks.options import option


@dataclass(frozen=True)
class Noise(Study):
    """What random and retrieved passages beside the relevant one do to the answer, and whether the model is aware.

    Both contexts of a query have the same relevant passage at the same place. The retrieved passages are the first
    that are not relevant and in which no accepted answer is found by its words; the random ones were neither found nor
    labelled, nor have an accepted answer. Of queries whose two answers differ in being correct, τ = (C − D)/(C + D)
    says how often a confidence is higher with the context that led to the correct one.
    """

    n: int = option(4, "passages beside the relevant one", low=1, high=100)
    place: str = option("random", "where the relevant passage stands", choices=("random", "first", "last"))
    depth: int = option(25, "passages from the top that the retrieved ones are taken from", low=1)
    outcome: str | None = option(None, "which outcome to go by; the grade where there is one")
    correct: float = option(1.0, "least outcome that counts as a correct answer", low=0, high=100)

    kind: ClassVar[str] = "noise"
    title: ClassVar[str] = "whether random or retrieved passages hurt more, and whether the model is aware"
    paper: ClassVar[str] = "Hua et al., Evaluating the Utility of Grounding Documents, Tables 2 and 3"
    judges: ClassVar[tuple[str, ...]] = (KIND,)

    def fit(self, space: Workspace) -> Workspace:
        return with_confidence(space)

    def run(self, bench: Bench) -> Case:
        chosen = choose(bench.pool(self.depth), self.n, self.place)
        contexts = contexts_from_lists(chosen.shown)
        passages = [kind for kind in ("abstention",) if kind in bench.space.judgments]
        bench.judge([KIND, *passages], contexts)
        bench.answer(contexts)
        return bench.case(contexts, chosen.design, [f"UDCG@{self.n + 1}"] if passages else [], chosen.left)

    def take(self, case: Case) -> Case:
        return of_design(case, self.kind, "beside")

    def find(self, cases: Sequence[Case]) -> Findings:
        every = [NoiseCase(self, case, self.outcome, self.correct) for case in cases]
        answers, taus = [each.answers() for each in every], pl.concat([each.taus() for each in every])
        gaps = pl.concat([each.gaps() for each in every])
        return Findings(
            "Noise: do random or retrieved passages hurt more, and is the model aware?",
            " ".join(each.lead for each in every),
            tuple(sentence for each in every for sentence in (each.hurt(), each.aware())),
            (
                StudyTable("answers", "What became of the answers", pl.concat(answers, how="diagonal"), "f1: token F1"),
                StudyTable(
                    "differences",
                    "Random less retrieved",
                    gaps,
                    "p by a sign test over queries for correct answers, by randomisation for token F1; detectable: the "
                    "smallest true difference that so many queries show with probability 0.8",
                ),
                StudyTable(
                    "concordance",
                    "Is the confidence higher with the context that led to the correct answer?",
                    taus,
                    "over queries in which one of the two answers is correct; tied ones are in neither count; p by a "
                    "sign test, p_holm corrected by Holm over the rows of a case; right: share of the untied ones; "
                    "macro F1: of telling by the confidence which of the two is correct",
                ),
            ),
            self._figures(answers, taus),
            left_out_rows(row for each in every for row in each.left()),
            tuple(each.note for each in every if each.note),
        )

    def _figures(self, answers: Sequence[pl.DataFrame], taus: pl.DataFrame) -> tuple[StudyFigure, ...]:
        one = taus["case"].n_unique() < 2
        shown = taus.select(
            pl.col("confidence").alias("label"),
            pl.col("tau").alias("value"),
            "low",
            "high",
            (pl.col("concordant") + pl.col("discordant")).alias("n"),
            *([] if one else [pl.col("case").alias("group")]),
        )
        drawn = arms_figure(answers, "context", "mean outcome")
        figures = [
            StudyFigure("answers", "What became of the answers", "Share of the answers by what they were.", drawn)
        ]
        if shown.height:
            caption = f"τ = (C − D)/(C + D) over queries whose two answers differ, {self.level:.0%} intervals."
            figures.append(StudyFigure("concordance", "Is the model aware?", caption, dot_chart(shown, "τ", zero=True)))
        return tuple(figures)


class NoiseContexts(NamedTuple):
    """Contexts by what stands beside the relevant passage and query, and queries left out by reason."""

    shown: dict[str, dict[str, list[str]]]
    left: Counter[str]
    design: pl.DataFrame


def choose(pool: PassagePool, n: int, place: str) -> NoiseContexts:
    """Both contexts of each query."""
    shown: dict[str, dict[str, list[str]]] = {name: {} for name in SYSTEMS}
    near, far = DistractorPool(pool.collection), DistractorPool(pool.collection)
    left: Counter[str] = Counter()
    for query in pool.queries:
        best, why = gold(pool, query), unsuited_reason(pool, query)
        if why or best is None:
            left[why] += 1
            continue
        dice = pool.dice("noise", query)
        at = {"random": dice.randrange(n + 1), "first": 0, "last": n}[place]
        retrieved = near.first(query, pool.others(query), n)
        drawn = far.first(query, pool.random(query, n + SPARE, dice), n)
        if min(len(retrieved), len(drawn)) < n:
            left[f"fewer than {n} {'retrieved' if len(retrieved) < n else 'random'} passages without the answer"] += 1
            continue
        for name, others in ((RANDOM, drawn), (RETRIEVED, retrieved)):
            shown[name][query] = [*others[:at], best, *others[at:]]
    if not any(shown.values()):
        raise no_queries_error(left, "ask for fewer passages (--n), retrieve more, or give accepted answers and labels")
    columns = {"system": SYSTEMS, "beside": ["random", "retrieved"], "n": [n, n], "passed over": [far.held, near.held]}
    schema = {"system": pl.String, "beside": pl.String, "n": pl.Int64, "passed over": pl.Int64}
    return NoiseContexts(shown, left, pl.DataFrame(columns, schema=schema))
