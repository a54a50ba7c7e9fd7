"""What all stages share: a task as a stage, keys, large tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import polars as pl

from ragworth.calls.job import Job
from ragworth.calls.serialization import model_digest
from ragworth.data import Contexts, Table
from ragworth.evaluation.model_pool import StageProgress, may_succeed_later, run_metered
from ragworth.evaluation.stage_cache import StageResult, frame_digest
from ragworth.evaluation.state import EvaluationState, StagePlan
from ragworth.tasks.contract import FindingT, ItemT, ResultT, Task, plan_task, run_task
from ragworth.workspace.config import TaskConfig

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
