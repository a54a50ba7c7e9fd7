"""The contents of files side by side: judgments in two files, accepted answers for logs, and systems by their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import polars as pl

from ragworth.core.errors import TableError, format_count, quote_short
from ragworth.data import Answers, Judgments, Outcomes
from ragworth.data.coercion import duplicate_rows
from ragworth.data.collection import Collection, plain_text
from ragworth.formats.contract import LoadedCollection


class JudgmentSource(NamedTuple):
    """Judgments, and the key and file that they come from."""

    name: str
    table: Judgments


def merge_judgments(sources: Sequence[JudgmentSource]) -> Judgments:
    """All judgments in one table; what stands in two files is refused, with the names of both."""
    check_no_conflicts(sources)
    frames = [pl.DataFrame(schema=Judgments.schema), *(each.table.frame for each in sources)]
    return Judgments.trusted(pl.concat(frames), tuple(note for each in sources for note in each.table.notes))


def check_no_conflicts(sources: Sequence[JudgmentSource]) -> None:
    """Refuse judgments that stand in two files. Each table alone was checked when it was made."""
    aspects = [set(each.table.distinct("aspect")) for each in sources]
    if sum(map(len, aspects)) == len(set().union(*aspects)):
        return  # no two tables have an aspect in common, or there are not two
    keys = pl.concat([each.table.frame.select(Judgments.key) for each in sources])
    twice = duplicate_rows(keys, Judgments.key)
    if len(twice):
        again = _keys_with_source(sources).join(keys[twice], on=Judgments.key, how="semi", maintain_order="left")
        by_key = again.group_by(Judgments.key, maintain_order=True).agg("file")
        one = by_key.row(0, named=True)
        here, there = one["file"][:2]
        raise TableError(
            f"{format_count(by_key.height, 'judgment')} twice, such as {one['aspect']} of the passage "
            f"{quote_short(one['passage'], 24)} for the query {quote_short(one['query'], 24)}: in {here} and in "
            f"{there}",
            expected="each judgment in one file",
            remedy=f"leave one of the two out, or the rows of {one['aspect']} in {there}; of a folder of results, "
            "judgments.parquet has the labels in it, and said/KIND.parquet has what the model said alone",
        )


def _keys_with_source(sources: Sequence[JudgmentSource]) -> pl.DataFrame:
    """The keys of all judgments, each with its file."""
    return pl.concat([table.frame.select(*Judgments.key, pl.lit(name).alias("file")) for name, table in sources])


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


def systems_of(loaded: LoadedCollection) -> list[str]:
    """The systems of a file: those with contexts, then those with answers or grades only."""
    names = list(loaded.contexts.systems) if loaded.contexts is not None else []
    for table in (loaded.answers, loaded.outcomes):
        names += table.distinct("system") if table is not None else []
    return list(dict.fromkeys(names))


def queries_of(loaded: LoadedCollection) -> list[str]:
    """The queries that systems of a file showed something for, or nothing, or answered."""
    tables = (loaded.contexts, loaded.answers, loaded.outcomes)
    queries = [query for table in tables if table is not None for query in table.distinct("query")]
    empty = loaded.contexts.empty if loaded.contexts is not None else ()
    return list(dict.fromkeys([*queries, *sorted(query for _, query in empty)]))


def rename_system(loaded: LoadedCollection, name: str) -> LoadedCollection:
    """The same with its only system called ``name``."""
    if len(systems_of(loaded)) > 1:
        raise TableError(
            f"{format_count(len(systems_of(loaded)), 'system')} cannot all be called {name!r}",
            expected="a file of one system",
            remedy="leave out the name; the file already names its systems",
        )
    contexts = loaded.contexts
    if contexts is not None and contexts.systems != [name]:
        contexts = contexts.renamed(name)
    named = pl.lit(name).alias("system")
    answers, grades = loaded.answers, loaded.outcomes
    return loaded._replace(
        contexts=contexts,
        answers=None if answers is None else Answers.trusted(answers.frame.with_columns(named), answers.notes),
        outcomes=None if grades is None else Outcomes.trusted(grades.frame.with_columns(named), grades.notes),
    )
