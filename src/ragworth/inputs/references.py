"""Questions with accepted answers in a file of their own: they are matched to those of logs, by id or by text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from ragworth.collection import Collection, plain_text
from ragworth.errors import format_count
from ragworth.formats.contract import LoadedCollection
from ragworth.inputs.runs import queries_of


def are_references(collection: Collection) -> bool:
    """Whether a collection has questions and accepted answers, and nothing else."""
    others = (collection.passages, collection.subquestions, collection.turns)
    bare = collection.relevance is None and collection.ratings is None
    return bool(collection.answers.height) and bare and not any(frame.height for frame in others)


def match_references(collection: Collection, logs: Sequence[LoadedCollection]) -> Collection:
    """The questions with accepted answers that logs have, under the ids that the logs have for them."""
    if not logs or not are_references(collection):
        return collection
    asked = {query for log in logs for query in queries_of(log)}
    texts = {plain_text(text): query for log in logs for query, text in log.collection.queries.iter_rows()}
    own = dict(collection.queries.iter_rows())
    known = dict.fromkeys([*own, *collection.answers["query"]])
    names = {query: query for query in known if query in asked}
    if not names:
        names = {query: texts[name] for query in own if (name := plain_text(own[query])) in texts}
    left = len(known) - len(names)
    note = f"{format_count(left, 'question')} with accepted answers left out: no log has them"
    return replace(
        collection,
        queries=_renamed(collection.queries, names).unique("query", keep="first", maintain_order=True),
        answers=_renamed(collection.answers, names).unique(maintain_order=True),
        notes=(*collection.notes, *([note] if left else [])),
    )


def _renamed(rows: pl.DataFrame, names: dict[str, str]) -> pl.DataFrame:
    """The rows of queries with a name, under that."""
    return rows.filter(pl.col("query").is_in(list(names))).with_columns(pl.col("query").replace(names))
