"""The stage that retrieves: what each system shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from ragworth.calls.job import Job
from ragworth.calls.programs import NoValue
from ragworth.core.errors import InputError, format_list
from ragworth.data import Contexts
from ragworth.data.tables import Note
from ragworth.evaluation.model_pool import (
    ModelPool,
    StageProgress,
    may_succeed_later,
    run_metered,
)
from ragworth.evaluation.stage_cache import StageResult, file_digest, frame_digest
from ragworth.evaluation.state import EvaluationState, StagePlan, contexts_key, stage_table
from ragworth.retrieval import Pipeline, Step, retrieve
from ragworth.retrieval.asker import StepAsker
from ragworth.workspace.config import ModelSpec

T = TypeVar("T")


class WorkspaceAsker(StepAsker):
    """Asks the workspace's model, or one that a step names, within the workspace's budget.

    ``facts`` is what it took, for the manifest, where something was asked.
    """

    def __init__(self, models: ModelPool, prompts: Path | None, *, plan: bool = False) -> None:
        super().__init__(prompts=prompts, plan=plan)
        self.models = models
        self.watching: StageProgress | None = None
        self.facts: dict[str, Any] = {}
        self._counted = set()
        self.card = cache(super().card)  # type: ignore[method-assign]

    def _job(self, model: str) -> AbstractContextManager[Job]:
        return self.models.job(ModelSpec(model) if model else None, plan=self.plan)

    def _run(self, job: Job, step: str, work: Callable[[], list[T | NoValue | None]]) -> list[T | NoValue | None]:
        found, facts = run_metered(job, f"retrieve, {self._system}: {step}", self.watching, work)
        self.facts = _add_costs(self.facts, facts)
        return found


def _add_costs(before: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    """What several steps took together; what they cost is not known where that of one is not."""
    if not before:
        return dict(facts)
    made = {name: before[name] + facts[name] for name in facts if name not in ("reasons", "cost")}
    known = None not in (before["cost"], facts["cost"])
    return {
        **made,
        "reasons": dict(Counter(before["reasons"]) + Counter(facts["reasons"])),
        "cost": before["cost"] + facts["cost"] if known else None,
    }


def run_retrieve(state: EvaluationState, *, release: bool = False) -> None:
    """What each system shows. In a plan, lists that a model would have to be asked about keep their order.

    ``release``: runs that were read from files are dropped once nothing needs them.
    """
    material, plan = state.material, state.plan
    if not material.systems:  # the data has answers or grades, and nobody says what was shown for them
        state.contexts = Contexts.trusted(pl.DataFrame(schema=Contexts.schema))
        return
    asker = WorkspaceAsker(state.models, state.folder, plan=plan is not None)
    step_context = replace(material.step_context, model_access=asker)
    steps = [step for system in material.systems.values() for step in _steps(system)]
    model_steps = [step for step in steps if step.models()]

    def found(watching: StageProgress | None) -> tuple[Contexts, dict[str, list[str]]]:
        asker.watching = watching
        progress = watching.working if watching is not None else None
        made = retrieve(material.systems, replace(step_context, progress=progress), logged=material.logged)
        notes = (*made.notes, *material.collection.unknown(made))
        noted = notes_by_system(notes, material.systems)
        made.notes = tuple(prefix_system_names(notes, noted))
        return made, noted

    if plan is not None and model_steps:
        state.contexts, _ = found(state.console.start_stage("retrieve"))
        plan += [StagePlan(f"retrieve.{system}", f"{step}: {words}") for system, step, words in asker.forecasts]
        return
    labelled = any({"relevance", "judgments"} & set(step.needs) for step in steps)
    key = {
        "systems": [[name, _system_key(system)] for name, system in material.systems.items()],
        "files": {str(step): list(map(file_digest, step.files(step_context))) for step in steps},
        "sources": {str(step): step.sources(step_context) for step in steps},
        "queries": [step_context.ids, frame_digest(step_context.queries)],
        "passages": material.texts_key[1],
        "labels": [frame_digest(table) for table in material.given] if labelled else [],
        "seed": step_context.seed,
        "depth": step_context.depth,
    }
    if material.logged:
        key["logged"] = True

    def make(watching: StageProgress | None) -> StageResult:
        if not material.systems:  # dropped, because the cache seemed to have their contexts
            raise InputError(
                "the contexts in the cache can't be read",
                expected="the contexts of an earlier run",
                remedy="run the command again: they have been removed from the cache, and will be made again",
            )
        contexts, noted = found(watching)
        facts = {"empty": sorted(contexts.empty), "notes": list(contexts.notes), "noted": noted, **asker.facts}
        lasting = not asker.forecasts and not (asker.facts and may_succeed_later(asker.facts))
        searches = contexts.searches
        frames = {"searches": searches} if searches is not None and searches.height else {}
        return StageResult(frames, facts, lasting=lasting, tables={"contexts": contexts})

    for step in model_steps:
        state.prompts |= step.templates(step_context)
    if release and state.kept.has("retrieve", key):
        material.systems.clear()  # before the same contexts are read back from the cache
    made = state.stage("retrieve", key, make)
    if release:
        material.systems.clear()
    state.contexts = stage_table(made, "contexts", Contexts)
    state.contexts.empty = frozenset((system, query) for system, query in made.facts["empty"])
    if "searches" in made.frames:
        state.said["searches"] = made.frames["searches"]


def _steps(system: Pipeline | Contexts) -> tuple[Step, ...]:
    return system.all_steps if isinstance(system, Pipeline) else ()


def _system_key(system: Pipeline | Contexts) -> Any:
    """Return all that a system's contexts depend on; a file's notes change with the mapping of its columns."""
    return [contexts_key(system), *system.notes] if isinstance(system, Contexts) else str(system)


def notes_by_system(notes: Sequence[str], systems: Mapping[str, Pipeline | Contexts]) -> dict[str, list[str]]:
    """Notes by system; the note of a step belongs to all systems with that step."""
    found = {name: [note for note in notes if _concerns(name, system, note)] for name, system in systems.items()}
    return {name: some for name, some in found.items() if some}


def _concerns(name: str, system: Pipeline | Contexts, note: str) -> bool:
    if isinstance(note, Note) and note.system:
        return note.system == name
    if isinstance(system, Contexts):
        return note in system.notes
    return isinstance(note, Note) and note.step in {str(step) for step in _steps(system)}


def prefix_system_names(notes: Sequence[str], systems: Mapping[str, Sequence[str]]) -> list[str]:
    """The notes to print, each with its systems in front."""
    return [_prefix_names(note, [name for name, some in systems.items() if note in some]) for note in notes]


def _prefix_names(note: str, names: list[str]) -> str:
    named = isinstance(note, Note) and note.system
    return f"{format_list(names, 3)}: {note}" if names and not named else note
