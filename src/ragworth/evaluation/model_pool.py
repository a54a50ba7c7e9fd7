"""The models of an evaluation: chosen, opened when first needed, with one budget for all stages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from ragworth.calls.budget import JobLimits, JobTally, Price
from ragworth.calls.executors import current_executor, use_executor
from ragworth.calls.job import Job
from ragworth.calls.store import Store
from ragworth.core.errors import InputError, JobStopped, format_count
from ragworth.core.registry import Registry
from ragworth.evaluation.trust_checks import ServerConsent
from ragworth.judging import ANNOTATORS, GRADERS
from ragworth.judging.judge import Annotator, Grader
from ragworth.llm import llm
from ragworth.llm.contract import Card, Model
from ragworth.workspace.config import ModelSpec, TaskConfig, Workspace

NONE = "none"
"""The choice to ask no model."""

CONTAINMENT = "containment"
"""The kind of judgment that stands in for a model's opinion of relevance."""


def with_model(space: Workspace, model: ModelSpec) -> Workspace:
    """The same with another model for all tasks that don't name their own, or without anything that asks one."""
    if model.use != NONE:
        return space.with_model(model)
    if model.options:
        raise InputError(f"{NONE!r} is no model and has no options", remedy="leave the options out, or name a model")
    return _without_model(space)


def _without_model(space: Workspace) -> Workspace:
    """The same without what asks a model: answers and grades in the data are compared.

    Where a model would judge relevance, passages that contain an accepted answer are relevant instead.
    """
    if space.answers is not None and space.answers.replace:
        raise InputError(
            "answers in the data are to be replaced by the model's, but no model may be asked",
            remedy="keep the answers in the data, or name a model",
        )
    judgments = {kind: task for kind, task in space.judgments.items() if not _asks_model(ANNOTATORS, kind)}
    relevance = space.judgments.get("relevance")
    if relevance is not None and "graded" not in relevance.settings:
        judgments.setdefault(CONTAINMENT, TaskConfig())
    return replace(
        space.with_model(ModelSpec(NONE)),
        judgments=judgments,
        judged_queries=None,
        hops=None,
        answers=space.answers if space.answers is not None and space.answers.file is not None else None,
        grades={kind: task for kind, task in space.grades.items() if not _asks_model(GRADERS, kind)},
    )


def _asks_model(registry: Registry[type[Annotator]] | Registry[type[Grader]], kind: str) -> bool:
    """Whether a kind of judgment or grader asks a model; the checks refuse unknown ones."""
    return kind in registry and registry.get(kind).asks_model


T = TypeVar("T")

PERMANENT_FAILURES = frozenset(
    (
        "too-long",
        "ambiguous-labels",
        "bad-label",
        "boundary",
        "empty-prompt",
        "empty-continuation",
        "unknown-token",
        "not-scripted",
    )
)
"""Reasons of failures that would happen again; a stage with only such failures is cached."""


class StageProgress(Protocol):
    """Receives the progress of a long stage."""

    def asking(self, whose: str) -> None:
        """A model is asked from now on; ``whose``: the stage, and in a pipeline the system and the step."""
        ...

    def update(self, tally: JobTally, waiting: int) -> None:
        """``waiting``: distinct calls that have not begun."""
        ...

    def done(self, tally: JobTally) -> None:
        """It has ended, in whatever way."""
        ...

    def working(self, what: str, done: int, total: int) -> None:
        """The progress of work without calls, such as encoding passages."""
        ...


