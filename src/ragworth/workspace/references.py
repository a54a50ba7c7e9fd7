"""Questions with accepted answers in a file of their own: they are matched to those of logs, by id or by text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from ragworth.core.errors import format_count
from ragworth.data.collection import Collection, plain_text
from ragworth.formats.contract import LoadedCollection
from ragworth.workspace.runs import queries_of


def are_references(collection: Collection) -> bool:
    """Whether a collection has questions and accepted answers, and nothing else."""
    others = (collection.passages, collection.subquestions, collection.turns)
    bare = collection.relevance is None and collection.ratings is None
    return bool(collection.answers.height) and bare and not any(frame.height for frame in others)


def match_references(collection: Collection, logs: Sequence[LoadedCollection]) -> Collection:
    """The questions with accepted answers that logs have, under the ids that the logs have for them."""
    if not logs or not are_references(collection):
        return collection
    own = dict(collection.queries.iter_rows())
    known = dict.fromkeys([*own, *collection.answers["query"]])
    names = _log_names(dict.fromkeys(known) | own, logs)
    left = len(known) - names["query"].n_unique()
    note = f"{format_count(left, 'question')} with accepted answers left out: no log has them"
    return replace(
        collection,
        queries=_renamed(collection.queries, names).unique("query", keep="first", maintain_order=True),
        answers=_renamed(collection.answers, names).unique(maintain_order=True),
        notes=(*collection.notes, *([note] if left else [])),
    )


def _log_names(own: Mapping[str, str | None], logs: Sequence[LoadedCollection]) -> pl.DataFrame:
    """The ids that logs have for questions: the same, or those of the same texts if the same ids have other texts."""
    asked = {query for log in logs for query in queries_of(log)}
    texts = {query: plain_text(text) for log in logs for query, text in log.collection.queries.iter_rows()}
    queries: dict[str, list[str]] = {}
    for query, text in texts.items():
        queries.setdefault(text, []).append(query)
    by_text = [(query, name) for query, text in own.items() if text for name in queries.get(plain_text(text), [])]
    by_id = [(query, query) for query in own if query in asked]
    differ = any(query in texts and text and plain_text(text) != texts[query] for query, text in own.items())
    pairs = by_text if by_text and (differ or not by_id) else by_id
    return pl.DataFrame(pairs, schema={"query": pl.String, "name": pl.String}, orient="row")


def _renamed(rows: pl.DataFrame, names: pl.DataFrame) -> pl.DataFrame:
    """The rows of queries that logs have, under each of their ids."""
    joined = rows.join(names, on="query", how="inner", maintain_order="left")
    return joined.with_columns(query="name").select(rows.columns)
