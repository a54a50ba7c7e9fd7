"""Run the stages of an evaluation one at a time, on contexts that the caller builds.

All calls go through the workspace's store, so no call is repeated and interrupted work resumes. A plan makes no calls
and records what they would be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from ragworth.core.registry import Registry
from ragworth.data import Answers, Contexts, Judgments, Outcomes, Ratings, Scores
from ragworth.data.collection import Collection
from ragworth.evaluation import stages
from ragworth.evaluation.inputs import EvaluationInputs
from ragworth.evaluation.model_pool import ModelPool
from ragworth.evaluation.output import build_manifest
from ragworth.evaluation.stage_cache import StageCache
from ragworth.evaluation.state import Console, EvaluationState, SilentConsole, StagePlan
from ragworth.judging import ANNOTATORS, GRADERS
from ragworth.judging.answers import AnsweringResult
from ragworth.metrics.parsing import try_parse
from ragworth.results import Results
from ragworth.retrieval import Pipeline
from ragworth.scoring import passage_tokens, score
from ragworth.workspace.config import ModelSpec, TaskConfig, Workspace


class PlanComplete(Exception):  # noqa: N818 (nothing went wrong)
    """The plan ends here: what follows depends on answers of the model."""


@dataclass
class StageSession:
    """A workspace whose stages can be run. Judgments, answers and grades are collected for `results`.

    Attributes
    ----------
    folder: folder of stage results, with a subfolder for each part.
    plan: the calls that would be made, if this is a plan; else None.
    """

    material: EvaluationInputs
    models: ModelPool
    folder: Path
    console: Console = field(default_factory=SilentConsole)
    plan: list[StagePlan] | None = None
    judgments: list[pl.DataFrame] = field(default_factory=list)
    outcomes: list[Outcomes] = field(default_factory=list)
    ratings: Ratings | None = None
    _last: EvaluationState | None = None
    _stages: list[dict[str, Any]] = field(default_factory=list)
    _said: dict[str, list[pl.DataFrame]] = field(default_factory=dict)
    _answers: list[pl.DataFrame] = field(default_factory=list)
    _prompts: dict[str, Any] = field(default_factory=dict)

    @property
    def space(self) -> Workspace:
        return self.material.workspace

    @property
    def collection(self) -> Collection:
        return self.material.collection

    def retrieve(self, systems: dict[str, Pipeline | Contexts] | None = None) -> Contexts:
        """Contexts of the workspace's systems, or of the given ones."""
        state = self._state(None, "pool")
        if systems is not None:
            state.material = replace(self.material, systems=systems)
        stages.run_retrieve(state)
        self._remember(state, "pool")
        return state.contexts

    def judge(
        self, kinds: Sequence[str], contexts: Contexts, part: str = "judged", *, model: ModelSpec | None = None
    ) -> None:
        """Judge the passages of contexts, or the contexts themselves; `judged_values` returns the values.

        ``part`` names the step if passages are judged more than once; each step has its own folder of results.
        """
        for kind in kinds:
            state = self._state(contexts, part)
            stages.run_annotate(state, kind, _with_model(self.space.judgments[kind], model))
            if state.plan is not None and kind in state.said:
                state.plan.clear()  # it was judged before
            self.judgments += [table.frame for table in state.judgments[len(self.material.given) :]]
            self.outcomes += state.outcomes[self._given_outcomes :]
            if kind in state.said and ANNOTATORS.get(kind).unit == "rating":
                self.ratings = Ratings.trusted(state.said[kind].select(list(Ratings.schema)))
            self._remember(state, part)

    def judge_for(self, metrics: Sequence[str], contexts: Contexts) -> None:
        """Make the judgments that metrics need, for kinds of the workspace whose values no file has."""
        given = {aspect for table in self.material.given for aspect in table.frame["aspect"].unique()}
        needs = {str(need) for name in metrics if (metric := try_parse(name)) for need in metric.needs} - given
        self.judge([kind for kind in self.space.judgments if needs & {kind, *ANNOTATORS.get(kind).aspects}], contexts)

    def check_model(self, kinds: Sequence[str], model: ModelSpec) -> None:
        """Refuse a model that can't make these kinds of judgment, before any call."""
        state = self._state(None, "check")
        for kind in kinds:
            with self.models.job(model, plan=True) as job:
                stages.stage_annotator(state, kind, self.space.judgments[kind], job)

    def judged_values(self, aspect: str) -> dict[tuple[str, str], float]:
        """Values of an aspect by query and passage, from files and from the model.

        Raises `PlanComplete` if this is a plan and there are no values yet.
        """
        wanted = (pl.col("aspect") == aspect) & pl.col("value").is_not_null()
        found = {
            (query, passage): value
            for table in reversed(self._judgment_frames)
            for query, passage, value in table.filter(wanted).select("query", "passage", "value").iter_rows()
        }
        if not found and self.plan is not None:
            raise PlanComplete
        return found

    def has_unasked(self, aspects: Sequence[str], shown: Mapping[str, Sequence[str]]) -> bool:
        """Whether this is a plan, and judgments of some of these passages are missing. ``shown``: passages by query."""
        pairs = {(query, passage) for query, passages in shown.items() for passage in passages}
        return self.plan is not None and any(pairs - self._asked(aspect) for aspect in aspects)

    def _asked(self, aspect: str) -> set[tuple[Any, ...]]:
        rows = (table.filter(pl.col("aspect") == aspect)["query", "passage"] for table in self._judgment_frames)
        return {pair for some in rows for pair in some.iter_rows()}

    def answer(
        self, contexts: Contexts, part: str = "answered", *, model: ModelSpec | None = None, without: bool = False
    ) -> None:
        """Answer from contexts and grade the answers. ``without``: also without context, as system ``(none)``."""
        state, writing = self._state(contexts, part), self.space.answers
        assert writing is not None
        stages.run_answer(state, replace(writing, without=without, task=_with_model(writing.task, model)))
        self._grade(state, part)

    def answer_with_confidence(
        self, contexts: Contexts, part: str = "answered", *, model: ModelSpec | None = None
    ) -> None:
        """Like `answer`, with the model's confidence in each answer as further outcomes.

        One greedy call returns an answer and its confidence, with the prompts and lengths of ``[answers]``; other
        settings are those of ``confidence`` under ``[judgments]``. Details of each token are in ``said`` of the
        results, under ``answers``.
        """
        state, writing = self._state(contexts, part), self.space.answers
        assert writing is not None
        writing = replace(writing, task=_with_model(writing.task, model))
        stages.run_answer_with_confidence(state, writing, self.space.judgments.get("confidence", TaskConfig()))
        self._grade(state, part)

    def grade(self, answers: Answers, part: str) -> None:
        """Grade existing answers."""
        state = self._state(Contexts.trusted(pl.DataFrame(schema=Contexts.schema)), part)
        state.answers = AnsweringResult(answers, answers.frame, state.contexts)
        state.said["answers"] = answers.frame
        self._grade(state, part)

    def _grade(self, state: EvaluationState, part: str) -> None:
        if state.answers is not None:
            self._answers.append(state.answers.table.frame)
        for kind, task in self.space.grades.items():
            stages.run_grade(state, kind, task)
        self.outcomes += state.outcomes[self._given_outcomes :]
        self._remember(state, part)

    @property
    def all_ratings(self) -> Ratings | None:
        """Ratings by the model, or those of the collection."""
        return self.ratings or self.collection.ratings

    @property
    def all_judgments(self) -> Judgments | None:
        """All judgments of passages, each once: those of files take precedence over those of the model."""
        if not (tables := self._judgment_frames):
            return None
        frame = pl.concat([table.select(list(Judgments.schema)) for table in tables])
        return Judgments.trusted(frame.unique(["query", "passage", "aspect"], keep="first", maintain_order=True))

    @property
    def known_aspects(self) -> set[str]:
        """Inputs that metrics can use: aspects of judgments, ratings, and tokens of passages."""
        have = set(found.frame["aspect"].unique()) if (found := self.all_judgments) is not None else set()
        have |= {"ratings"} if self.all_ratings is not None else set()
        return have | ({"tokens"} if self.collection.passages.height else set())

    def results(self, contexts: Contexts, metrics: Sequence[str]) -> Results:
        """All results of the session, with scores of these contexts and the texts they show.

        Raises `PlanComplete` if this is a plan.
        """
        if self.plan is not None:
            raise PlanComplete
        judgments, ratings, texts = self.all_judgments, self.all_ratings, self.collection
        scores = Scores.trusted(pl.DataFrame(schema=Scores.schema))
        if metrics:
            tokens = passage_tokens(texts)
            scores = score(contexts, judgments, list(metrics), ratings=ratings, tokens=tokens, complete=False)
        shown = texts.passages.filter(pl.col("passage").is_in(contexts.frame["passage"].unique().to_list()))
        outcomes = [each.frame.select(list(Outcomes.schema)) for each in self.outcomes]
        return Results(
            replace(texts, passages=shown, relevance=None, ratings=None, notes=()),
            contexts,
            judgments,
            ratings,
            Answers.trusted(pl.concat(self._answers)) if self._answers else None,
            Outcomes.trusted(pl.concat(outcomes)) if outcomes else None,
            scores,
            {name: pl.concat(frames, how="diagonal") for name, frames in self._said.items()},
            self._manifest(),
        )

    @property
    def _judgment_frames(self) -> list[pl.DataFrame]:
        return [*(table.frame for table in self.material.given), *self.judgments]

    @property
    def _given_outcomes(self) -> int:
        return int(self.material.outcomes is not None)

    def _state(self, contexts: Contexts | None, part: str) -> EvaluationState:
        """A new state for a step, which reads its contexts to their full depth."""
        plan: list[StagePlan] | None = None if self.plan is None else []
        state = EvaluationState(self.material, self.models, StageCache(self.folder / part), self.console, plan=plan)
        if contexts is not None:
            state.contexts = contexts
            state.depth = int(contexts.frame["rank"].max() or 1) if contexts.frame.height else 1  # type: ignore[arg-type]
        self._last = state
        return state

    def _remember(self, state: EvaluationState, part: str) -> None:
        if self.plan is not None:
            self.plan += _named_plan(state.plan or (), part)
        self._stages += state.stages
        self._prompts |= state.prompts
        for name, frame in state.said.items():
            self._said.setdefault(name, []).append(frame)

    def _manifest(self) -> dict[str, Any]:
        assert self._last is not None
        self._last.stages, self._last.prompts = self._stages, self._prompts
        return build_manifest(self._last)


def _named_plan(plan: Iterable[StagePlan], part: str) -> Iterable[StagePlan]:
    """The stages that ask a model. ``part`` tells repeated annotating and answering apart."""
    asking: dict[str, Registry[Any]] = {"annotate": ANNOTATORS, "grade": GRADERS}
    for name, words in plan:
        stage, dot, kind = name.partition(".")
        if stage not in asking or asking[stage].get(kind).asks_model:
            yield StagePlan(f"{part if stage in ('annotate', 'answer') else stage}{dot}{kind}", words)


def _with_model(task: TaskConfig, model: ModelSpec | None) -> TaskConfig:
    return task if model is None else replace(task, model=model)
