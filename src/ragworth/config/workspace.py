"""What a ``ragworth.toml`` says, as values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

EVERY_SYSTEM = "*"
"""Name of a system that stands for all that a file of runs has, each under its own name."""

WORKSPACE_FILE = "ragworth.toml"
"""What the file of a workspace is called."""


@dataclass(frozen=True)
class ModelSpec:
    """A model by its written form, with its options."""

    use: str = "embedded"
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ExpensiveJudge:
    """A better judge than one has the means to ask about everything: a model for some queries, or what it said."""

    model: ModelSpec | None = None
    sample: int | None = None
    """Queries that the model is asked about."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Those that differ from the kind's."""
    file: str | None = None
    """Judgments that are there already; their queries are the sample."""


@dataclass(frozen=True)
class TaskConfig:
    """A kind of judgment, or a grader: its settings, and the model that it asks where that is not everybody's."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    model: ModelSpec | None = None
    expensive: ExpensiveJudge | None = None
    """Of a kind of judgment: who judges some of it better."""


@dataclass(frozen=True)
class CollectionConfig:
    """Where the collection comes from: all of it, or its parts; a part replaces that of the whole."""

    whole: str | None = None
    queries: str | None = None
    passages: str | None = None
    answers: str | None = None
    subquestions: str | None = None
    qrels: tuple[str, ...] = ()
    ratings: str | None = None


@dataclass(frozen=True)
class AnswerConfig:
    """How answers are written, or the file that has them."""

    task: TaskConfig = TaskConfig()
    without: bool = False
    oracle: bool = False
    everything: bool = False
    """Also queries without accepted answers, where others have some."""
    file: str | None = None


@dataclass(frozen=True)
class BudgetConfig:
    """How far to go; None as far as it takes."""

    calls: int | None = None
    tokens: int | None = None
    cost: float | None = None
    price: tuple[float, float] | None = None
    """What an endpoint charges for a million tokens read and written."""


@dataclass(frozen=True)
class OutputPaths:
    """Where to write instead of where the file says. They start where the command is called, not at the file."""

    results: str | Path | None = None
    store: str | Path | None = None
    cache: str | Path | None = None

    def __bool__(self) -> bool:
        return any((self.results, self.store, self.cache))


@dataclass(frozen=True)
class Workspace:
    """Everything that one file says."""

    file: Path
    title: str = ""
    seed: int = 0
    k: int = 5
    limit: int | None = None
    collection: CollectionConfig = CollectionConfig()
    systems: Mapping[str, str] = field(default_factory=dict)
    """Pipelines in their written form, by name."""
    model: ModelSpec = ModelSpec()
    judgments: Mapping[str, TaskConfig] = field(default_factory=dict)
    judged: tuple[str, ...] = ()
    """Files of judgments."""
    answers: AnswerConfig | None = None
    grades: Mapping[str, TaskConfig] = field(default_factory=dict)
    graded: tuple[str, ...] = ()
    """Files of outcomes."""
    metrics: tuple[str, ...] = ()
    """None named: those that what is there allows."""
    baseline: str | None = None
    budget: BudgetConfig = BudgetConfig()
    results: str = "results"
    store: str = "calls.sqlite"
    cache: str = ".ragworth"
    prompts: str | None = None
    given: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """All that the file says, as it was when it was read; nothing where a workspace was made without one."""
    digest: str = field(default="", compare=False)
    """Of the file, then."""

    @property
    def folder(self) -> Path:
        return self.file.parent

    def path(self, text: str) -> Path:
        """A path of the file's, from its folder."""
        return self.folder / text

    def spec(self, text: str) -> str:
        """A path that may carry its format in front (``beir:FOLDER``), from the folder of the file."""
        form, colon, rest = text.partition(":")
        if colon and re.fullmatch(r"[a-z_]{2,}", form):
            return text if form == "ir_datasets" else f"{form}:{self.folder / rest}"
        return str(self.folder / text)
