"""Read and write contexts with texts as JSON lines.

A line is one query::

    {"query_id": "q1", "query": "…", "answers": ["…"],
     "retrieved_context": [{"doc_id": "d7", "text": "…", "score": 3.2}]}

The order of ``retrieved_context`` is the order shown. ``query``, ``answers``, ``text`` and ``score`` are optional. A
passage without ``doc_id`` gets an id derived from its text; a passage may also be a plain text. ``system`` names the
system of a line, ``answer`` or ``response`` is what it answered; ``correct``, ``grade`` and ``human_label`` are grades.
A file of this format may also be a run with one passage on each line, or texts by id.
"""

from __future__ import annotations

import json
import math
from typing import Any

import polars as pl

from ragworth.core.errors import FormatError, quote_short
from ragworth.data import Contexts
from ragworth.data.collection import Collection
from ragworth.data.ranking import Ties
from ragworth.formats import tables
from ragworth.formats.contract import Contents, Format, Head, LoadedCollection
from ragworth.formats.files import PathOrStr, create_file
from ragworth.formats.kinds import row_kinds
from ragworth.formats.logs.engine import LogSpec
from ragworth.formats.logs.fields import FieldFinder, Row
from ragworth.formats.texts import read_texts
from ragworth.formats.values import WrongLineError, read_objects


def _check_row(row: Row, finder: FieldFinder) -> Row:
    """Refuse a row that doesn't say what was shown, unless it has an answer."""
    shown = row.get("retrieved_context", ...)
    if isinstance(shown, list) or (shown is ... and finder.get(row, "answer") is not None):
        return row
    raise WrongLineError("the list 'retrieved_context' is missing")


LOG = LogSpec(
    name="jsonl",
    title="JSON lines: contexts with texts, or texts by id",
    signs=(),
    fields={"question": "query | question", "passages": "retrieved_context"},
    prepare=_check_row,
    exact=True,
    general=1,
    expected='one JSON object a line: {"query_id": …, "query": …, "answers": […], '
    '"retrieved_context": [{"doc_id": …, "text": …, "score": …}]}',
)


def read_contexts(
    path: PathOrStr, *, system: str | None = None, ties: Ties = "float64", skip_bad_lines: bool = False
) -> Contexts:
    """Read the contexts only. In lists, the file determines the order, so ``ties`` has no effect."""
    read = tables.read_contexts if tables.kind_of_row(_first_row(path)) == "run" else LOG.read_contexts
    return read(path, system=system, ties=ties, skip_bad_lines=skip_bad_lines)


def _first_row(path: PathOrStr) -> dict[str, Any]:
    return next((row for _, row in read_objects(path, [], skip=True, expected=LOG.expected)), {})


def load(path: PathOrStr, *, system: str | None = None, skip_bad_lines: bool = False) -> LoadedCollection:
    """Read contexts with texts, a run, or passage texts by id, depending on the first line."""
    first = _first_row(path)
    if "retrieved_context" not in first and {"text", "contents"} & set(first):
        frame, notes = read_texts(path, kind="passages", skip_bad_lines=skip_bad_lines)
        return LoadedCollection(Collection.of(passages=frame, source=str(path), notes=notes))
    if tables.kind_of_row(first) == "run":
        return LoadedCollection(Collection(), tables.read_contexts(path, system=system, skip_bad_lines=skip_bad_lines))
    return LOG.load(path, system=system, skip_bad_lines=skip_bad_lines)


def _check_writable(contexts: Contexts, path: PathOrStr) -> None:
    """Reject contexts that JSON lists can't represent, before anything is written."""
    remedy = "write Parquet"
    size = contexts.frame.group_by("system", "query", maintain_order=True).agg(pl.len(), pl.col("rank").max())
    gaps = size.filter(pl.col("len") != pl.col("rank"))
    if gaps.height:
        problem = f"the ranks of query {quote_short(gaps['query'][0])} have gaps, which a JSON list can't represent"
        raise FormatError(problem, file=str(path), remedy=remedy)
    if any(math.isinf(score) for score in contexts.frame["score"].drop_nulls()):
        raise FormatError("a score is infinite, which JSON can't represent", file=str(path), remedy=remedy)


def write_contexts(contexts: Contexts, path: PathOrStr, collection: Collection | None = None) -> None:
    """Write contexts, with texts of ``collection`` where available."""
    collection = collection or Collection()
    queries = dict(collection.queries.iter_rows())
    texts = dict(collection.passages.select("passage", "text").iter_rows())
    answers: dict[str, list[str]] = {}
    for query, text in collection.answers.iter_rows():
        answers.setdefault(query, []).append(text)
    _check_writable(contexts, path)
    with create_file(path) as stream:
        groups = contexts.frame.group_by("system", "query", maintain_order=True)
        nothing = contexts.frame.clear()
        for (system, query), rows in [*groups, *((pair, nothing) for pair in sorted(contexts.empty))]:
            item: dict[str, Any] = {"system": system, "query_id": query}
            if query in queries:
                item["query"] = queries[str(query)]
            if query in answers:
                item["answers"] = answers[str(query)]
            item["retrieved_context"] = [
                {"doc_id": passage}
                | ({"text": texts[passage]} if passage in texts else {})
                | ({"score": score} if score is not None else {})
                for passage, score in rows.select("passage", "score").iter_rows()
            ]
            stream.write(json.dumps(item, ensure_ascii=False, allow_nan=False).encode() + b"\n")


def _inspect(head: Head) -> list[Contents]:
    return row_kinds(head) if head.kind == "lines" else []


FORMAT = Format(
    name="jsonl",
    title="JSON lines: contexts with texts, or texts by id",
    endings=(".jsonl", ".ndjson"),
    contexts=read_contexts,
    judgments=tables.read_judgments,
    ratings=tables.read_ratings,
    load=load,
    write_contexts=write_contexts,
    inspect=_inspect,
    general=1,
)
