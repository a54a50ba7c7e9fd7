"""The state of an evaluation, and the interface of its progress display."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import polars as pl

from ragworth.data import Contexts, Judgments, Outcomes, Ratings, Scores
from ragworth.data.collection import Collection
from ragworth.evaluation.inputs import EvaluationInputs
from ragworth.evaluation.model_pool import ModelPool, StageProgress
from ragworth.evaluation.stage_cache import StageCache, StageResult
from ragworth.generation.writer import AnsweringResult
from ragworth.prompts.template import Template
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
