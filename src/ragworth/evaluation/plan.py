"""What an evaluation would take: nothing is asked of a model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ragworth.annotators import annotation
from ragworth.config import Workspace
from ragworth.errors import format_count
from ragworth.evaluation import two_judges
from ragworth.evaluation.checks import load_checked_inputs
from ragworth.evaluation.consent import Consent
from ragworth.evaluation.inputs import EvaluationInputs
from ragworth.evaluation.model_pool import ModelPool
from ragworth.evaluation.stage_cache import StageCache
from ragworth.evaluation.stages import items_to_judge, run_retrieve, stage_annotator, stage_grader, stage_writer
from ragworth.evaluation.state import Console, EvaluationState, SilentConsole
from ragworth.generation import answering
from ragworth.graders import grading
from ragworth.graders.grading import GRADERS

STAGES_FOLDER = "stages"
"""Folder of what stages made, in the cache."""


class StagePlan(NamedTuple):
    """A stage, and what it would take, in words."""

    name: str
    words: str


class EvaluationPlan(NamedTuple):
    """What was read, and each stage that may ask a model."""

    material: EvaluationInputs
    stages: list[StagePlan]
    notes: tuple[str, ...]
    """What was noticed while systems retrieved."""


def plan_evaluation(
    space: Workspace,
    *,
    limit: int | None = None,
    every: bool = False,
    scores: bool = True,
    console: Console | None = None,
    consent: Consent | None = None,
) -> EvaluationPlan:
    """What evaluating would take. Systems are retrieved, since what they show is what is asked about.

    That may take long, where passages are encoded: ``console`` is told. ``scores``: some are to be computed.
    """
    with ModelPool(space, consent=consent) as models:
        material = load_checked_inputs(space, models, limit=limit, every=every, scores=scores)
        state = EvaluationState(
            material, models, StageCache(space.path(space.cache) / STAGES_FOLDER), console or SilentConsole()
        )
        told = run_retrieve(state, plan=True)
        asked = [StagePlan(f"retrieve.{system}", f"{step}: {words}") for system, step, words in told]
        return EvaluationPlan(material, [*asked, *_plan_stages(state)], state.contexts.notes)


def _plan_stages(state: EvaluationState) -> Iterator[StagePlan]:
    space, answers = state.space, 0
    for kind, task in space.judgments.items():
        with state.models.job(task.model, plan=True) as job:
            annotator = stage_annotator(state, kind, job)
            things = items_to_judge(state, annotator)
            words = str(annotation.plan_annotation(annotator, things, job)) if things else "nothing is left to judge"
            yield StagePlan(f"annotate.{kind}", words)
        if task.expensive is not None and task.expensive.file is None:
            with state.models.job(task.expensive.model, plan=True) as job:
                better, some = two_judges.expensive_items(state, kind, job)
                yield StagePlan(two_judges.expensive_stage(kind), str(annotation.plan_annotation(better, some, job)))
    if space.answers is not None and space.answers.file is None:
        with state.models.job(space.answers.task.model, plan=True) as job:
            writer, items = stage_writer(state, job, plan=True)
            answers = len(items)
            yield StagePlan("answer", str(answering.plan_answering(writer, items, job)))
    state.answers = state.material.answers
    for kind, task in space.grades.items():
        chosen = GRADERS.get(kind)
        if not chosen.asks:
            yield StagePlan(f"grade.{kind}", "no model is asked")
        elif state.answers is None:
            more = " or more" if chosen.rounds > 1 else ""
            yield StagePlan(
                f"grade.{kind}", f"{format_count(answers, 'answer')} to grade, with one call{more} for each"
            )
        else:
            with state.models.job(task.model, plan=True) as job:
                grader = stage_grader(state, kind, job)
                yield StagePlan(f"grade.{kind}", str(grading.plan_grading(grader, grader.book.answers, job)))
