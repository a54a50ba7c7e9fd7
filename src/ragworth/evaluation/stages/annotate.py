"""The stage that judges passages: by a model, or by their texts."""

from __future__ import annotations

from typing import Any

import polars as pl

from ragworth.calls.job import Job
from ragworth.core.errors import InputError
from ragworth.data import Judgments, Ratings
from ragworth.evaluation.state import EvaluationState, StagePlan, run_task_stage, skip_stage, stage_key, task_settings
from ragworth.judging import ANNOTATORS, runner
from ragworth.judging.annotators.containment import ContainmentAnnotator
from ragworth.judging.contract import run_task
from ragworth.judging.judge import NO_MODEL, AnnotationItem, Annotator
from ragworth.workspace.config import TaskConfig

PREFERRED_NOTE = (
    "relevance is judged by whether a passage contains an accepted answer, because the model that reads the passages "
    'can\'t show by its own opinion what misleads it (relevance = {how = "auto"} under [judgments] asks it anyway)'
)


def stage_annotator(state: EvaluationState, kind: str, task: TaskConfig, job: Job) -> Annotator:
    """A kind of judgment as the workspace, or a study, has it."""
    settings = task_settings(task, state.space)
    return runner.build_judge(ANNOTATORS, kind, job.card, state.collection, state.folder, settings)


def items_to_judge(state: EvaluationState, annotator: Annotator) -> list[AnnotationItem]:
    """Items to judge: passages shown that have no label and no value in a file."""
    things = runner.annotation_items(annotator, state.shown, state.collection)
    if annotator.judged_unit != "passage":
        return things
    wanted = set(annotator.value_names)
    known: dict[tuple[str, str], set[str]] = {}
    for table in state.judgments:
        rows = table.frame.filter(pl.col("aspect").is_in(list(wanted)))
        for query, passage, aspect in rows.select("query", "passage", "aspect").iter_rows():
            known.setdefault((query, passage), set()).add(aspect)
    for item in things:
        some = known.get((item.query, item.passage), wanted)
        if some != wanted:
            raise InputError(
                f"of {', '.join(sorted(wanted))}, files say {', '.join(sorted(some))} alone of the passage "
                f"{item.passage!r} for the query {item.query!r}",
                expected="all that the kind gives, or nothing",
            )
    return [item for item in things if (item.query, item.passage) not in known]


def run_annotate(state: EvaluationState, kind: str, task: TaskConfig) -> None:
    """One kind of judgment.

    Relevance that the reader would judge itself is judged by containment of an accepted answer instead, where a query
    has one and no labels: a reader's own opinion can't show what misleads it. The settings may ask for the reader.
    """
    name = f"annotate.{kind}"
    if not ANNOTATORS.get(kind).asks_model:
        _annotate_by_text(state, kind, dict(task.settings))
        return
    with state.models.job(task.model, plan=state.plan is not None) as job:
        annotator = stage_annotator(state, kind, task, job)
        if kind == "relevance" and _is_readers_opinion(state, task, annotator):
            _annotate_by_text(state, "containment", {}, preferred=True)
        items = items_to_judge(state, annotator)
        if state.material.to_judge is not None:
            items = [item for item in items if item.query in state.material.to_judge]
        if not items:
            state.prompts |= annotator.templates
            skip_stage(state, name, "nothing was left to judge: labels or files say it all")
            return
        key = stage_key(state, job, task, annotator.key_sources) | {"items": items}
        made = run_task_stage(state, name, annotator, items, job, key)
    if made is None:
        return
    frame = state.said[kind] = made.frames["said"]
    if annotator.judged_unit == "rating":
        state.ratings = Ratings.trusted(frame)
    elif annotator.judged_unit == "context":
        state.add_outcomes(kind, frame)
    else:
        state.judgments.append(Judgments.trusted(frame))


def _is_readers_opinion(state: EvaluationState, task: TaskConfig, annotator: Annotator) -> bool:
    """Whether relevance would be judged by a model that also reads the passages, without a word of how."""
    if not state.collection.answers.height or {"how", "graded"} & set(task.settings):
        return False
    space, answers = state.space, state.space.answers
    reading = [space.judgments[kind].model for kind in ("abstention",) if kind in space.judgments]
    reading += [answers.task.model] if answers is not None and answers.file is None else []
    readers = [model or space.model for model in reading]
    return (task.model or space.model) in readers or annotator.prompt_names == ("abstention",)


def _annotate_by_text(state: EvaluationState, kind: str, settings: dict[str, Any], *, preferred: bool = False) -> None:
    """Judge without a model, also in a plan: it costs nothing, and less is left to ask.

    ``preferred``: only queries without labels for which that gives a value; a model is asked about the others.
    """
    annotator = runner.build_judge(ANNOTATORS, kind, NO_MODEL, state.collection, state.folder, settings)
    items = items_to_judge(state, annotator)
    if preferred and isinstance(annotator, ContainmentAnnotator):
        labelled = {query for table in state.material.given for query in table.of("relevance")["query"].unique()}
        items = [item for item in items if item.query not in labelled and annotator.decides(item.query)]
    if not items:
        if not preferred:
            skip_stage(state, f"annotate.{kind}", "nothing was left to judge: labels or files say it all")
        return
    if state.plan is not None:
        state.plan.append(StagePlan(f"annotate.{kind}", "no model is asked"))
        frame = run_task(annotator, items, None).frame
    else:
        source = " · ".join(annotator.key_sources)
        key = {"items": items, "texts": state.material.texts_key, "settings": settings, "source": source}
        note = (lambda _: PREFERRED_NOTE) if preferred else None
        made = run_task_stage(state, f"annotate.{kind}", annotator, items, None, key, note)
        assert made is not None
        frame = made.frames["said"]
    state.said[kind] = frame
    state.judgments.append(Judgments.trusted(frame))
