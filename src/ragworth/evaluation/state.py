"""What an evaluation has come to so far, and who is told of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import polars as pl

from ragworth.collection import Collection
from ragworth.config import TaskConfig, Workspace
from ragworth.evaluation.inputs import EvaluationInputs
from ragworth.evaluation.model_pool import ModelPool, StageProgress
from ragworth.evaluation.stage_cache import StageCache, StageResult
from ragworth.generation.writer import AnsweringResult
from ragworth.prompts.template import Template
from ragworth.results import SINGLE_ANSWERS
from ragworth.tables import Contexts, Judgments, Outcomes, Ratings, Scores


class Console(Protocol):
    """Somebody who is told how an evaluation goes."""

    def start_stage(self, name: str) -> StageProgress | None:
        """A stage is made anew; who watches its calls, if it makes any."""
        ...

    def finish_stage(self, facts: Mapping[str, Any]) -> None:
        """A stage has ended: its name, status, notes, seconds, and, where a model was asked, calls and tokens."""
        ...


class SilentConsole:
    """Tells nobody."""

    def start_stage(self, name: str) -> StageProgress | None:
        return None

    def finish_stage(self, facts: Mapping[str, Any]) -> None:
        pass


class StagePlan(NamedTuple):
    """A stage, and what it would take, in words."""

    name: str
    words: str


@dataclass
class EvaluationState:
    """Tables as they come, stage by stage.

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
    """Those in one table, once scores were computed."""
    ratings: Ratings | None = field(init=False)
    answers: AnsweringResult | None = None
    planned_answers: int = 0
    """Answers that a plan counts on."""
    outcomes: list[Outcomes] = field(init=False)
    scores: Scores | None = None
    expensive: dict[str, Judgments] = field(default_factory=dict)
    """By kind, what a better judge says of a sample of the queries."""
    estimates: dict[str, pl.DataFrame] = field(default_factory=dict)
    """What follows from that for all queries: tables by name."""
    said: dict[str, pl.DataFrame] = field(default_factory=dict)
    """What the model said, by the name of its step."""
    prompts: dict[str, Template] = field(default_factory=dict)
    stages: list[dict[str, Any]] = field(default_factory=list)
    """Name, status, notes, time, calls and tokens of each."""

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
        """That of a user's own prompts."""
        return self.space.path(self.space.prompts) if self.space.prompts else None

    def stage(
        self, name: str, key: Mapping[str, Any], make: Callable[[StageProgress | None], StageResult]
    ) -> StageResult:
        """A stage as it was made before from the same, or made now; remembered, and told."""

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
        """Remember how a stage went, and tell it.

        ``status``: ``done``; ``kept`` from before; ``given`` by a file; ``skipped`` where nothing was left to do;
        ``incomplete`` where calls failed that may pass, and are tried again the next time.
        """
        self.stages.append({"name": name, "status": status, **facts})
        self.console.finish_stage(self.stages[-1])

    def add_outcomes(self, kind: str, frame: pl.DataFrame, single: pl.DataFrame | None = None) -> None:
        """Outcomes of a kind, and where queries have several answers, what was said of every ``single`` one.

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
    """The settings of a task; a prompt that is a file of the workspace is named by where it lies."""
    settings = dict(task.settings)
    for name in ("prompt", "alone"):
        given = settings.get(name)
        if isinstance(given, str) and given and space.path(given).is_file():
            settings[name] = str(space.path(given))
    return settings


def expensive_task(task: TaskConfig) -> TaskConfig:
    """How the better judge of a kind is asked: as the other one, but for what is said of it."""
    assert task.expensive is not None
    return TaskConfig({**task.settings, **task.expensive.settings}, task.expensive.model)