class ModelPool:
    """All models that a workspace names, over one store; closed with it.

    ``wait``: seconds to wait for another process that writes to the store. ``allow_servers``: hosts that the
    workspace's file may name.
    """

    def __init__(self, space: Workspace, wait: float = 0.0, allow_servers: Sequence[str] = ()) -> None:
        self.space = space
        self.wait = wait
        self.consent = ServerConsent(space, allow_servers)
        budget = space.budget
        self.limits = JobLimits(budget.calls, budget.tokens, budget.cost)
        """The remaining budget."""
        self._stack = ExitStack()
        self._open: dict[str, Model] = {}
        self._store: Store | None = None
        self._cards: dict[str, Card] = {}

    def __enter__(self) -> ModelPool:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    @contextmanager
    def job(self, asked: ModelSpec | None, *, plan: bool = False) -> Iterator[Job]:
        """A job for one stage, with the workspace's model or another; its cost is subtracted from the budget.

        ``plan``: nothing will be asked, not even an endpoint what it can do.
        """
        price = Price(*self.space.budget.price) if self.space.budget.price is not None else None
        model = self._model(asked or self.space.model)
        if not plan:
            self._start_executor()
        free = getattr(model, "partial", None) is None  # what is on this machine costs nothing
        if self.limits.cost is not None and price is None and not free:
            raise InputError(
                "the cost is limited, but what the endpoint charges is not known",
                remedy="say it under [budget]: price = [READ, WRITTEN], for a million tokens each",
            )
        job = Job(
            model,
            self._stored(plan),
            limits=self.limits,
            price=price,
            wait=self.wait,
            only_plan=plan,
        )
        try:
            yield job
        finally:
            self.limits = self.limits.less(job.tally)
        if not plan:
            self._cards[repr(job.card)] = job.card

    def _start_executor(self) -> None:
        """The executor that the user names, or else the file."""
        asked = self.space.executor
        if asked.kind == "ray" and current_executor() is None:
            from ragworth.calls.ray import RayExecutor

            self._stack.enter_context(use_executor(RayExecutor(asked)))

    @property
    def cards(self) -> list[Card]:
        """Those of all models that were asked, or would have been if that had not been kept."""
        return list(self._cards.values())

    def _model(self, asked: ModelSpec) -> Model:
        name = f"{asked.use} {sorted(asked.options.items())}"
        if asked.use == NONE:
            raise InputError("this asks a model, but the model is 'none'", remedy="name a model, or leave this out")
        self.consent.check(asked)
        if name not in self._open:
            model = llm(resolve_model_path(asked.use, self.space.folder), **asked.options)
            self._stack.enter_context(closing(model))
            self._open[name] = model
        return self._open[name]

    def _stored(self, plan: bool) -> Store | None:
        path = self.space.path(self.space.store).absolute()  # no "~" is a user's folder
        if self._store is None and (not plan or path.exists()):
            self._store = Store(path)
            self._stack.enter_context(closing(self._store))
        return self._store


def resolve_model_path(spec: str, folder: Path) -> str:
    """A model whose files lie in the folder of the workspace, or below it, from wherever the command is called."""
    kind, _, rest = spec.partition(":")
    if kind == "sampled":
        return f"{kind}:{resolve_model_path(rest, folder)}"
    if kind in ("gguf", "scripted") or (kind == "hf" and (folder / rest).is_dir()):
        return f"{kind}:{folder / rest}" if rest else spec
    return spec


def run_metered(
    job: Job, stage: str, watching: StageProgress | None, work: Callable[[], T]
) -> tuple[T, dict[str, Any]]:
    """What comes of work that asks a model, and what it took, for the manifest.

    A budget that ended it, or failures alone, end the evaluation.
    """
    job.watcher = watching
    if watching is not None:
        watching.asking(stage)
    try:
        found = work()
    finally:
        if watching is not None:
            watching.done(job.tally)
    tally = job.tally
    if job.stopped:
        raise JobStopped(
            f"{stage}: the budget is spent (left for it: {job.stopped}); {format_count(tally.not_asked, 'call')} to "
            "go\n"
            "  to do: run the same again to go on, with a new budget of the same size or a larger one"
        )
    if tally.failed and not tally.done and not tally.cached:
        raise JobStopped(
            f"{stage}: all {format_count(tally.failed, 'call')} failed: {tally.failures}\n"
            "  to do: fix the cause and run the same again"
        )
    facts = {
        "calls": tally.calls,
        "stored": tally.cached,
        "failed": tally.failed,
        "reasons": dict(tally.reasons),
        "prompt_tokens": tally.prompt_tokens,
        "new_tokens": tally.new_tokens,
        "cost": tally.cost,
        "estimated": tally.estimated,
    }
    return found, facts


def may_succeed_later(facts: Mapping[str, Any]) -> bool:
    """Whether calls of a stage failed that may succeed later."""
    return any(reason not in PERMANENT_FAILURES for reason in facts["reasons"])


def card_facts(card: Card) -> Mapping[str, Any]:
    """A model's card as JSON values."""
    return {
        name: sorted(value) if isinstance(value, set | frozenset) else value for name, value in asdict(card).items()
    }
