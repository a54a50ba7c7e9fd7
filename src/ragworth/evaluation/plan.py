"""Plan an evaluation: run the same stages without calls, and count what they would take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ragworth.evaluation import stages
from ragworth.evaluation.checks import load_checked_inputs
from ragworth.evaluation.inputs import EvaluationInputs
from ragworth.evaluation.model_pool import ModelPool
from ragworth.evaluation.stage_cache import STAGES_FOLDER, StageCache
from ragworth.evaluation.state import Console, EvaluationState, SilentConsole, StagePlan
from ragworth.workspace.config import Workspace


class EvaluationPlan(NamedTuple):
    """The inputs, and the stages that may ask a model."""

    material: EvaluationInputs
    stages: list[StagePlan]
    notes: tuple[str, ...]
    """Notes of retrieval."""


def plan_evaluation(
    space: Workspace,
    *,
    limit: int | None = None,
    sample: int | None = None,
    every: bool = False,
    scores: bool = True,
    console: Console | None = None,
    allow_servers: Sequence[str] = (),
) -> EvaluationPlan:
    """Plan an evaluation. Systems retrieve, because calls depend on the passages they show.

    That may take long if passages are encoded: ``console`` receives the progress. ``scores``: whether scores will be
    computed.
    """
    with ModelPool(space, allow_servers=allow_servers) as models:
        material = load_checked_inputs(space, models, limit=limit, sample=sample, every=every, scores=scores)
        cache = StageCache(space.path(space.cache) / STAGES_FOLDER)
        plan: list[StagePlan] = []
        state = EvaluationState(material, models, cache, console or SilentConsole(), plan=plan)
        stages.run_retrieve(state)
        for kind, task in space.judgments.items():
            stages.run_annotate(state, kind, task)
            if task.expensive is not None:
                stages.run_expensive_judge(state, kind, task)
        if state.has_answers:
            stages.run_answer(state, space.answers)
        if material.hops:
            stages.run_hops(state)
        for kind, task in space.grades.items() if state.has_answers else ():
            stages.run_grade(state, kind, task)
        return EvaluationPlan(material, plan, state.contexts.notes)
