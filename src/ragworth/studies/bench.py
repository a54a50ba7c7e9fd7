"""The bench of a study: what it has judged, answered and graded goes through the stages of an evaluation.

So every call is in the workspace's store, what was asked before is not asked again, and a study that was killed goes
on where it was. In a plan nothing is asked: the bench says what it would take.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from ragworth.annotators import ANNOTATORS
from ragworth.collection import Collection
from ragworth.config import AnswerConfig, ModelSpec, TaskConfig, Workspace
from ragworth.evaluation import stages
from ragworth.evaluation.default_metrics import default_metrics
from ragworth.evaluation.inputs import EvaluationInputs
from ragworth.evaluation.manifest import build_manifest
from ragworth.evaluation.model_pool import ModelPool
from ragworth.evaluation.stage_cache import StageCache
from ragworth.evaluation.state import Console, EvaluationState, SilentConsole, StagePlan
from ragworth.generation.writer import AnsweringResult
from ragworth.graders.grading import GRADERS
from ragworth.metrics.parsing import parse, try_parse, with_parameter
from ragworth.registry import Registry
from ragworth.results import Results
from ragworth.retrieval import Pipeline
from ragworth.scoring import passage_tokens, score
from ragworth.studies.contract import Case, Study
from ragworth.studies.pool import CandidatePool, choose_retriever, contexts_from_lists, lists_by_system
from ragworth.studies.retriever_scores import with_scores
from ragworth.tables import Answers, Contexts, Judgments, Outcomes, Ratings, Scores

FOLDER = "studies"
"""Of what the stages of studies made, in the cache; and of what studies say, in the results."""

GRADER = "deterministic"
"""How answers are graded where the workspace does not say."""
IDEAL = "ideal"
"""Compares answers with an ideal one."""


class PlanComplete(Exception):  # noqa: N818 (nothing went wrong)
    """Nothing more can be said before the model was asked."""


def fit_workspace(space: Workspace, study: Study) -> Workspace:
    """The workspace as a study needs it: with kinds of judgment, answers and grades that it may not name itself."""
    more = {kind: TaskConfig() for kind in study.judges if kind not in space.judgments}
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
    return _with_tasks(study.fit(made), study.design.tasks if study.design is not None else {})


def _with_tasks(space: Workspace, tasks: Mapping[str, Mapping[str, Any]]) -> Workspace:
    """The workspace with the settings that a published design has for its tasks."""
    judgments, grades, answers = dict(space.judgments), dict(space.grades), space.answers
    for name, settings in tasks.items():
        for known in (judgments, grades):
            if name in known:
                known[name] = replace(known[name], settings={**known[name].settings, **settings})
        if name == "answers" and answers is not None:
            answers = replace(answers, task=replace(answers.task, settings={**answers.task.settings, **settings}))
    return replace(space, judgments=judgments, grades=grades, answers=answers)


@dataclass
class Bench:
    """One workspace, ready to be asked.

    ``name`` is what its case will be called. What was judged, answered and graded is remembered, and goes into the
    case.
    """

    material: EvaluationInputs
    models: ModelPool
    study: Study
    name: str
    console: Console = field(default_factory=SilentConsole)
    plan: list[StagePlan] | None = None
    """What would be asked, where nothing is to be asked; None where it is."""
    metrics: tuple[str, ...] = ()
    """Those that the user wants; none: those that the study takes."""
    limit: int | None = None
    """How many queries to study at most, of those that can be."""
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

    def retrieved(self, systems: dict[str, Pipeline | Contexts] | None = None) -> Contexts:
        """What the systems of the workspace show, or other ones."""
        state = self._state(None, "pool")
        if systems is not None:
            state.material = replace(self.material, systems=systems)
        stages.run_retrieve(state)
        self._remember(state, "pool")
        return state.contexts

    def with_scores(self, contexts: Contexts, retriever: str | None = None) -> Contexts:
        """The same contexts, each passage with the retriever's own score for the query; null if it has none.

        Raises `PlanComplete` if nothing is to be asked: models may be needed to score passages.
        """
        if self.plan is not None:
            raise PlanComplete
        name = self._retriever(retriever)
        found = self.retrieved({name: self.material.systems[name]})
        return with_scores(contexts, found, name, self.material)

    def pool(self, depth: int, retriever: str | None = None, level: float = 1.0) -> CandidatePool:
        """What contexts can be made of: the first passages that one retriever finds, even if it shows fewer.

        If there are no labels, and the workspace has relevance judged, these passages are judged first.
        """
        name = self._retriever(retriever)
        system = self.material.systems[name]
        deeper = system.deepened(depth) if isinstance(system, Pipeline) else system
        lists = lists_by_system(self.retrieved({name: deeper})).get(name, {})
        found = {query: lists.get(query, [])[:depth] for query in self.material.setting.ids}
        labels = self.material.setting.labels
        if not labels and "relevance" in self.space.judgments:
            self.judge(["relevance"], contexts_from_lists({"pool": found}), "pool")
            labels = {}
            for (query, passage), value in self.known("relevance").items():
                labels.setdefault(query, {})[passage] = value
        answered = frozenset(self.collection.answers["query"])
        return CandidatePool(
            self.collection,
            found,
            labels,
            level,
            self.space.seed,
            answered if self.study.needs_answers else None,
            self.limit,
        )

    def _retriever(self, wanted: str | None) -> str:
        systems = self.material.systems

        def is_control(name: str) -> bool:
            return isinstance(system := systems.get(name), Pipeline) and system.is_control

        return choose_retriever(list(systems), wanted, is_control, str(self.space.file))

    def judge(
        self, kinds: Sequence[str], contexts: Contexts, part: str = "judged", *, model: ModelSpec | None = None
    ) -> None:
        """Have the passages of contexts (or the contexts) judged; see :meth:`known` for what came of it.

        ``part`` names the step where a study judges more than once: what each made is kept under it.
        """
        for kind in kinds:
            state = self._state(contexts, part)
            stages.run_annotate(state, kind, _with_model(self.space.judgments[kind], model))
            if state.plan is not None and kind in state.said:
                state.plan.clear()  # it was judged before
            self._took(state, kind, part)

    def judge_for(self, metrics: Sequence[str], contexts: Contexts) -> None:
        """Have judged what metrics need, as far as the workspace has it judged and no file says it."""
        given = {aspect for table in self.material.given for aspect in table.frame["aspect"].unique()}
        needs = {str(need) for name in metrics if (metric := try_parse(name)) for need in metric.needs} - given
        self.judge([kind for kind in self.space.judgments if needs & {kind, *ANNOTATORS.get(kind).aspects}], contexts)

    def able(self, kinds: Sequence[str], model: ModelSpec) -> None:
        """Refuse a model that cannot give these kinds of judgment, before anything is asked."""
        state = self._state(None, "able")
        for kind in kinds:
            with self.models.job(model, plan=True) as job:
                stages.stage_annotator(state, kind, self.space.judgments[kind], job)

    def known(self, aspect: str) -> dict[tuple[str, str], float]:
        """Values of an aspect by query and passage: those of files and those that the model gave.

        Raises `PlanComplete` where nothing is to be asked and the model was not asked before.
        """
        tables = [*(table.frame for table in self.material.given), *self.judgments]
        wanted = (pl.col("aspect") == aspect) & pl.col("value").is_not_null()
        found = {
            (query, passage): value
            for table in reversed(tables)
            for query, passage, value in table.filter(wanted).select("query", "passage", "value").iter_rows()
        }
        if not found and self.plan is not None:
            raise PlanComplete
        return found

    def has_unasked(self, aspects: Sequence[str], shown: Mapping[str, Sequence[str]]) -> bool:
        """Whether a plan can't know what the model will say of some of these passages, by query."""
        if self.plan is None:
            return False
        pairs = {(query, passage) for query, passages in shown.items() for passage in passages}
        tables = [*(table.frame for table in self.material.given), *self.judgments]
        return any(
            pairs
            - {
                row
                for table in tables
                for row in table.filter(pl.col("aspect") == aspect)["query", "passage"].iter_rows()
            }
            for aspect in aspects
        )

    def answer(
        self, contexts: Contexts, part: str = "answered", *, model: ModelSpec | None = None, without: bool = False
    ) -> None:
        """Have contexts answered and the answers graded. ``without``: once more without any context, as system
        ``none``.
        """
        state, writing = self._state(contexts, part), self.space.answers
        assert writing is not None
        stages.run_answer(state, replace(writing, without=without, task=_with_model(writing.task, model)))
        self._grade(state, part)

    def grade(self, answers: Answers, part: str) -> None:
        """Have given answers graded."""
        state = self._state(contexts_from_lists({}), part)
        state.answers = AnsweringResult(answers, answers.frame, state.contexts)
        state.said["answers"] = answers.frame
        self._grade(state, part)

    def _grade(self, state: EvaluationState, part: str) -> None:
        if state.answers is not None:
            self._answers.append(state.answers.table.frame)
        for kind, task in self.space.grades.items():
            stages.run_grade(state, kind, task)
        self.outcomes += state.outcomes[len(self._given_outcomes()) :]
        self._remember(state, part)

    def answer_with_confidence(
        self, contexts: Contexts, part: str = "answered", *, model: ModelSpec | None = None
    ) -> None:
        """Have contexts answered and the answers graded, as `answer` does, and keep the model's confidence in each of
        these answers as outcomes.

        One greedy call gives an answer and its confidence, with the prompts and lengths of ``[answers]``; other
        settings are those of ``confidence`` under ``[judgments]``. What is known of each token is in ``said`` of the
        results, under ``answers``.
        """
        state, writing = self._state(contexts, part), self.space.answers
        assert writing is not None
        writing = replace(writing, task=_with_model(writing.task, model))
        stages.run_answer_with_confidence(state, writing, self.space.judgments.get("confidence", TaskConfig()))
        self._grade(state, part)

    def case(
        self,
        contexts: Contexts,
        design: pl.DataFrame,
        metrics: Sequence[str] = (),
        left_out: Mapping[str, int] | None = None,
    ) -> Case:
        """All that came of the study, with the scores of its contexts."""
        if self.plan is not None:
            raise PlanComplete
        judgments = self.all_judgments()
        wanted = list(self.metrics or self._possible(metrics, contexts))
        tokens = passage_tokens(self.collection)
        ratings = self.ratings or self.material.collection.ratings
        scores = (
            score(contexts, judgments, wanted, ratings=ratings, tokens=tokens, complete=False)
            if wanted
            else Scores.trusted(pl.DataFrame(schema=Scores.schema))
        )
        shown = contexts.frame["passage"].unique().to_list()
        texts = self.collection
        results = Results(
            Collection(
                texts.queries,
                texts.passages.filter(pl.col("passage").is_in(shown)),
                texts.answers,
                texts.subquestions,
                turns=texts.turns,
                turn_form=texts.turn_form,
            ),
            contexts,
            judgments,
            ratings,
            Answers.trusted(pl.concat(self._answers)) if self._answers else None,
            Outcomes.trusted(pl.concat([each.frame.select(list(Outcomes.schema)) for each in self.outcomes]))
            if self.outcomes
            else None,
            scores,
            {name: pl.concat(frames, how="diagonal") for name, frames in self._said.items()},
            self._manifest(),
        )
        return Case(self.name, results, design, dict(left_out or {}))

    def all_judgments(self) -> Judgments | None:
        """Everything that is known of passages, each thing once: what files say, then what the model said."""
        tables = [*(table.frame for table in self.material.given), *self.judgments]
        if not tables:
            return None
        frame = pl.concat([table.select(list(Judgments.schema)) for table in tables])
        return Judgments.trusted(frame.unique(["query", "passage", "aspect"], keep="first", maintain_order=True))

    def metrics_at(self, k: int) -> list[str]:
        """The metrics of contexts of k passages: the user's, those of the published design, or the default ones.

        The passages shown are all that there is to rank, so ideal rankings are those of the context.
        """
        if self.metrics:
            return list(self.metrics)
        have: set[str] = set()
        if (found := self.all_judgments()) is not None:
            have |= set(found.frame["aspect"].unique())
        have |= {"ratings"} if (self.ratings or self.collection.ratings) is not None else set()
        have |= {"tokens"} if self.collection.passages.height else set()
        if self.study.design is not None and self.study.design.metrics:
            chosen = [f"{name}@{k}" for name in self.study.design.metrics]
            return [name for name in chosen if set(parse(name).needs) <= have]
        names = default_metrics(have, k, required=False)
        return [with_parameter(name, "ideal", "retrieved") for name in names]

    def _possible(self, metrics: Sequence[str], contexts: Contexts) -> list[str]:
        """Metrics of the study's own choice, without those that need ratings where no query studied is rated."""
        ratings = self.ratings or self.collection.ratings
        rated = ratings is not None and contexts.frame.join(ratings.frame, on="query", how="semi").height > 0
        return [metric for metric in metrics if rated or "ratings" not in parse(metric).needs]

    def _given_outcomes(self) -> list[Outcomes]:
        return [self.material.outcomes] if self.material.outcomes is not None else []

    def _state(self, contexts: Contexts | None, part: str) -> EvaluationState:
        """A state of its own for a step, whose contexts are read whole."""
        folder = self.space.path(self.space.cache) / FOLDER / self.study.kind / part
        plan: list[StagePlan] | None = None if self.plan is None else []
        state = EvaluationState(self.material, self.models, StageCache(folder), self.console, plan=plan)
        if contexts is not None:
            state.contexts = contexts
            state.depth = int(contexts.frame["rank"].max() or 1) if contexts.frame.height else 1  # type: ignore[arg-type]
        self._last = state
        return state

    def _took(self, state: EvaluationState, kind: str, part: str) -> None:
        self.judgments += [table.frame for table in state.judgments[len(self.material.given) :]]
        self.outcomes += state.outcomes[len(self._given_outcomes()) :]
        if kind in state.said and ANNOTATORS.get(kind).unit == "rating":
            self.ratings = Ratings.trusted(state.said[kind].select(list(Ratings.schema)))
        self._remember(state, part)

    def _remember(self, state: EvaluationState, part: str) -> None:
        if self.plan is not None and state.plan is not None:
            # A study may annotate and answer more than once: its own name for the step says which time this is.
            own = {"annotate": part, "answer": part}
            asking: dict[str, Registry[Any]] = {"annotate": ANNOTATORS, "grade": GRADERS}
            for name, words in state.plan:
                stage, dot, kind = name.partition(".")
                if stage in asking and not asking[stage].get(kind).asks:
                    continue
                self.plan.append(StagePlan(f"{own.get(stage, stage)}{dot}{kind}", words))
        self._stages += state.stages
        self._prompts |= state.prompts
        for name, frame in state.said.items():
            self._said.setdefault(name, []).append(frame)

    def _manifest(self) -> dict[str, Any]:
        assert self._last is not None
        state = self._last
        state.stages, state.prompts = self._stages, self._prompts
        return build_manifest(state)


def _with_model(task: TaskConfig, model: ModelSpec | None) -> TaskConfig:
    return task if model is None else replace(task, model=model)
