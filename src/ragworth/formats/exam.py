"""Read the EXAM++ workbench's file: judged passages with relevance, ratings of sub-questions, and ranks in runs.

Each line is ``[query, [passage, …]]``. A passage has ``paragraph_id``, ``text``, ``paragraph_data`` with
``judgments`` and ``rankings``, and ``exam_grades`` with ``self_ratings``, of which the first set counts. The file lists
passages, not runs, so ranks of unlisted passages are missing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import polars as pl

from ragworth.core.errors import BadLine, FormatError
from ragworth.data import Contexts, Judgments, Ratings
from ragworth.data.collection import Collection
from ragworth.formats.contract import Contents, Format, Head, LoadedCollection
from ragworth.formats.files import PathOrStr, empty_file_error, skipped_note
from ragworth.formats.values import (
    WrongLineError,
    as_dict,
    as_id,
    as_list,
    as_number,
    as_rank,
    as_rating,
    as_text,
    read_values,
)

EXPECTED = '["query", [{"paragraph_id": …, "text": …, "paragraph_data": …, "exam_grades": …}, …]] on each line'
CONTEXTS = {"system": pl.String, "query": pl.String, "rank": pl.Int64, "passage": pl.String, "score": pl.Float64}

T = TypeVar("T")


class ExamRows(NamedTuple):
    """Rows of a line: passages with texts, relevance labels, ratings of sub-questions, and places in runs."""

    passages: list[tuple[str, str]]
    relevance: list[tuple[str, str, float]]
    ratings: list[tuple[str, str, str, float]]
    contexts: list[tuple[str, str, int, str, float | None]]


def _parse_line(value: Any) -> ExamRows:
    pair = as_list(value, "the line")
    if len(pair) != 2:
        raise WrongLineError(f"a list of {len(pair)} instead of a query and its passages")
    query, rows = as_id(pair[0], "query"), ExamRows([], [], [], [])
    for each in as_list(pair[1], "the second element"):
        passage = as_dict(each, "a passage")
        name = as_id(passage.get("paragraph_id"), "paragraph_id")
        rows.passages.append((name, as_text(passage.get("text") or "", "text")))
        data = as_dict(passage.get("paragraph_data") or {}, "paragraph_data")
        for row in _objects(data, "judgments"):
            rows.relevance.append((query, name, as_number(row.get("relevance"), "relevance")))
        for row in _objects(data, "rankings"):
            score = None if row.get("score") is None else as_number(row["score"], "score")
            rank = as_rank(row.get("rank"), "rank")
            rows.contexts.append((as_id(row.get("method"), "method"), query, rank, name, score))
        for grades in _objects(passage, "exam_grades")[:1]:
            for row in _objects(grades, "self_ratings"):
                rating = as_rating(row.get("self_rating"), "self_rating")
                rows.ratings.append((query, name, as_id(row.get("question_id"), "question_id"), rating))
    return rows


def _objects(item: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The objects in a list; nothing if it is missing."""
    return [as_dict(each, f"one of {name}") for each in as_list(item.get(name) or [], name)]


def load(path: PathOrStr, *, skip_bad_lines: bool = False) -> LoadedCollection:
    """Read passage texts, relevance, ratings and the runs' contexts."""
    bad: list[BadLine] = []
    lines = list(read_values(path, bad, skip=skip_bad_lines, expected=EXPECTED, parse=_parse_line))
    passages, relevance, ratings, contexts = ([row for _, line in lines for row in line[at]] for at in range(4))
    if not passages:
        raise empty_file_error(path, EXPECTED)
    source, notes = str(path), skipped_note(path, bad)
    texts = pl.DataFrame([*dict.fromkeys(passages)], schema=["passage", "text"], orient="row")
    labels = pl.DataFrame(relevance, schema=["query", "passage", "value"], orient="row")
    rated = pl.DataFrame(ratings, schema=["query", "passage", "subquestion", "value"], orient="row")
    collection = Collection.of(
        passages=texts,
        relevance=Judgments(labels, source=source, notes=notes) if relevance else None,
        ratings=Ratings(rated, source=source, notes=notes) if ratings else None,
        source=source,
        notes=notes,
    )
    runs = pl.DataFrame(contexts, schema=CONTEXTS, orient="row").sort("system", maintain_order=True)
    return LoadedCollection(collection, Contexts(runs, source=source, notes=notes) if contexts else None)


def _reader(what: str, part: Callable[[LoadedCollection], T | None]) -> Callable[..., T]:
    """Make a reader of a part of the file. Names and order of runs are in the file, so other options have no effect."""

    def read(path: PathOrStr, *, skip_bad_lines: bool = False, **options: object) -> T:
        table = part(load(path, skip_bad_lines=skip_bad_lines))
        if table is None:
            raise FormatError(f"the file has no {what}", file=str(path), expected=EXPECTED)
        return table

    return read


def _inspect(head: Head) -> list[Contents]:
    first = head.document
    known = isinstance(first, list) and len(first) == 2 and isinstance(first[0], str) and isinstance(first[1], list)
    return [Contents("collection")] if known else []


FORMAT = Format(
    name="exam",
    title="EXAM++ file: passages with relevance, ratings and ranks",
    contexts=_reader("runs", lambda loaded: loaded.contexts),
    judgments=_reader("relevance", lambda loaded: loaded.collection.relevance),
    ratings=_reader("ratings", lambda loaded: loaded.collection.ratings),
    load=load,
    inspect=_inspect,
)
