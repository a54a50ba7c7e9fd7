"""Give pipeline steps access to the workspace's models, within its budget and through its store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from ragworth.calls.job import Job
from ragworth.calls.programs import NoValue
from ragworth.data import Contexts
from ragworth.evaluation.model_pool import ModelPool, StageProgress, run_metered
from ragworth.retrieval import Pipeline, Step
from ragworth.retrieval.rerankers.asker import StepAsker
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


def steps_with_models(systems: Mapping[str, Pipeline | Contexts]) -> list[Step]:
    """The steps of systems that ask a model."""
    return [step for step in all_steps(systems) if step.models()]


def all_steps(systems: Mapping[str, Pipeline | Contexts]) -> Iterator[Step]:
    """All steps of systems, including those of inner pipelines."""
    waiting = [system for system in systems.values() if isinstance(system, Pipeline)]
    while waiting:
        pipeline = waiting.pop(0)
        for step in pipeline.steps:
            yield step
            waiting += step.all_pipelines


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
