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
from ragworth.report.study import Figure, Findings, Shown
from ragworth.report.study.charts import dots
from ragworth.studies.arms import (
    arms_figure,
    nobody_left,
    of_design,
)
from ragworth.studies.bench import Bench
from ragworth.studies.confidence_judgments import (
    KIND,
    SPARE,
    Distractors,
    gold,
    unsuited,
    with_confidence,
)
from ragworth.studies.contract import Case, Study
from ragworth.studies.noise_results import RANDOM, RETRIEVED, SYSTEMS, Beside
from ragworth.studies.pool import Pool, made
from ragworth.studies.sentences import left_out_rows
from ragworth.tasks.options import setting


@dataclass(frozen=True)
class Noise(Study):
    """What random and retrieved passages beside the relevant one do to the answer, and whether the model is aware.

    Both contexts of a query have the same relevant passage at the same place. The retrieved passages are the first
    that are not relevant and in which no accepted answer is found by its words; the random ones were neither found nor
    labelled, nor have an accepted answer. Of queries whose two answers differ in being correct, τ = (C − D)/(C + D)
    says how often a confidence is higher with the context that led to the correct one.
    """

    n: int = setting(4, "passages beside the relevant one", low=1, high=100)
    place: str = setting("random", "where the relevant passage stands", choices=("random", "first", "last"))
    depth: int = setting(25, "passages from the top that the retrieved ones are taken from", low=1)
    outcome: str | None = setting(None, "which outcome to go by; the grade where there is one")
    correct: float = setting(1.0, "least outcome that counts as a correct answer", low=0, high=100)

    kind: ClassVar[str] = "noise"
    title: ClassVar[str] = "whether random or retrieved passages hurt more, and whether the model is aware"
    paper: ClassVar[str] = "Hua et al., Evaluating the Utility of Grounding Documents, Tables 2 and 3"
    judges: ClassVar[tuple[str, ...]] = (KIND,)

    def fit(self, space: Workspace) -> Workspace:
        return with_confidence(space)

    def run(self, bench: Bench) -> Case:
        chosen = choose(bench.pool(self.depth), self.n, self.place)
        contexts = made(chosen.shown)
        passages = [kind for kind in ("abstention",) if kind in bench.space.judgments]
        bench.judge([KIND, *passages], contexts)
        bench.answer(contexts)
        return bench.case(contexts, chosen.design, [f"UDCG@{self.n + 1}"] if passages else [], chosen.left)

    def take(self, case: Case) -> Case:
        return of_design(case, self.kind, "beside")

    def find(self, cases: Sequence[Case]) -> Findings:
        every = [Beside(self, case, self.outcome, self.correct) for case in cases]
        answers, taus = [each.answers() for each in every], pl.concat([each.taus() for each in every])
        gaps = pl.concat([each.gaps() for each in every])
        return Findings(
            "Noise: do random or retrieved passages hurt more, and is the model aware?",
            " ".join(each.lead for each in every),
            tuple(sentence for each in every for sentence in (each.hurt(), each.aware())),
            (
                Shown("answers", "What became of the answers", pl.concat(answers, how="diagonal"), "f1: token F1"),
                Shown(
                    "differences",
                    "Random less retrieved",
                    gaps,
                    "p by a sign test over queries for correct answers, by randomisation for token F1; detectable: the "
                    "smallest true difference that so many queries show with probability 0.8",
                ),
                Shown(
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

    def _figures(self, answers: Sequence[pl.DataFrame], taus: pl.DataFrame) -> tuple[Figure, ...]:
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
        figures = [Figure("answers", "What became of the answers", "Share of the answers by what they were.", drawn)]
        if shown.height:
            caption = f"τ = (C − D)/(C + D) over queries whose two answers differ, {self.level:.0%} intervals."
            figures.append(Figure("concordance", "Is the model aware?", caption, dots(shown, "τ", zero=True)))
        return tuple(figures)


class Chosen(NamedTuple):
    """Contexts by what stands beside the relevant passage and query, and queries left out by reason."""

    shown: dict[str, dict[str, list[str]]]
    left: Counter[str]
    design: pl.DataFrame


def choose(pool: Pool, n: int, place: str) -> Chosen:
    """Both contexts of each query."""
    shown: dict[str, dict[str, list[str]]] = {name: {} for name in SYSTEMS}
    near, far = Distractors(pool.collection), Distractors(pool.collection)
    left: Counter[str] = Counter()
    for query in pool.queries:
        best, why = gold(pool, query), unsuited(pool, query)
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
        raise nobody_left(left, "ask for fewer passages (--n), retrieve more, or give accepted answers and labels")
    columns = {"system": SYSTEMS, "beside": ["random", "retrieved"], "n": [n, n], "passed over": [far.held, near.held]}
    schema = {"system": pl.String, "beside": pl.String, "n": pl.Int64, "passed over": pl.Int64}
    return Chosen(shown, left, pl.DataFrame(columns, schema=schema))
