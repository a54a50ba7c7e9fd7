"""The state of an evaluation, the interface of its progress display, and what all stages share."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import polars as pl

from ragworth.calls.job import Job
from ragworth.calls.serialization import model_digest
from ragworth.data import Contexts, Judgments, Outcomes, Ratings, Scores, Table
from ragworth.data.collection import Collection
from ragworth.evaluation.inputs import EvaluationInputs
from ragworth.evaluation.model_pool import ModelPool, StageProgress, may_succeed_later, run_metered
from ragworth.evaluation.stage_cache import StageCache, StageResult, frame_digest
from ragworth.judging.answers import AnsweringResult
from ragworth.judging.contract import FindingT, ItemT, ResultT, Task, plan_task, run_task
from ragworth.llm.prompts.template import Template
from ragworth.results import SINGLE_ANSWERS
from ragworth.workspace.config import TaskConfig, Workspace


class Console(Protocol):
    """Receives the progress of an evaluation."""

    def start_stage(self, name: str) -> StageProgress | None:
        """A stage starts; the result, if any, receives the progress of its calls."""
        ...

    def finish_stage(self, facts: Mapping[str, Any]) -> None:
        """A stage has ended. ``facts``: name, status, notes, seconds and, if a model was asked, calls and tokens."""
        ...


class SilentConsole:
    """Shows nothing."""

    def start_stage(self, name: str) -> StageProgress | None:
        return None

    def finish_stage(self, facts: Mapping[str, Any]) -> None:
        pass


class StagePlan(NamedTuple):
    """A stage, and its calls, tokens and cost in words."""

    name: str
    words: str


@dataclass
class EvaluationState:
    """The tables computed so far, stage by stage.

    ``depth``: how many passages of each context the model reads, where that is not the workspace's k. ``plan``: no
    model is asked; each stage that would ask one adds a line, and what was made before is used.
    """

    material: EvaluationInputs
    models: ModelPool
    kept: StageCache
    console: Console = field(default_factory=SilentConsole)
    depth: int | None = None
    plan: list[StagePlan] | None = None
    contexts: Contexts = field(init=False)
    judgments: list[Judgments] = field(init=False)
    all_judgments: Judgments | None = None
    """All judgments in one table, once there are scores."""
    ratings: Ratings | None = field(init=False)
    answers: AnsweringResult | None = None
    planned_answers: int = 0
    """Answers that a plan expects."""
    outcomes: list[Outcomes] = field(init=False)
    scores: Scores | None = None
    expensive: dict[str, Judgments] = field(default_factory=dict)
    """Judgments of a sample of the queries by the expensive judge, by kind."""
    estimates: dict[str, pl.DataFrame] = field(default_factory=dict)
    """Estimates for all queries from that sample: tables by name."""
    said: dict[str, pl.DataFrame] = field(default_factory=dict)
    """Model output, by stage."""
    prompts: dict[str, Template] = field(default_factory=dict)
    stages: list[dict[str, Any]] = field(default_factory=list)
    """Name, status, notes, time, calls and tokens of each stage."""

    def __post_init__(self) -> None:
        self.judgments = self.material.given
        self.ratings = self.material.collection.ratings
        self.outcomes = [self.material.outcomes] if self.material.outcomes is not None else []

    @property
    def space(self) -> Workspace:
        return self.material.workspace

    @property
    def collection(self) -> Collection:
        return self.material.collection

    @property
    def has_answers(self) -> bool:
        """Whether answers are in the data, or will be written."""
        return self.space.answers is not None or self.material.answers is not None

    @property
    def shown(self) -> Contexts:
        """What the model reads: the first k passages."""
        return self.contexts.cut(self.k)

    @property
    def k(self) -> int:
        return self.depth or self.space.k

    @property
    def folder(self) -> Path | None:
        """Folder with the user's own prompts."""
        return self.space.path(self.space.prompts) if self.space.prompts else None

    def stage(
        self, name: str, key: Mapping[str, Any], make: Callable[[StageProgress | None], StageResult]
    ) -> StageResult:
        """The cached result of a stage, or a new one; either is recorded and reported."""

        def timed() -> StageResult:
            watching, begun = self.console.start_stage(name), time.monotonic()
            made = make(watching)
            seconds = round(time.monotonic() - begun, 3)
            return replace(made, facts={**made.facts, "lasting": made.lasting, "seconds": seconds})

        made = self.kept.of(name, key, timed)
        status = "kept" if not made.fresh else "done" if made.facts["lasting"] else "incomplete"
        self.record_stage(
            name, status, **{fact: value for fact, value in made.facts.items() if fact not in ("lasting", "empty")}
        )
        return made

    def record_stage(self, name: str, status: str, **facts: Any) -> None:
        """Record the status of a stage, and report it.

        ``status``: ``done``; ``kept`` from the cache; ``given`` in a file; ``skipped`` if there was nothing to do;
        ``incomplete`` if calls failed that are retried the next time.
        """
        self.stages.append({"name": name, "status": status, **facts})
        self.console.finish_stage(self.stages[-1])

    def add_outcomes(self, kind: str, frame: pl.DataFrame, single: pl.DataFrame | None = None) -> None:
        """Add outcomes of a kind, and if queries have several answers, the output about each ``single`` one.

        Where another, or a file, came first with the same aspect, this one is called KIND-ASPECT.
        """
        taken = {aspect for table in self.outcomes for aspect in table.frame["aspect"].unique()}
        own = pl.col("aspect")
        renamed = pl.when(own.is_in(list(taken))).then(pl.lit(f"{kind}-") + own).otherwise(own)
        named = frame.with_columns(renamed.alias("aspect"))
        step = "grade" if "grade" in named["aspect"].unique() else kind
        self.said[step] = named
        if single is not None:
            self.said[f"{step}-{SINGLE_ANSWERS}"] = single.with_columns(renamed.alias("aspect"))
        self.outcomes.append(Outcomes.trusted(named))


