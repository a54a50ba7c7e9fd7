"""The models of a workspace for steps of its pipelines: within its budget, through its store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from ragworth.calls.programs import NoValue, Program, run_programs
from ragworth.config import ModelSpec as Named
from ragworth.evaluation.model_pool import ModelPool, StageProgress, run_metered
from ragworth.llm.contract import Card
from ragworth.retrieval import Pipeline, Step
from ragworth.retrieval.rerankers.asker import StepForecast, forecast_work
from ragworth.retrieval.rerankers.llm_reranker import LlmReranker
from ragworth.tables import Contexts

T = TypeVar("T")


class WorkspaceAsker:
    """Asks the workspace's model, or one that a step names. With ``plan`` nothing is asked.

    ``told`` is what would be asked; ``facts`` is what it took, for the manifest, where something was.
    """

    def __init__(self, models: ModelPool, prompts: Path | None, *, plan: bool = False) -> None:
        self.models, self.prompts, self.plan = models, prompts, plan
        self.watching: StageProgress | None = None
        self.told: list[StepForecast] = []
        self.facts: dict[str, Any] = {}
        self._system = ""
        self._cards: dict[str, Card] = {}
        self._counted: set[bytes] = set()

    def card(self, model: str) -> Card:
        if model not in self._cards:
            with self.models.job(_named_model(model), plan=self.plan) as job:
                self._cards[model] = job.card
        return self._cards[model]

    def turn(self, system: str) -> None:
        self._system = system

    def ask(
        self, model: str, work: Callable[[Card], Sequence[Program[T]]], *, step: str, most: int
    ) -> list[T | NoValue | None]:
        with self.models.job(_named_model(model), plan=self.plan) as job:
            if self.plan:
                seen = forecast_work(job, work(job.card), most, self._counted)
                self.told.append(StepForecast(self._system, step, seen.words))
                return seen.found

            def asked() -> list[T | NoValue | None]:
                return list(run_programs(job, work(job.card)))

            found, facts = run_metered(job, f"retrieve, {self._system}: {step}", self.watching, asked)
        self.facts = _add_costs(self.facts, facts)
        return found


def steps_with_models(systems: Mapping[str, Pipeline | Contexts]) -> list[LlmReranker]:
    """The steps of systems that ask a model."""
    return [step for step in all_steps(systems) if isinstance(step, LlmReranker)]


def all_steps(systems: Mapping[str, Pipeline | Contexts]) -> Iterator[Step]:
    """All steps of systems, those of pipelines inside of a step too."""
    waiting = [system for system in systems.values() if isinstance(system, Pipeline)]
    while waiting:
        pipeline = waiting.pop(0)
        for step in pipeline.steps:
            yield step
            waiting += step.contained


def _named_model(model: str) -> Named | None:
    return Named(model) if model else None


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
