"""The score that a retriever gives any passage for a query.

A score is that of the list that the system retrieved. A passage outside the list is scored by searching the whole
collection, if the system is a single search (``bm25``, ``dense``, ``sparse``); otherwise its score is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import polars as pl

from ragworth.data import Contexts
from ragworth.retrieval.execution import retrieve
from ragworth.retrieval.pipeline import Pipeline, Step, StepContext, Top
from ragworth.retrieval.steps.bm25 import Bm25
from ragworth.retrieval.steps.dense import Dense
from ragworth.retrieval.steps.sparse import Sparse

Pair = tuple[str, str]
"""A query and a passage."""

MAX_ROWS = 1 << 21
"""Rows in memory while the whole collection is searched."""


def with_scores(
    contexts: Contexts,
    shown: Contexts,
    system: str,
    pipeline: Pipeline | Contexts | None = None,
    context: StepContext | None = None,
) -> Contexts:
    """The same contexts, each passage with the score that a system gives it for the query; null if it gives none.

    Parameters
    ----------
    shown: what the systems retrieved, with scores.
    system: the name of one of them.
    pipeline, context: what the system is and runs on, for passages that it did not retrieve.
    """
    pairs, known = contexts.frame.select("query", "passage").rows(), _scores(shown, system)
    if context is not None and (step := _single_search(pipeline)) is not None:
        known |= _search_all(step, [pair for pair in pairs if pair not in known], context)
    scores = [known.get(pair) for pair in pairs]
    return Contexts.trusted(contexts.frame.with_columns(score=pl.Series(scores, dtype=pl.Float64)), contexts.notes)


def _scores(contexts: Contexts, system: str) -> dict[Pair, float | None]:
    rows = contexts.frame.filter(pl.col("system") == system).select("query", "passage", "score")
    return {(query, passage): score for query, passage, score in rows.iter_rows()}


def _single_search(system: Pipeline | Contexts | None) -> Step | None:
    """The search that a system consists of, apart from cuts."""
    steps = [step for step in system.steps if not isinstance(step, Top)] if isinstance(system, Pipeline) else []
    return steps[0] if len(steps) == 1 and isinstance(steps[0], Bm25 | Dense | Sparse) else None


def _search_all(step: Step, pairs: Iterable[Pair], context: StepContext) -> dict[Pair, float | None]:
    """Scores of passages outside the list; only of those whose text the collection has."""
    known = set(context.collection.passages["passage"])
    # A passage that shares no word with the query has the empty sum, where words are matched.
    unmatched = 0.0 if isinstance(step, Sparse | Bm25) else None
    found = {pair: unmatched for pair in pairs if pair[1] in known}
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
