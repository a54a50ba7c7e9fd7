"""The stage that answers: what the data has, and what the model writes."""

from __future__ import annotations

import polars as pl

from ragworth.annotators.answer_confidence import AnswerConfidence, written_answers
from ragworth.data import Answers, Contexts
from ragworth.evaluation.stages.task_stage import run_task_stage, stage_key
from ragworth.evaluation.state import EvaluationState, task_settings
from ragworth.generation import answering
from ragworth.generation.writer import NO_CONTEXT_SYSTEM, ORACLE_SYSTEM, AnsweringResult, shown_contexts
from ragworth.workspace.config import AnswerConfig, TaskConfig


def answerable_contexts(state: EvaluationState, writing: AnswerConfig) -> Contexts:
    """The contexts that are answered from: where some queries have accepted answers, only theirs."""
    answers = state.collection.answers
    if writing.everything or not answers.height:
        return state.shown
    known = set(answers["query"].unique())
    made = Contexts.trusted(state.shown.frame.filter(pl.col("query").is_in(list(known))))
    made.empty = frozenset(pair for pair in state.shown.empty if pair[1] in known)
    return made


def run_answer(state: EvaluationState, writing: AnswerConfig | None) -> None:
    """The answers in the data, and what the model answers for systems that have none there."""
    given = state.material.answers if writing is None or not writing.replace else None
    if given is not None:
        state.answers, state.said["answers"] = given, given.frame
        if writing is None or not _left_to_answer(state, given, writing):
            if state.plan is None:
                state.record_stage("answer", "given", notes=list(given.notes))
            return
    assert writing is not None
    plan = state.plan is not None
    with state.models.job(writing.task.model, plan=plan) as job:
        settings = task_settings(writing.task, state.space)
        writer = answering.build_writer(job, state.collection, state.folder, state.k, settings, plan=plan)
        items = answering.answer_items(
            writer,
            answerable_contexts(state, writing),
            state.collection,
            without=writing.without,
            oracle=writing.oracle,
        )
        answered = set(given.table.distinct("system")) if given is not None else set()
        items = [item for item in items if item.system not in answered]
        sources = [writer.source(system) for system in sorted({item.system for item in items})]
        key = stage_key(state, job, writing.task, sources) | {"items": items}
        key["oracle"] = state.material.labels_key if writing.oracle or writer.tie_k or writer.tie_length else ""
        if writing.without:
            state.prompts[writer.template_alone.name] = writer.template_alone
        made = run_task_stage(state, "answer", writer, items, job, key)
    if made is None:
        state.planned_answers = len(items)
        return
    frame, notes = made.frames["said"], tuple(made.facts["notes"])
    if given is not None:
        frame, notes = pl.concat([given.frame, frame], how="diagonal"), (*given.notes, *notes)
    state.said["answers"] = frame
    state.answers = AnsweringResult(Answers.trusted(frame, notes), frame, shown_contexts(frame), notes)


def run_answer_with_confidence(state: EvaluationState, writing: AnswerConfig, confidence: TaskConfig) -> None:
    """The answers that `run_answer` would write, and the model's confidence in each, from the same calls.

    ``confidence`` gives the settings of its kind; prompts, lengths and the model are those of the answers.
    """
    plan, kind = state.plan is not None, AnswerConfidence.kind
    with state.models.job(writing.task.model, plan=plan) as job:
        settings = task_settings(writing.task, state.space)
        writer = answering.build_writer(job, state.collection, state.folder, state.k, settings, plan=plan)
        items = answering.answer_items(writer, answerable_contexts(state, writing), state.collection)
        annotator = AnswerConfidence.of(writer, items, confidence.settings)
        key = stage_key(state, job, writing.task, [annotator.source]) | {"items": items}
        key |= {"confidence": dict(confidence.settings)}
        key["oracle"] = state.material.labels_key if writer.tie_k or writer.tie_length else ""
        made = run_task_stage(state, f"answer.{kind}", annotator, annotator.items, job, key)
    if made is None:
        state.planned_answers = len(items)
        return
    state.add_outcomes(kind, made.frames["said"])
    state.answers = written_answers(annotator, made.frames["said"])
    state.said["answers"] = state.answers.frame


def _left_to_answer(state: EvaluationState, given: AnsweringResult, writing: AnswerConfig) -> bool:
    """Whether a system lacks answers in the data, and the workspace wants the model to write them."""
    answered = set(given.table.distinct("system"))
    extra = [NO_CONTEXT_SYSTEM] * writing.without + [ORACLE_SYSTEM] * writing.oracle
    return writing.file is None and not answered.issuperset([*state.contexts.systems, *extra])
