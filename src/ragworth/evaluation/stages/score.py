"""The stage that scores: every metric for every system and query."""

from __future__ import annotations

from typing import Any

import polars as pl

from ragworth.data import OK, Judgments, Scores
from ragworth.evaluation.default_metrics import default_metrics
from ragworth.evaluation.model_pool import StageProgress
from ragworth.evaluation.stage_cache import StageResult, frame_digest
from ragworth.evaluation.stages.task_stage import contexts_key, stage_table
from ragworth.evaluation.state import EvaluationState
from ragworth.metrics.scoring_job import NOT_IN_RUN
from ragworth.retrieval.copies import unlabelled_copy_notes
from ragworth.scoring import metric_file_digests, passage_tokens, score


def run_score(state: EvaluationState) -> None:
    """Every metric for every system and query. Answers and grades can be compared without any."""
    judgments = state.all_judgments = Judgments.concat(state.judgments) if state.judgments else None
    shows = len(state.contexts) > 0
    graded = state.material.has_answers
    metrics = state.space.metrics or (
        default_metrics(known_aspects(state), state.space.k, required=not graded) if shows or not graded else ()
    )
    if not metrics:
        why = "what passages are worth isn't known" if shows else "no system shows any passages"
        state.scores = Scores.trusted(pl.DataFrame(schema=Scores.schema))
        state.record_stage(
            "score", "skipped", notes=[f"no metric is computed: {why}; only grades of answers are compared"]
        )
        return
    key: dict[str, Any] = {
        "contexts": contexts_key(state.contexts),
        "judgments": frame_digest(judgments),
        "ratings": frame_digest(state.ratings),
        "passages": state.material.texts_key[1],
        "metrics": metrics,
        "files": metric_file_digests(list(metrics), state.space.folder),
    }
    if state.material.logged:
        key["complete"] = False

    def make(watching: StageProgress | None) -> StageResult:
        tokens = passage_tokens(state.collection)
        scores = score(
            state.contexts,
            judgments,
            list(metrics),
            ratings=state.ratings,
            tokens=tokens,
            folder=state.space.folder,
            complete=not state.material.logged,
        )
        # Earlier stages told what came with the contexts and the judgments, and the queries that a log lacks.
        earlier_notes = {*state.contexts.notes, *(note for stage in state.stages for note in stage.get("notes", ()))}
        notes = [note for note in scores.notes if note not in earlier_notes and not note.endswith(NOT_IN_RUN)]
        notes += unlabelled_copy_notes(state.contexts, judgments, state.collection.passages)
        return StageResult({}, {"notes": notes}, tables={"scores": scores})

    made = state.stage("score", key, make)
    state.scores = stage_table(made, "scores", Scores)


def known_aspects(state: EvaluationState) -> set[str]:
    """What there is for metrics to read: aspects of judgments that have a value, ratings, lengths of passages."""
    parts = [part for table in state.judgments for part in table.parts]
    good = [part.select(pl.col("aspect").filter(pl.col("status") == OK).unique()).to_series() for part in parts]
    found = {aspect for aspects in good for aspect in aspects}
    found |= {"ratings"} if state.ratings is not None and state.ratings.frame.height else set()
    return found | ({"tokens"} if state.collection.passages.height else set())
