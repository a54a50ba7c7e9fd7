"""The score that a retriever gives any passage for a query.

A score is that of the list that the system retrieved. A passage outside the list is scored by searching the whole
collection, if the system is a single search (``bm25``, ``dense``, ``sparse``); otherwise its score is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import polars as pl

from ragworth.calls.programs import NoValue
from ragworth.errors import InputError, format_list
from ragworth.retrieval.contract import Step, StepContext
from ragworth.retrieval.execution import retrieve
from ragworth.retrieval.pipeline import Pipeline
from ragworth.retrieval.steps.bm25 import Bm25
from ragworth.retrieval.steps.dense import Dense
from ragworth.retrieval.steps.reorder import Top
from ragworth.retrieval.steps.sparse import Sparse
from ragworth.tables import Contexts

Pair = tuple[str, str]
"""A query and a passage."""

NO_SCORE = "no-retriever-score"
"""Status of a passage that the retriever gave no score."""

MAX_ROWS = 1 << 21
"""Rows in memory while the whole collection is searched."""


def retriever_scores(
    contexts: Contexts,
    system: str,
    pairs: Iterable[Pair],
    pipeline: Pipeline | Contexts | None = None,
    context: StepContext | None = None,
) -> dict[Pair, float | NoValue]:
    """The score that a system gives each passage for its query, or why there is none.

    Parameters
    ----------
    contexts: what the systems retrieved, with scores.
    system: the name of one of them.
    pipeline, setting: what the system is and runs on, for passages that it did not retrieve.
    """
    if system not in contexts.systems:
        raise InputError(f"there is no system {system!r}", expected=format_list(contexts.systems, 12))
    wanted = list(dict.fromkeys(pairs))
    listed = _scores(contexts, system)
    found: dict[Pair, float | NoValue] = {}
    for pair in wanted:
        if pair not in listed:
            found[pair] = NoValue(NO_SCORE, f"{system} did not retrieve the passage")
        elif (value := listed[pair]) is None:
            found[pair] = NoValue(NO_SCORE, f"{system} ranks passages without scores")
        else:
            found[pair] = value
    if context is not None and (step := _single_search(pipeline)) is not None:
        found |= _search_all(step, [pair for pair in wanted if pair not in listed], context)
    return {pair: found[pair] for pair in wanted}


def with_scores(
    contexts: Contexts,
    shown: Contexts,
    system: str,
    pipeline: Pipeline | Contexts | None = None,
    context: StepContext | None = None,
) -> Contexts:
    """The same contexts, each passage with the score that a system gives it for the query; null if it gives none.

    ``shown``: what the systems retrieved.
    """
    pairs = contexts.frame.select("query", "passage").rows()
    known = retriever_scores(shown, system, pairs, pipeline, context)
    scores = [None if isinstance(known[pair], NoValue) else known[pair] for pair in pairs]
    return Contexts.trusted(contexts.frame.with_columns(score=pl.Series(scores, dtype=pl.Float64)), contexts.notes)


def _scores(contexts: Contexts, system: str) -> dict[Pair, float | None]:
    rows = contexts.frame.filter(pl.col("system") == system).select("query", "passage", "score")
    return {(query, passage): score for query, passage, score in rows.iter_rows()}


def _single_search(system: Pipeline | Contexts | None) -> Step | None:
    """The search that a system consists of, apart from cuts."""
    steps = [step for step in system.steps if not isinstance(step, Top)] if isinstance(system, Pipeline) else []
    return steps[0] if len(steps) == 1 and isinstance(steps[0], Bm25 | Dense | Sparse) else None


def _search_all(step: Step, pairs: Iterable[Pair], context: StepContext) -> Mapping[Pair, float | NoValue]:
    """Scores of passages outside the list."""
    known, zero = set(context.collection.passages["passage"]), _unmatched_score(step)
    unmatched = (
        NoValue(NO_SCORE, f"{step.kind} does not find the passage in the whole collection") if zero is None else zero
    )
    unknown = NoValue(NO_SCORE, "the collection has no text of the passage")
    found = {pair: unmatched if pair[1] in known else unknown for pair in pairs}
    for contexts in _batches(step, {query for query, _ in found}, context):
        found |= {
            pair: score for pair, score in _scores(contexts, "all").items() if pair in found and score is not None
        }
    return found


def _batches(step: Step, queries: set[str], context: StepContext) -> Iterator[Contexts]:
    """All passages for some queries at a time."""
    depth = context.collection.passages.height
    asked = context.queries.filter(pl.col("query").is_in(list(queries)))
    for some in asked.iter_slices(max(1, MAX_ROWS // max(1, depth))):
        yield retrieve({"all": step}, replace(context, queries=some, depth=depth))


def _unmatched_score(step: Step) -> float | None:
    """The score of passages that share no word with the query: an empty sum where words are matched."""
    return 0.0 if isinstance(step, Sparse | Bm25) else None
