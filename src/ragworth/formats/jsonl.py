"""Read and write JSON lines: contexts with texts, as RAG programs log them, and texts by id.

A line of contexts is one query::

    {"query_id": "q1", "query": "…", "answers": ["…"],
     "retrieved_context": [{"doc_id": "d7", "text": "…", "score": 3.2}]}

The order of ``retrieved_context`` is the order shown. ``query``, ``answers``, ``text`` and ``score`` are optional. A
passage without ``doc_id`` gets an id derived from its text. ``system`` names the system of a line.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import polars as pl

from ragworth.collection import Collection, text_id
from ragworth.errors import BadLine, FormatError, quote_short
from ragworth.formats.columns import bad_lines_error, skipped_note
from ragworth.formats.contract import Format, LoadedCollection
from ragworth.formats.files import PathOrStr, create_file, run_name
from ragworth.formats.values import WrongLineError, as_id, as_number, as_text, read_values
from ragworth.tables import Contexts, Judgments, Ratings, Table
from ragworth.tables.coercion import ID_ALIASES, to_frame
from ragworth.tables.ranking import Ties

T = TypeVar("T", bound=Table)

BATCH = 100_000
"""Texts converted to Python objects at a time."""

EXPECTED = (
    'one JSON object a line: {"query_id": …, "query": …, "answers": […], '
    '"retrieved_context": [{"doc_id": …, "text": …, "score": …}]}'
)


def read_objects(
    path: PathOrStr, bad: list[BadLine], *, skip: bool, expected: str
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the JSON objects of a file with line numbers. Other lines are errors, or go to ``bad``."""
    for number, value in read_values(path, bad, skip=skip, expected=expected):
        if isinstance(value, dict):
            yield number, value
            continue
        bad.append(BadLine(number, f"{type(value).__name__} instead of an object: {quote_short(value, 48)}"))
        if not skip:
            raise bad_lines_error(path, bad, expected)


def load(path: PathOrStr, *, system: str | None = None, skip_bad_lines: bool = False) -> LoadedCollection:
    """Read contexts and their texts."""
    rows: list[tuple[str, str, int, str, float | None]] = []
    texts = _TextsById()
    bad: list[BadLine] = []
    seen: set[tuple[str, str]] = set()
    empty: list[tuple[str, str]] = []
    name = system or run_name(path)
    for number, item in read_objects(path, bad, skip=skip_bad_lines, expected=EXPECTED):
        try:
            context, found = _parse_context(item, name)
            key = as_id(item.get("system", name), "system"), as_id(item.get("query_id"), "query_id")
            if key in seen:
                system_id, query_id = (quote_short(part, 24) for part in key)
                raise WrongLineError(f"query {query_id} occurs twice for system {system_id}")
            texts.add(found)
        except WrongLineError as error:
            bad.append(BadLine(number, str(error)))
            if not skip_bad_lines:
                raise bad_lines_error(path, bad, EXPECTED) from error
            continue
        seen.add(key)
        rows += context
        if not context:
            empty.append(key)
    if not seen:
        raise FormatError("no rows: the file is empty", file=str(path), expected=EXPECTED)
    frame = pl.DataFrame(
        rows,
        schema={"system": pl.String, "query": pl.String, "rank": pl.UInt32, "passage": pl.String, "score": pl.Float64},
        orient="row",
    )
    notes = skipped_note(path, bad)
    return LoadedCollection(texts.collection(str(path)), Contexts(frame, source=str(path), notes=notes, empty=empty))


class _TextsById:
    """Texts seen so far; another text for the same id is an error."""

    def __init__(self) -> None:
        self.queries: dict[str, str] = {}
        self.passages: dict[str, str] = {}
        self.answers: dict[str, list[str]] = {}

    def add(self, found: _TextsById) -> None:
        for kind, known, new in (("query", self.queries, found.queries), ("passage", self.passages, found.passages)):
            for key, text in new.items():
                if known.get(key, text) != text:
                    raise WrongLineError(f"the {kind} {quote_short(key, 24)} has a different text on an earlier line")
        for key, answers in found.answers.items():
            if self.answers.get(key, answers) != answers:
                raise WrongLineError(f"the query {quote_short(key, 24)} has different answers on an earlier line")
        self.queries |= found.queries
        self.passages |= found.passages
        self.answers |= found.answers

    def collection(self, source: str) -> Collection:
        pairs = [(query, text) for query, texts in self.answers.items() for text in texts]
        return Collection.of(
            queries={"query": list(self.queries), "text": list(self.queries.values())} if self.queries else None,
            passages={"passage": list(self.passages), "text": list(self.passages.values())} if self.passages else None,
            answers={"query": [p[0] for p in pairs], "text": [p[1] for p in pairs]} if pairs else None,
            source=source,
        )


def _parse_context(item: dict[str, Any], name: str) -> tuple[list[tuple[str, str, int, str, float | None]], _TextsById]:
    """Parse one line to rows and texts."""
    found = _TextsById()
    query = as_id(item.get("query_id"), "query_id")
    system = as_id(item.get("system", name), "system")
    if item.get("query") is not None:
        found.queries[query] = as_text(item["query"], "query")
    answers = item.get("answers") or []
    answers = [answers] if isinstance(answers, str) else answers
    if not isinstance(answers, list):
        raise WrongLineError(f"the answers are {quote_short(answers, 24)}, not a list of texts")
    if answers:
        found.answers[query] = [as_text(answer, "answer") for answer in answers]
    passages = item.get("retrieved_context")
    if not isinstance(passages, list):
        raise WrongLineError("the list 'retrieved_context' is missing")
    rows: list[tuple[str, str, int, str, float | None]] = []
    for rank, entry in enumerate(passages, 1):
        if not isinstance(entry, dict):
            raise WrongLineError(f"passage {rank} is {quote_short(entry, 24)}, not an object")
        text = as_text(entry["text"], f"text of passage {rank}") if entry.get("text") is not None else None
        if entry.get("doc_id") is None and text is None:
            raise WrongLineError(f"passage {rank} has neither doc_id nor text")
        passage = as_id(entry["doc_id"], "doc_id") if entry.get("doc_id") is not None else text_id(text or "")
        if text is not None:
            found.passages[passage] = text
        score = None if entry.get("score") is None else as_number(entry["score"], f"score of passage {rank}")
        rows.append((system, query, rank, passage, score))
    if len({row[3] for row in rows}) < len(rows):
        raise WrongLineError(f"a passage occurs twice for query {quote_short(query, 24)}")
    return rows, found