def task_settings(task: TaskConfig, space: Workspace) -> dict[str, Any]:
    """The settings of a task; a prompt that is a file of the workspace gets its path."""
    settings = dict(task.settings)
    for name in ("prompt", "alone"):
        given = settings.get(name)
        if isinstance(given, str) and given and space.path(given).is_file():
            settings[name] = str(space.path(given))
    return settings


def expensive_task(task: TaskConfig) -> TaskConfig:
    """Settings of the expensive judge of a kind: those of the cheap one, except where it has its own."""
    assert task.expensive is not None
    return TaskConfig({**task.settings, **task.expensive.settings}, task.expensive.model)


T = TypeVar("T", bound=Table)


def stage_table(frame: StageResult, name: str, kind: type[T]) -> T:
    """A large table of a stage, made now or read back."""
    table = frame.tables.get(name)
    found = table if isinstance(table, kind) else kind.trusted(frame.frames[name])
    found.notes = tuple(frame.facts["notes"])
    return found


def contexts_key(contexts: Contexts) -> list[Any]:
    """What contexts are, in short."""
    return [frame_digest(contexts), sorted(contexts.empty)]


def run_task_stage(
    state: EvaluationState,
    name: str,
    task: Task[ItemT, FindingT, ResultT],
    items: Sequence[ItemT],
    job: Job | None,
    key: Mapping[str, Any],
    note: Callable[[pl.DataFrame], str] | None = None,
    more: Callable[[ResultT], Mapping[str, pl.DataFrame]] | None = None,
) -> StageResult | None:
    """Run a task as a stage. In a plan nothing is asked, and what the stage would give is None if it isn't kept.

    ``note``: what to remember besides, by the rows. ``more``: further frames to keep, by their names.
    """
    state.prompts |= task.templates

    def make(watching: StageProgress | None) -> StageResult:
        work = partial(run_task, task, items, job)
        found, facts = run_metered(job, name, watching, work) if job is not None else (work(), {})
        notes = [*found.notes, *([note(found.frame)] if note is not None else [])]
        notes += job.notes if job is not None else ()
        lasting = job is None or not may_succeed_later(facts)
        frames = {"said": found.frame, **(more(found) if more is not None else {})}
        return StageResult(frames, {**facts, "notes": notes}, lasting=lasting)

    if state.plan is not None:
        words = str(plan_task(task, items, job)) if job is not None else "no model is asked"
        state.plan.append(StagePlan(name, words))
        return state.kept.read(name, key)
    return state.stage(name, key, make)


def skip_stage(state: EvaluationState, name: str, note: str) -> None:
    """Remember that a stage has nothing to do."""
    if state.plan is not None:
        state.plan.append(StagePlan(name, "nothing is left to judge"))
    else:
        state.record_stage(name, "skipped", notes=[note])


def stage_key(state: EvaluationState, job: Job | None, task: TaskConfig, sources: Sequence[str]) -> dict[str, Any]:
    """What everything depends on that is asked, or compared, one by one."""
    return {
        "model": model_digest(job.card).hex() if job is not None else "",
        "declining": job.card.declining if job is not None else None,
        "settings": dict(task.settings),
        "sources": sources,
        "texts": state.material.texts_key,
    }
