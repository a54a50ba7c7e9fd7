"""The stage that computes what each search of an agent added to its answers, if contexts have hops."""

from __future__ import annotations

from typing import Any

import polars as pl

from ragworth.calls.job import Job
from ragworth.core.errors import format_count
from ragworth.data import Outcomes
from ragworth.evaluation.stage_cache import frame_digest
from ragworth.evaluation.state import EvaluationState, StagePlan, run_task_stage, stage_key, task_settings
from ragworth.judging import ANNOTATORS
from ragworth.judging.contribution.hops import hop_contexts
from ragworth.judging.contribution.kinds import split_by_hops
from ragworth.judging.runner import annotation_items, build_judge, to_answer_book
from ragworth.workspace.config import TaskConfig

KIND = "hops"
STAGE = f"grade.{KIND}"


def run_hops(state: EvaluationState) -> None:
    """Split answers among the hops that found their passages: accepted answers, else given ones, else the model's."""
    task, texts = state.space.hops, state.collection
    if not state.material.hops or task is None:
        return
    if task == "auto":
        _skip(state, "it takes calls; write hops = true under [judgments] to make them")
    elif not texts.queries.height or not texts.passages.height:
        _skip(state, "there are no texts of queries or passages")
    else:
        with state.models.job(task.model, plan=state.plan is not None) as job:
            _split(state, task, job)


def _skip(state: EvaluationState, reason: str) -> None:
    if state.plan is None:
        state.record_stage(STAGE, "skipped", notes=[f"what each search added isn't known: {reason}"])


def _split(state: EvaluationState, task: TaskConfig, job: Job) -> None:
    hops, settings = state.material.hops, task_settings(task, state.space)
    more: dict[str, Any] = {}
    if "answer" not in settings and state.collection.answers.height:
        settings["answer"] = "accepted"
    elif "answer" not in settings and state.has_answers:
        if state.answers is None:  # a plan, of answers that are yet to be written
            assert state.plan is not None
            number = format_count(state.planned_answers, "answer")
            state.plan.append(StagePlan(STAGE, f"{number} to split among searches"))
            return
        more["book"] = to_answer_book(state.answers, state.shown)
    plain = build_judge(ANNOTATORS, "contribution", job.card, state.collection, state.folder, settings, **more)
    annotator = split_by_hops(plain, hops)
    items = annotation_items(annotator, hop_contexts(hops), state.collection)
    found = [[*key, [list(hop) for hop in each]] for key, each in hops.items()]
    key = stage_key(state, job, task, annotator.key_sources) | {"items": items, "hops": found}
    key["answers"] = frame_digest(state.said["answers"]) if more else ""
    made = run_task_stage(state, STAGE, annotator, items, job, key)
    if made is not None:
        frame = state.said[KIND] = made.frames["said"]
        state.outcomes.append(Outcomes.trusted(frame.filter(pl.col("aspect") == "hops-needed")))