def read_contexts(
    path: PathOrStr, *, system: str | None = None, ties: Ties = "float64", skip_bad_lines: bool = False
) -> Contexts:
    """Read the contexts only. The file determines the order, so ``ties`` has no effect."""
    loaded = load(path, system=system, skip_bad_lines=skip_bad_lines).contexts
    assert loaded is not None
    return loaded


def _check_writable(contexts: Contexts, path: PathOrStr) -> None:
    """Reject contexts that JSON lists can't represent, before anything is written."""
    remedy = "write Parquet"
    size = contexts.frame.group_by("system", "query", maintain_order=True).agg(pl.len(), pl.col("rank").max())
    gaps = size.filter(pl.col("len") != pl.col("rank"))
    if gaps.height:
        found = f"the ranks of query {quote_short(gaps['query'][0])} have gaps, which a JSON list can't represent"
        raise FormatError(found, file=str(path), remedy=remedy)
    if any(math.isinf(score) for score in contexts.frame["score"].drop_nulls()):
        raise FormatError("a score is infinite, which JSON can't represent", file=str(path), remedy=remedy)


def write_contexts(contexts: Contexts, path: PathOrStr, collection: Collection | None = None) -> None:
    """Write contexts, with texts of ``collection`` where available."""
    collection = collection or Collection()
    queries = dict(collection.queries.iter_rows())
    texts = dict(collection.passages.iter_rows())
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


def read_texts(path: PathOrStr, *, kind: str, skip_bad_lines: bool = False) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Read texts by id in BEIR's format: ``{"_id": …, "title": …, "text": …}``. The title is prepended to the text."""
    expected = '{"_id": …, "text": …} on each line'
    frames: list[pl.DataFrame] = []
    ids: list[str] = []
    texts: list[str] = []
    bad: list[BadLine] = []
    for number, item in read_objects(path, bad, skip=skip_bad_lines, expected=expected):
        if len(ids) == BATCH:
            frames.append(pl.DataFrame({kind: ids, "text": texts}))
            ids, texts = [], []
        try:
            key = next((item[k] for k in ("_id", "id", f"{kind}_id", "doc_id", "docno", kind) if k in item), None)
            identity, text = as_id(key, "_id"), as_text(item.get("text"), "text")
            title = as_text(item.get("title") or "", "title")
        except WrongLineError as error:
            bad.append(BadLine(number, str(error)))
            if not skip_bad_lines:
                raise bad_lines_error(path, bad, expected) from error
            continue
        ids.append(identity)
        texts.append(f"{title}\n{text}" if title else text)
    if not ids:
        raise FormatError("no rows: the file is empty", file=str(path), expected=expected)
    return pl.concat([*frames, pl.DataFrame({kind: ids, "text": texts})]), skipped_note(path, bad)


def load_any(path: PathOrStr, *, system: str | None = None, skip_bad_lines: bool = False) -> LoadedCollection:
    """Read contexts with texts, or passage texts by id, depending on the first line."""
    for _, item in read_objects(path, [], skip=True, expected=EXPECTED):
        if "retrieved_context" not in item and "text" in item:
            frame, notes = read_texts(path, kind="passage", skip_bad_lines=skip_bad_lines)
            return LoadedCollection(Collection.of(passages=frame, source=str(path), notes=notes))
        break
    return load(path, system=system, skip_bad_lines=skip_bad_lines)


def _row_reader(table: type[T]) -> Callable[..., T]:
    """Make a reader for tables with one JSON object per row, as written by ``ragworth annotate``."""
    expected = "{" + ", ".join(f'"{name}": …' for name in table.key) + ', "value": …} on each line'

    def read(path: PathOrStr, *, skip_bad_lines: bool = False) -> T:
        bad: list[BadLine] = []
        known = {*table.schema, *(alias for names in ID_ALIASES.values() for alias in names), "rating"}
        items = read_objects(path, bad, skip=skip_bad_lines, expected=expected)
        rows = [{name: value for name, value in item.items() if name in known} for _, item in items]
        if not rows:
            raise FormatError("no rows: the file is empty", file=str(path), expected=expected)
        every = dict.fromkeys(name for row in rows for name in row)
        if "status" in every and "rating" not in every:
            every.setdefault("value")  # a row without a value may omit it
        frame = to_frame({name: [row.get(name) for row in rows] for name in every}, source=str(path))
        return table(frame, source=str(path), notes=skipped_note(path, bad))

    read.__doc__ = f"{table.name.capitalize()}, one row per line."
    return read


FORMAT = Format(
    name="jsonl",
    title="JSON lines: contexts with texts, or texts by id",
    endings=(".jsonl", ".ndjson"),
    contexts=read_contexts,
    judgments=_row_reader(Judgments),
    ratings=_row_reader(Ratings),
    load=load_any,
    write_contexts=write_contexts,
)
