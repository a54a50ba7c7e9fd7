"""The stage that grades answers."""

from __future__ import annotations

from contextlib import ExitStack

import polars as pl

from ragworth.annotators import ANNOTATORS
from ragworth.core.errors import format_count
from ragworth.evaluation.stage_cache import frame_digest
from ragworth.evaluation.stages.task_stage import contexts_key, run_task_stage, stage_key
from ragworth.evaluation.state import EvaluationState, StagePlan, task_settings
from ragworth.graders import grading
from ragworth.graders.grading import GRADERS
from ragworth.results import SINGLE_ANSWERS
from ragworth.workspace.config import TaskConfig


def run_grade(state: EvaluationState, kind: str, task: TaskConfig) -> None:
    """One way of grading the answers."""
    chosen, name = GRADERS.get(kind), f"grade.{kind}"
    if state.answers is None or state.planned_answers:
        assert state.plan is not None
        calls = f"{format_count(state.planned_answers, 'answer')} to grade"
        if chosen.single:
            calls += f", with one call{' or more' if chosen.rounds > 1 else ''} for each"
        state.plan.append(StagePlan(name, calls if chosen.asks_model else "no model is asked"))
        return
    with ExitStack() as stack:
        plan = state.plan is not None
        job = stack.enter_context(state.models.job(task.model, plan=plan)) if chosen.asks_model else None
        settings = task_settings(task, state.space)
        book = grading.to_answer_book(state.answers, state.shown)
        card = job.card if job is not None else None
        grader = grading.build_grader(kind, card, state.collection, book, state.folder, settings)
        version = [f"version {grader.version}"] if grader.version > 1 else []
        key = stage_key(state, job, task, [grader.source, *version]) | {
            "answers": frame_digest(state.said["answers"]),
            "contexts": contexts_key(state.shown),
            "labels": state.material.labels_key,
        }
        task_and_items = grading.grading_task(grader, book.answers)
        made = run_task_stage(state, name, *task_and_items, job, key, more=_single_answers)
    if made is not None:
        single = made.frames.get(SINGLE_ANSWERS)
        state.add_outcomes(f"graded-{kind}" if kind in ANNOTATORS else kind, made.frames["said"], single)


def _single_answers(result: grading.GradingResult) -> dict[str, pl.DataFrame]:
    """What was said of every single answer, if some queries have several."""
    return {SINGLE_ANSWERS: result.answers} if result.answers.height > result.frame.height else {}
