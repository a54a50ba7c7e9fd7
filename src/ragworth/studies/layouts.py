"""``layouts``: is the context that one model is surest of also the best for another?

For each query the same passages are laid out in several ways: the relevant one first, in between, last. Each model says
how sure it is with each layout, and the one it is surest of is given to every model. A model that knows what helps it
answers better from its own choice than from one at random, and than from another model's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from ragworth.annotators.token_confidence import MEASURES
from ragworth.config import ModelSpec, Workspace
from ragworth.errors import InputError
from ragworth.report.study import Findings, StudyFigure, StudyTable
from ragworth.report.study.charts import heat_chart
from ragworth.report.study.findings import left_out_table
from ragworth.studies.arms import no_queries_error, of_design
from ragworth.studies.bench import Bench
from ragworth.studies.confidence_judgments import KIND, gold, unsuited_reason, with_confidence
from ragworth.studies.contract import Case, Study
from ragworth.studies.layouts_results import BEST, RANDOM, Choosers
from ragworth.studies.pool import PassagePool, contexts_from_lists
from ragworth.tables import Contexts
from ragworth.tasks.options import option

BASE_MODEL = "embedded:base"
"""The model that stands beside the workspace's where no others are named."""


@dataclass(frozen=True)
class Layouts(Study):
    """Whether a model's own confidence chooses the context from which it answers best.

    Every layout has the same passages: the relevant one and the first found that are not relevant; it stands first,
    last, and evenly in between. Every model answers from every layout, so that choosing at random (the mean over the
    layouts) and choosing best (whether any led to a correct answer) are exact, not drawn. Where a model is equally sure
    of several layouts, their mean counts. A query without accepted answers, relevant passage or enough others is left
    out and counted.
    """

    models: str = option("", "models, with commas between them; by default the workspace's and embedded:base")
    size: int = option(10, "passages of a context", low=2, high=100)
    candidates: int = option(3, "layouts of each query", low=2, high=100)
    measure: str = option("KeyEntropy", "confidence that the figure shows and sentences are about", choices=MEASURES)
    depth: int = option(25, "passages from the top that contexts are made of", low=1)
    outcome: str | None = option(None, "which outcome to go by; the grade where there is one")
    correct: float = option(1.0, "least outcome that counts as a correct answer", low=0, high=100)

    kind: ClassVar[str] = "layouts"
    title: ClassVar[str] = "whether the context that one model is surest of is the best for another"
    paper: ClassVar[str] = "Hua et al., Evaluating the Utility of Grounding Documents, Tables 4, 6 and 11"
    judges: ClassVar[tuple[str, ...]] = (KIND,)

    def check(self) -> None:
        if self.candidates > self.size:
            raise InputError(
                f"{self.candidates} layouts need as many places, and there are {self.size}",
                expected="candidates ≤ size",
            )
        names = [name.strip() for name in self.models.split(",")]
        if self.models and (not all(names) or len(names) < 2 or len(set(names)) < len(names)):
            raise InputError(
                f"models is {self.models!r}", expected="two models or more, each once, such as embedded,embedded:base"
            )

    def fit(self, space: Workspace) -> Workspace:
        return with_confidence(space)

    def asked(self, space: Workspace) -> list[ModelSpec]:
        """The models, by their written forms; the workspace's own has its options."""
        names = [name.strip() for name in self.models.split(",")] if self.models else [space.model.use, BASE_MODEL]
        names = list(dict.fromkeys(names))
        if len(names) < 2:
            raise InputError(
                f"layouts compares models, and there is only {names[0]}",
                file=str(space.file),
                remedy="name two or more: --models embedded,embedded:base",
            )
        return [space.model if name == space.model.use else ModelSpec(name) for name in names]

    def run(self, bench: Bench) -> Case:
        models = self.asked(bench.space)
        for model in models:
            bench.able([KIND], model)
        pool = bench.pool(self.depth)
        places = self.places()
        drawn, left = draw(pool, self.size, places)
        tables, design = [], []
        for number, model in enumerate(models, 1):
            names = [f"m{number:02d}p{place:02d}" for place in places]
            contexts = contexts_from_lists(dict(zip(names, drawn, strict=True)))
            bench.judge([KIND], contexts, f"model-{number}", model=model)
            bench.answer(contexts, f"model-{number}", model=model)
            tables.append(contexts)
            design += [(name, model.use, place) for name, place in zip(names, places, strict=True)]
        schema = {"system": pl.String, "model": pl.String, "place": pl.Int64}
        return bench.case(Contexts.concat(tables), pl.DataFrame(design, schema=schema, orient="row"), (), left)

    def places(self) -> list[int]:
        """Where the relevant passage stands in each layout, from first to last."""
        return [1 + at * (self.size - 1) // (self.candidates - 1) for at in range(self.candidates)]

    def take(self, case: Case) -> Case:
        return of_design(case, self.kind, "model")

    def find(self, cases: Sequence[Case]) -> Findings:
        every = [Choosers(self, case, self.measure, self.outcome, self.correct) for case in cases]
        return Findings(
            "Layouts: is the context that one model is surest of the best for another?",
            " ".join(each.lead for each in every),
            tuple(sentence for each in every for sentence in each.sentences()),
            (
                StudyTable(
                    "accuracy",
                    "Correct answers, by who chose the context and who answered",
                    pl.concat([each.table for each in every]),
                    "less random: difference from a layout at random; p by randomisation over queries, p_holm "
                    "corrected by Holm over the rows of a measure; tied: queries in which the chooser is equally "
                    "sure of several layouts; detectable: the smallest true difference that so many queries show with "
                    "probability 0.8",
                ),
                StudyTable(
                    "own-choice",
                    "A model's own choice against another's",
                    pl.concat([each.own for each in every]),
                    "p by randomisation over queries, p_holm corrected by Holm over the rows of a measure",
                ),
            ),
            tuple(figure for number, each in enumerate(every, 1) if (figure := self._figure(each, number, len(every)))),
            left_out_table(row for each in every for row in each.left()),
        )

    def _figure(self, each: Choosers, number: int, cases: int) -> StudyFigure | None:
        table = each.table.filter((pl.col("measure") == self.measure) & pl.col("accuracy").is_not_null())
        if not table.height:
            return None
        shown = table.select(
            pl.col("chosen by").alias("first"),
            pl.col("answered by").alias("second"),
            pl.col("accuracy").alias("value"),
            pl.col("queries").alias("n"),
        )
        spec = heat_chart(
            shown,
            [*each.models, RANDOM, BEST],
            each.models,
            "accuracy",
            "plain",
            down="context chosen by",
            along="answered by",
        )
        title = "Who answers best from whose choice" + (f": {each.case.name}" if cases > 1 else "")
        return StudyFigure(
            f"accuracy-{number}", title, f"Share of correct answers; contexts chosen by {self.measure}.", spec
        )


def draw(pool: PassagePool, size: int, places: Sequence[int]) -> tuple[list[dict[str, list[str]]], Counter[str]]:
    """For each place the contexts by query, and queries left out by reason."""
    drawn: list[dict[str, list[str]]] = [{} for _ in places]
    left: Counter[str] = Counter()
    for query in pool.queries:
        best, why = gold(pool, query), unsuited_reason(pool, query)
        others = [each for each in pool.others(query) if pool.has_text(each)][: size - 1]
        if not why and len(others) < size - 1:
            why = f"fewer than {size - 1} passages that are not relevant"
        if why or best is None:
            left[why] += 1
            continue
        for place, rows in zip(places, drawn, strict=True):
            rows[query] = [*others[: place - 1], best, *others[place - 1 :]]
    if not drawn[0]:
        raise no_queries_error(
            left, "ask for fewer passages (--size), retrieve more, or give accepted answers and labels"
        )
    return drawn, left
