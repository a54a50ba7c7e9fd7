"""The stages of answers: what the data has, what the model writes, and their grades."""

from __future__ import annotations

from contextlib import ExitStack

import polars as pl

from ragworth.core.errors import format_count
from ragworth.data import Answers, Contexts
from ragworth.evaluation.stage_cache import frame_digest
from ragworth.evaluation.state import EvaluationState, StagePlan, contexts_key, run_task_stage, stage_key, task_settings
from ragworth.judging import ANNOTATORS, GRADERS, runner
from ragworth.judging.answers import (
    NO_CONTEXT_SYSTEM,
    ORACLE_SYSTEM,
    AnsweringResult,
    answer_items,
    build_writer,
    shown_contexts,
)
from ragworth.judging.judge import JudgingResult
from ragworth.results import SINGLE_ANSWERS
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
        writer = build_writer(job, state.collection, state.folder, state.k, settings, plan=plan)
        items = answer_items(
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
    from ragworth.judging.annotators.confidence import AnswerConfidence, written_answers

    plan, kind = state.plan is not None, AnswerConfidence.kind
    with state.models.job(writing.task.model, plan=plan) as job:
        settings = task_settings(writing.task, state.space)
        writer = build_writer(job, state.collection, state.folder, state.k, settings, plan=plan)
        items = answer_items(writer, answerable_contexts(state, writing), state.collection)
        annotator = AnswerConfidence.of(writer, items, confidence.settings)
        key = stage_key(state, job, writing.task, annotator.key_sources) | {"items": items}
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
        book = runner.to_answer_book(state.answers, state.shown)
        card = job.card if job is not None else None
        grader = runner.build_judge(GRADERS, kind, card, state.collection, state.folder, settings, book)
        key = stage_key(state, job, task, grader.key_sources) | {
            "answers": frame_digest(state.said["answers"]),
            "contexts": contexts_key(state.shown),
            "labels": state.material.labels_key,
        }
        items = grader.items(book.answers)
        made = run_task_stage(state, name, grader, items, job, key, more=_single_answers)
    if made is not None:
        single = made.frames.get(SINGLE_ANSWERS)
        state.add_outcomes(f"graded-{kind}" if kind in ANNOTATORS else kind, made.frames["said"], single)


def _single_answers(result: JudgingResult) -> dict[str, pl.DataFrame]:
    """What was said of every single answer, if some queries have several."""
    return {SINGLE_ANSWERS: result.answers} if result.answers.height > result.frame.height else {}
