"""The stage that scores: every metric for every system and query."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

import polars as pl

from ragworth.core.errors import InputError, format_count, format_list, quote_short
from ragworth.data import OK, Contexts, Judgments, Scores
from ragworth.evaluation.model_pool import StageProgress
from ragworth.evaluation.stage_cache import StageResult, frame_digest
from ragworth.evaluation.state import EvaluationState, contexts_key, stage_table
from ragworth.metrics import METRICS
from ragworth.metrics.scoring_job import NOT_IN_RUN
from ragworth.scoring import metric_file_digests, passage_tokens, score

QRELS_HINT = "relevance = true under [judgments], or qrels under [collection]"


def default_metrics(have: Set[str], k: int, *, required: bool = True) -> tuple[str, ...]:
    """The metrics at the depth that the model reads.

    ``have``: aspects of judgments that there are; "ratings"; "tokens", where lengths of passages are known.
    ``required``: it is an error if there are none.
    """
    declared = sorted((METRICS.get(name) for name in METRICS.names()), key=lambda each: each.default)
    made = tuple(f"{each.name}@{k}" for each in declared if each.default and set(each.needs) <= have)
    if not made and required:
        raise _no_metrics_error(have)
    return made


def _no_metrics_error(have: Set[str]) -> InputError:
    """The error if no metric can be computed, with what is missing; abstention alone is not enough."""
    known = sorted(have - {"tokens"})
    if "abstention" in known:
        return InputError(
            "no metric can be computed: abstention is judged, and relevance is not known",
            remedy=f"UDCG needs both: add {QRELS_HINT}",
        )
    found = (
        f"there is nothing but {format_list(known)}" if known else "there are no relevance labels, judgments or ratings"
    )
    return InputError(
        f"no metric can be computed: {found}",
        remedy=f"add {QRELS_HINT}; or ratings, or other kinds of judgment",
    )


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
    good = [table.frame.filter(pl.col("status") == OK)["aspect"].unique() for table in state.judgments]
    found = {aspect for aspects in good for aspect in aspects}
    found |= {"ratings"} if state.ratings is not None and state.ratings.frame.height else set()
    return found | ({"tokens"} if state.collection.passages.height else set())


def unlabelled_copy_notes(contexts: Contexts, judgments: Judgments | None, passages: pl.DataFrame) -> list[str]:
    """A note on passages that are shown, have the text of a relevant one, and no label for the query."""
    if judgments is None or not passages.height:
        return []
    labels = judgments.of("relevance").filter(pl.col("status") == OK).select("query", "passage", "value")
    words = pl.col("text").str.strip_chars().str.to_lowercase()
    texts = passages.select("passage", words).filter(pl.col("text") != "")
    texts = texts.with_columns(pl.col("text").hash())
    relevant = labels.filter(pl.col("value") >= 1).join(texts, on="passage").select("query", "text").unique()
    twins = texts.join(relevant, on="text").select("query", "passage")
    copies = twins.join(labels, on=["query", "passage"], how="anti")
    if not copies.height:
        return []
    pairs = contexts.frame.select("query", "passage")
    shown = pairs.join(copies, on=["query", "passage"], how="semi").unique().sort("query", "passage")
    if not shown.height:
        return []
    queries = shown["query"].unique(maintain_order=True)
    few = format_list([quote_short(each, 24) for each in queries], 3)
    number = format_count(shown.height, "unlabelled passage has", "unlabelled passages have")
    return [
        f"{number} the text of a relevant passage ({format_count(len(queries), 'query', 'queries')}: {few}), "
        "but metrics count what isn't labelled as not relevant; label copies like their originals, or remove them"
    ]
