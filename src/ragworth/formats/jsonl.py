"""Read and write JSON lines: contexts with texts, as RAG programs log them, and texts by id.

A line of contexts is one query::

    {"query_id": "q1", "query": "…", "answers": ["…"],
     "retrieved_context": [{"doc_id": "d7", "text": "…", "score": 3.2}]}

The order of ``retrieved_context`` is the order shown. ``query``, ``answers``, ``text`` and ``score`` are optional. A
passage without ``doc_id`` gets an id derived from its text; a passage may also be a plain text. ``system`` names the
system of a line, ``answer`` or ``response`` is what it answered; ``correct``, ``grade`` and ``human_label`` are grades.
A run may also have one passage on each line: ``{"query": "q1", "passage": "d7", "score": 3.2}``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import polars as pl

from ragworth.core.errors import BadLine, FormatError, quote_short
from ragworth.data import Contexts, Judgments, Ratings, Table
from ragworth.data.coercion import ID_ALIASES, to_frame
from ragworth.data.collection import Collection
from ragworth.data.contexts import MAYBE_SYSTEMS
from ragworth.data.ranking import Ties
from ragworth.formats.contract import FileSample, Format, LoadedCollection
from ragworth.formats.files import PathOrStr, bad_lines_error, create_file, run_name, skipped_note, source_name
from ragworth.formats.grades import check_labels, check_ratings
from ragworth.formats.logs.collector import TWICE, repeats_error
from ragworth.formats.logs.fields import FIELDS, GRADE_FIELDS, FieldFinder
from ragworth.formats.logs.rows import read_record
from ragworth.formats.logs.tables import LogBuilder
from ragworth.formats.logs.unused_columns import UnusedColumns
from ragworth.formats.values import WrongLineError, as_id, as_text, read_values

T = TypeVar("T", bound=Table)

IDS = {alias for names in ID_ALIASES.values() for alias in names}
RELEVANCE = {"value", *Judgments.wide["relevance"]}

BATCH = 100_000
"""Texts converted to Python objects at a time."""

NAMES = FIELDS | GRADE_FIELDS | {"passages": ("retrieved_context",), "question": ("query", "question")}

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
    """Read contexts and their texts, with answers and grades if the lines have them."""
    finder, bad, unused = FieldFinder(NAMES), list[BadLine](), UnusedColumns()
    builder = LogBuilder(source_name(path), system or run_name(path), strict=True)
    for number, item in read_objects(path, bad, skip=skip_bad_lines, expected=EXPECTED):
        try:
            if not isinstance(item.get("retrieved_context"), list) and (
                "retrieved_context" in item or finder.get(item, "answer") is None
            ):
                raise WrongLineError("the list 'retrieved_context' is missing")
            unused.see(item, finder)
            builder.add(read_record(item, finder, number))
        except WrongLineError as error:
            bad.append(BadLine(number, str(error)))
            if not skip_bad_lines:
                problem = bad_lines_error(path, bad, EXPECTED)
                raise (repeats_error(problem, finder) if TWICE in str(error) else problem) from error
    if not builder.seen:
        raise FormatError("no rows: the file is empty", file=str(path), expected=EXPECTED)
    unused.check(finder, builder.source)
    notes = (f"{builder.source}: {note}" for note in (*finder.notes, *unused.notes()))
    return builder.build((*skipped_note(path, bad), *notes))


def read_contexts(
    path: PathOrStr, *, system: str | None = None, ties: Ties = "float64", skip_bad_lines: bool = False
) -> Contexts:
    """Read the contexts only. In lists, the file determines the order, so ``ties`` has no effect."""
    if _has_run_rows(path):
        return _read_run_rows(path, system=system, ties=ties, skip_bad_lines=skip_bad_lines)
    loaded = load(path, system=system, skip_bad_lines=skip_bad_lines).contexts
    if loaded is None:
        raise FormatError("no line says which passages were shown", file=str(path), expected=EXPECTED)
    return loaded


def _has_run_rows(path: PathOrStr) -> bool:
    """Whether each line is a passage with its score or rank, as of a run, by the first line."""
    return are_run_rows(next((item for _, item in read_objects(path, [], skip=True, expected=EXPECTED)), {}))


def _read_run_rows(path: PathOrStr, *, system: str | None, ties: Ties, skip_bad_lines: bool) -> Contexts:
    expected = '{"query": …, "passage": …, "score": …} on each line'
    bad: list[BadLine] = []
    rows = (item for _, item in read_objects(path, bad, skip=skip_bad_lines, expected=expected))
    return read_run_rows(rows, path, system=system, ties=ties, bad=bad)


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


def read_texts(path: PathOrStr, *, kind: str, skip_bad_lines: bool = False) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Read texts by id: BEIR's ``{"_id": …, "title": …, "text": …}`` or pyserini's ``{"id": …, "contents": …}``.

    The title is prepended to the text.
    """
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
            identity, text = as_id(key, "_id"), as_text(item.get("text", item.get("contents")), "text")
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
        if "retrieved_context" not in item and {"text", "contents"} & set(item):
            frame, notes = read_texts(path, kind="passage", skip_bad_lines=skip_bad_lines)
            return LoadedCollection(Collection.of(passages=frame, source=str(path), notes=notes))
        break
    if _has_run_rows(path):
        contexts = _read_run_rows(path, system=system, ties="float64", skip_bad_lines=skip_bad_lines)
        return LoadedCollection(Collection(), contexts)
    return load(path, system=system, skip_bad_lines=skip_bad_lines)


