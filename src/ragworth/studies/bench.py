"""The bench of a study: builds contexts, has them judged, answered and graded, and scores them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import polars as pl

from ragworth.data import Contexts
from ragworth.evaluation.inputs import EvaluationInputs
from ragworth.evaluation.model_pool import ModelPool
from ragworth.evaluation.session import PlanComplete, StageSession
from ragworth.evaluation.stages.score import default_metrics
from ragworth.evaluation.state import Console, SilentConsole, StagePlan
from ragworth.metrics.parsing import parse, with_parameter
from ragworth.retrieval import Pipeline
from ragworth.score_rows import with_partial_grades
from ragworth.studies.candidates import (
    Candidates,
    ContextLists,
    DrawnContexts,
    Unusable,
    choose_retriever,
    contexts_from_lists,
    lists_by_system,
)
from ragworth.studies.contract import Case, Study
from ragworth.studies.passage_scores import with_scores
from ragworth.workspace.config import AnswerConfig, TaskConfig, Workspace

FOLDER = "studies"
"""Of what the stages of studies made, in the cache; and of what studies say, in the results."""

GRADER = "deterministic"
"""Grader of answers if the workspace names none."""
IDEAL = "ideal"
"""Compares answers with an ideal one."""

JudgedValues = dict[str, dict[tuple[str, str], float]]
"""Judgments by aspect, then by query and passage."""


def fit_workspace(space: Workspace, study: Study, metrics: Sequence[str] = ()) -> Workspace:
    """The workspace with the judgments, answers and grades that a study needs, with the metrics that the user names."""
    more = {kind: TaskConfig() for kind in study.judges_of(metrics) if kind not in space.judgments}
    writing = space.answers if space.answers is not None and space.answers.file is None else AnswerConfig()
    wanted = [IDEAL] if getattr(study, "outcome", None) == IDEAL else [] if space.grades else [GRADER]
    grades = {**{kind: TaskConfig() for kind in wanted}, **space.grades}
    # Ideal answers are the oracle's, unless the workspace says otherwise: then no accepted answers are needed.
    oracle = IDEAL in grades and grades[IDEAL].settings.get("ideal", "oracle") == "oracle"
    everything = writing.everything or (oracle and (IDEAL in wanted or set(grades) == {IDEAL}))
    made = replace(
        space,
        judgments={**space.judgments, **more},
        answers=replace(writing, oracle=oracle, everything=everything, replace=True) if study.answers else None,
        grades=grades if study.answers else {},
        graded=() if study.answers else space.graded,  # outcomes in files are of other contexts
    )
    fitted = study.fit(made)
    if study.design is None:
        return fitted
    return fitted.with_settings({"abstention": {"calibrated": False}, **study.design.tasks})


class Bench(StageSession):
    """A workspace, opened for a study.

    ``name`` is what its case will be called; ``metrics`` are those that the user wants; ``limit`` is how many queries
    to study at most, of those that can be.
    """

    def __init__(
        self,
        material: EvaluationInputs,
        models: ModelPool,
        study: Study,
        name: str,
        console: Console | None = None,
        *,
        plan: list[StagePlan] | None = None,
        metrics: Sequence[str] = (),
        limit: int | None = None,
    ) -> None:
        space = material.workspace
        folder = space.path(space.cache) / FOLDER / study.kind
        super().__init__(material, models, folder, console or SilentConsole(), plan)
        self.study, self.name, self.metrics, self.limit = study, name, tuple(metrics), limit

    def with_scores(self, contexts: Contexts, retriever: str | None = None) -> Contexts:
        """The same contexts, each passage with the retriever's own score for the query; null if it has none.

        Raises `PlanComplete` if nothing is to be asked: models may be needed to score passages.
        """
        if self.plan is not None:
            raise PlanComplete
        name = self._retriever(retriever)
        system = self.material.systems[name]
        return with_scores(contexts, self.retrieve({name: system}), name, system, self.material.step_context)

    def pool(self, depth: int, retriever: str | None = None, level: float = 1.0) -> Candidates:
        """Candidates for contexts: the first passages of one retriever, even if its system shows fewer.

        If there are no labels, and the workspace has relevance judged, these passages are judged first.
        """
        name = self._retriever(retriever)
        system = self.material.systems[name]
        deeper = system.with_depth(depth) if isinstance(system, Pipeline) else system
        lists = lists_by_system(self.retrieve({name: deeper})).get(name, {})
        found = {query: lists.get(query, [])[:depth] for query in self.material.step_context.ids}
        labels = self.material.step_context.labels
        if not labels and "relevance" in self.space.judgments:
            self.judge(["relevance"], contexts_from_lists({"pool": found}), "pool")
            labels = {}
            for (query, passage), value in self.judged_values("relevance").items():
                labels.setdefault(query, {})[passage] = value
        answered = frozenset(self.collection.answers["query"]) if self.study.needs_answers else None
        return Candidates(self.collection, found, labels, level, self.space.seed, answered, limit=self.limit)

    def _retriever(self, wanted: str | None) -> str:
        systems = self.material.systems
        controls = {name for name, each in systems.items() if isinstance(each, Pipeline) and each.is_control}
        return choose_retriever(list(systems), wanted, controls, str(self.space.file))

    def draw_judged(
        self,
        pool: Candidates,
        arms: Sequence[str],
        candidates: DrawnContexts,
        build: Callable[[str, JudgedValues], Mapping[str, list[str]]],
        at_most: Callable[[Mapping[str, list[str]]], ContextLists],
        remedy: str,
    ) -> DrawnContexts:
        """Contexts that depend on what the model says about their candidates, the only arm of ``candidates``.

        They are judged for as many queries at a time as are still wanted: ``build``, which gets a query and the values
        by aspect, raises `Unusable` for some. A plan that can't know the values counts the contexts ``at_most``.
        """
        (passages,) = candidates.shown.values()
        kinds, queries, tried, found = self.study.judges, list(passages), 0, 0
        known: JudgedValues = {}
        while tried < len(queries) and (self.limit is None or found < self.limit):
            batch = queries[tried : tried + self.limit - found] if self.limit is not None else queries
            some = {query: passages[query] for query in batch}
            self.judge(kinds, contexts_from_lists({"pool": some}), f"judged-{tried}" if tried else "judged")
            if self.has_unasked(kinds, some):
                self.answer(contexts_from_lists(at_most(some)), "answered-at-most")
                raise PlanComplete
            known = {kind: self.judged_values(kind) for kind in kinds}
            tried += len(batch)
            for query in batch:
                with suppress(Unusable):
                    build(query, known)
                    found += 1
        return pool.draw(arms, lambda query: build(query, known), remedy, candidates.left, queries[:tried])

    def case(
        self,
        contexts: Contexts,
        design: pl.DataFrame,
        metrics: Sequence[str] = (),
        left_out: Mapping[str, int] | None = None,
    ) -> Case:
        """All that came of the study, with the scores of its contexts: by ``metrics``, unless the user names others.

        Metrics of ratings are left out if no query studied is rated.
        """
        if not self.metrics:
            ratings = self.all_ratings
            rated = ratings is not None and contexts.frame.join(ratings.frame, on="query", how="semi").height > 0
            metrics = [metric for metric in metrics if rated or "ratings" not in parse(metric).needs]
        results = self.results(contexts, self.metrics or metrics)
        if self.study.design is not None and self.study.design.partial:
            results = with_partial_grades(results)
        return Case(self.name, results, design, dict(left_out or {}))

    def metrics_at(self, k: int) -> list[str]:
        """The metrics of contexts of k passages: the user's, those of the published design, or the default ones.

        The passages shown are all that there is to rank, so ideal rankings are those of the context.
        """
        if self.metrics:
            return list(self.metrics)
        have = self.known_aspects
        if self.study.design is not None and self.study.design.metrics:
            chosen = [f"{name}@{k}" for name in self.study.design.metrics]
            return [name for name in chosen if set(parse(name).needs) <= have]
        names = default_metrics(have, k, required=False)
        return [with_parameter(name, "ideal", "retrieved") for name in names]
