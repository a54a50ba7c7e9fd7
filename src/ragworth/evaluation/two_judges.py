"""Judging on a budget: a better judge of a sample of the queries, and what follows from it for all of them."""

from __future__ import annotations

import polars as pl

from ragworth import two_judges
from ragworth.annotators import ANNOTATORS, annotation
from ragworth.annotators.contract import AnnotationItem, Annotator
from ragworth.core.errors import format_count
from ragworth.data import Judgments
from ragworth.data.conversations import conversation_ids, independence_notes
from ragworth.evaluation.model_pool import StageProgress
from ragworth.evaluation.stage_cache import StageResult, frame_digest
from ragworth.evaluation.stages.annotate import stage_annotator
from ragworth.evaluation.stages.task_stage import contexts_key, run_task_stage, skip_stage, stage_key
from ragworth.evaluation.state import EvaluationState, expensive_task
from ragworth.results import ESTIMATE_TABLES
from ragworth.scoring import metric_file_digests, passage_tokens
from ragworth.tasks.query_sample import sample_by_hash
from ragworth.workspace.config import TaskConfig

ESTIMATE_STAGE = "score.estimates"


def expensive_stage(kind: str) -> str:
    """The stage in which the better judge is asked."""
    return f"annotate.{kind}.expensive"


def _sampled_items(state: EvaluationState, annotator: Annotator, sample: int | None) -> list[AnnotationItem]:
    """What the better judge is asked: for a sample of the queries, all that is shown and has no label."""
    assert sample is not None
    labels = state.collection.relevance if "relevance" in annotator.value_names else None
    known = set() if labels is None else set(labels.of("relevance").select("query", "passage").iter_rows())
    items = annotation.annotation_items(annotator, state.shown, state.collection)
    items = [each for each in items if (each.query, each.passage) not in known]
    some = sample_by_hash((each.query for each in items), sample, state.space.seed)
    return [each for each in items if each.query in some]


def run_expensive_judge(state: EvaluationState, kind: str, task: TaskConfig) -> None:
    """What the better judge says of the sample, where the workspace has one."""
    name = expensive_stage(kind)
    if task.expensive is None:
        return
    if task.expensive.file is not None:
        table = state.material.expensive[kind]
        mine = table.frame.filter(pl.col("aspect").is_in(list(ANNOTATORS.get(kind).aspects)))
        if state.plan is None:
            state.record_stage(name, "given", notes=[*table.notes, _sample_summary(mine, state)])
        _store_judgments(state, kind, mine)
        return
    own = expensive_task(task)
    with state.models.job(own.model, plan=state.plan is not None) as job:
        annotator = stage_annotator(state, kind, own, job)
        items = _sampled_items(state, annotator, task.expensive.sample)
        if not items:
            state.prompts |= annotator.templates
            skip_stage(state, name, "nothing was left to judge: labels say it all")
            return
        key = stage_key(state, job, own, [annotator.source]) | {"items": items}
        drawn = lambda frame: f"{_sample_summary(frame, state)}, drawn with seed {state.space.seed}"  # noqa: E731
        made = run_task_stage(state, name, annotator, items, job, key, drawn)
    if made is not None:
        _store_judgments(state, kind, made.frames["said"])


def _sample_summary(frame: pl.DataFrame, state: EvaluationState) -> str:
    shown = state.shown.frame["query"].n_unique()
    judged = format_count(frame.select("query", "passage").n_unique(), "passage")
    return f"{judged} of {frame['query'].n_unique():,} of {format_count(shown, 'query', 'queries')}"


def _store_judgments(state: EvaluationState, kind: str, frame: pl.DataFrame) -> None:
    state.said[f"{kind}-expensive"] = frame
    state.expensive[kind] = Judgments.trusted(frame)


def run_estimates(state: EvaluationState) -> None:
    """What metrics would be if the better judge had judged everything."""
    if not state.expensive:
        return
    expensive = Judgments.concat(list(state.expensive.values()))
    twice = pl.col("aspect").is_in(expensive.frame["aspect"].unique().to_list())
    labels = state.collection.relevance
    # Labels are shared by both judges, whatever else says the same of other passages.
    tables = [table.frame for table in state.judgments if table is not labels]
    whole = pl.concat([Judgments.concat([]).frame, *tables])
    cheap = Judgments.trusted(whole.filter(twice))
    shared = [*([labels] if labels is not None else []), Judgments.trusted(whole.filter(~twice))]
    others = Judgments.concat(shared)
    assert state.scores is not None
    names = state.scores.frame["metric"].unique(maintain_order=True).to_list()
    metrics = two_judges.metrics_reading(
        names, set(cheap.frame["aspect"]) & set(expensive.frame["aspect"]), state.space.folder
    )
    if not metrics:
        state.record_stage(ESTIMATE_STAGE, "skipped", notes=["no metric reads what was judged twice"])
        return
    key = {
        "contexts": contexts_key(state.contexts),
        "judgments": [frame_digest(table) for table in (cheap, expensive, others)],
        "ratings": frame_digest(state.ratings),
        "passages": state.material.texts_key[1],
        "metrics": metrics,
        "files": metric_file_digests(metrics, state.space.folder),
        "baseline": state.space.baseline,
        "seed": state.space.seed,
    }

    def make(watching: StageProgress | None) -> StageResult:
        texts = state.collection
        found = two_judges.estimate(
            state.contexts,
            cheap,
            expensive,
            metrics,
            others=others,
            ratings=state.ratings,
            tokens=passage_tokens(texts),
            baseline=state.space.baseline,
            seed=state.space.seed,
            folder=state.space.folder,
        )
        told = {*state.contexts.notes, *(state.scores.notes if state.scores is not None else ())}
        notes = [note for note in found.notes if note not in told]
        notes += independence_notes(conversation_ids(texts))
        return StageResult(dict(zip(ESTIMATE_TABLES, found[:2], strict=True)), {"notes": notes})

    state.estimates = dict(state.stage(ESTIMATE_STAGE, key, make).frames)