def _row_reader(table: type[T]) -> Callable[..., T]:
    """Make a reader for tables with one JSON object per row, as written by ``ragworth annotate``."""

    def read(path: PathOrStr, *, skip_bad_lines: bool = False) -> T:
        bad: list[BadLine] = []
        numbered = read_objects(path, bad, skip=skip_bad_lines, expected=expected_row(table))
        return read_table_rows(table, numbered, path, bad)

    read.__doc__ = f"{table.name.capitalize()}, one row per line."
    return read


def _recognise(sample: FileSample) -> bool:
    if sample.kind != "lines" or sample.has_any("page_content", "id_", "gt_answer") or sample.has("inputs", "outputs"):
        return False
    by_id = sample.has_any("text", "contents") and sample.has_any(
        "_id", "id", "doc_id", "docno", "query_id", "query", "passage"
    )
    return sample.has("retrieved_context") or by_id or sample.has("query", "passage")


def has_ids(keys: Mapping[str, Any]) -> bool:
    """Whether there are ids of queries and of passages."""
    return all(set(ID_ALIASES[name]) & set(keys) for name in ("query", "passage"))


def are_run_rows(keys: Mapping[str, Any]) -> bool:
    """Whether rows are passages with their scores or ranks, as of a run. Rows with answers are of a log."""
    logged = {"retrieved_context", "text", *FIELDS["answer"]} & set(keys)
    return has_ids(keys) and bool({"score", "rank"} & set(keys)) and not logged


def are_label_rows(keys: Mapping[str, Any]) -> bool:
    """Whether rows are passages with labels."""
    return has_ids(keys) and bool(RELEVANCE & set(keys))


def read_run_rows(
    rows: Iterable[Mapping[str, Any]], path: PathOrStr, *, system: str | None, ties: Ties, bad: Sequence[BadLine] = ()
) -> Contexts:
    """Read one passage with its score or rank from each row."""
    known = IDS | MAYBE_SYSTEMS | {"score", "rank"}
    found = [{name: value for name, value in row.items() if name in known} for row in rows]
    name = system or run_name(path)
    return Contexts(found, system=name, ties=ties, source=str(path), notes=skipped_note(path, bad))


def read_table_rows(
    table: type[T], numbered: Iterable[tuple[int, Mapping[str, Any]]], path: PathOrStr, bad: Sequence[BadLine] = ()
) -> T:
    """Read judgments or ratings from rows with their line numbers."""
    known = {*table.schema, *IDS, "rating"}
    if table is Judgments:
        known |= {"score", *(name for names in Judgments.wide.values() for name in names)}
    places: list[int] = []
    rows: list[dict[str, Any]] = []
    for place, row in numbered:
        places.append(place)
        rows.append({name: value for name, value in row.items() if name in known})
    if not rows:
        raise FormatError("no rows: the file is empty", file=str(path), expected=expected_row(table))
    every = dict.fromkeys(name for row in rows for name in row)
    if "status" in every and "rating" not in every:
        every.setdefault("value")  # a row without a value may omit it
    frame = to_frame({name: [row.get(name) for row in rows] for name in every}, source=str(path))
    found = table(frame, source=str(path), notes=skipped_note(path, bad))
    if isinstance(found, Judgments):
        check_labels(found, path, lambda row: places[row] if len(found) == len(places) else None)
    if table is Ratings:
        check_ratings(found.frame["value"], path, lambda row: places[row])
    return found


def expected_row(table: type[Table]) -> str:
    """What a row of a table looks like in JSON."""
    return "{" + ", ".join(f'"{name}": …' for name in table.key) + ', "value": …} on each line'


FORMAT = Format(
    name="jsonl",
    title="JSON lines: contexts with texts, or texts by id",
    endings=(".jsonl", ".ndjson"),
    contexts=read_contexts,
    judgments=_row_reader(Judgments),
    ratings=_row_reader(Ratings),
    load=load_any,
    write_contexts=write_contexts,
    recognise=_recognise,
    general=1,
)
