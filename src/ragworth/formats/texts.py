"""Read texts by id from JSONL or a table: queries, passages, accepted answers, sub-questions.

========== ================================================ =========================================
what       JSONL                                            table (Parquet, CSV, TSV)
========== ================================================ =========================================
queries    ``{"_id": …, "text": …}``                        query, text
passages   ``{"_id": …, "title": …, "text": …}``            passage, text
answers    ``{"query_id": …, "answers": ["…", …]}``         query, text (one row per answer)
questions  ``{"query_id": …, "subquestions": ["…", …]}``    query, subquestion, text
========== ================================================ =========================================

Queries may also be a file of conversations (``conversations``, ``canard``, ``cast``, ``mtrag``): then their turns are
read, with the answers, passages and labels in the same file.

A TSV file of queries or passages may also have an id and a text on each line and no header, as in TREC and MS MARCO.
A sub-question in JSONL is a text, numbered from 1, or ``{"id": …, "text": …}``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Literal

import polars as pl

from ragworth.core.errors import BadLine, FormatError, quote_short
from ragworth.data.coercion import ID_ALIASES
from ragworth.data.collection import Collection
from ragworth.formats.catalog import FORMATS
from ragworth.formats.contract import Format, LoadedCollection
from ragworth.formats.files import PathOrStr, bad_lines_error, read_lines, skipped_note
from ragworth.formats.frames import read_table
from ragworth.formats.heads import read_head
from ragworth.formats.jsonl import read_objects, read_texts
from ragworth.formats.values import WrongLineError, as_id, as_text

CONVERSATION_FORMATS = ("conversations", "canard", "cast", "mtrag")

CollectionPart = Literal["queries", "passages", "answers", "subquestions"]
PAIRS = "an id and a text on each line, separated by a tab"
LIST_KEYS = {"answers": ("answers", "answer"), "subquestions": ("subquestions", "sub_questions", "questions")}
EXPECTED = {
    "answers": '{"query_id": …, "answers": ["…"]} on each line',
    "subquestions": '{"query_id": …, "subquestions": ["…"]} on each line',
}


def read(path: PathOrStr, kind: CollectionPart, *, skip_bad_lines: bool = False) -> Collection:
    """Read a collection with only these texts; of conversations, all that their file has."""
    if kind == "queries" and (form := conversation_format(path)) is not None:
        spec = str(path).removeprefix(f"{form.name}:")
        loaded: LoadedCollection = form.do("load")(spec, skip_bad_lines=skip_bad_lines)
        return loaded.collection
    name = str(path).lower().removesuffix(".gz").removesuffix(".zst")
    single = {"queries": "query", "passages": "passage"}.get(kind)
    if single and name.endswith(".tsv") and lacks_header(path):
        frame, notes = _read_pairs(path, single, skip_bad_lines)
    elif not name.endswith((".jsonl", ".ndjson")):
        if not name.endswith((".csv", ".tsv", ".parquet")):
            raise FormatError("unknown file extension", file=str(path), expected=".jsonl, .parquet, .csv or .tsv")
        frame, notes = read_table(path, skip_bad_lines=skip_bad_lines)
    elif single:
        frame, notes = read_texts(path, kind=single, skip_bad_lines=skip_bad_lines)
    else:
        frame, notes = _read_lists(path, kind, skip_bad_lines)
    if not frame.height:
        raise FormatError("no rows: the file is empty", file=str(path), expected=f"texts of {kind}")
    return Collection.of(**{kind: frame}, source=str(path), notes=notes)


def conversation_format(path: PathOrStr) -> Format | None:
    """The format of a file of conversations, which its beginning or the format in front of the path says."""
    prefix, colon, _ = str(path).partition(":")
    if colon and prefix in CONVERSATION_FORMATS:
        return FORMATS.get(prefix)
    name = str(path).lower().removesuffix(".gz").removesuffix(".zst")
    if not name.endswith((".json", ".jsonl", ".ndjson")) or not os.path.isfile(path):  # noqa: PTH113
        return None
    head = read_head(path)
    return next((form for form in map(FORMATS.get, CONVERSATION_FORMATS) if (form.recognise or bool)(head)), None)


def lacks_header(path: PathOrStr) -> bool:
    """Whether the first line is an id and a text, and not the names of columns."""
    _, first = next(read_lines(path), (0, b""))
    fields = [field.strip().lower() for field in first.decode("utf-8", "replace").split("\t")]
    names = {*USUAL_HEADERS, *(name for names in ID_ALIASES.values() for name in names)}
    return len(fields) == 2 and not (fields[0] in names or set(fields) <= names)


_HEADERS = (
    "id _id qid pid docid doc_id docno doc document number topic query question title text contents content body "
    "passage answer"
)
USUAL_HEADERS = frozenset(_HEADERS.split())
"""Names of columns in files of texts, besides those of ids."""


def _read_pairs(path: PathOrStr, name: str, skip: bool) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Read lines of an id and a text with a tab between them. Quotation marks mean nothing special."""
    rows: list[tuple[str, str]] = []
    bad: list[BadLine] = []
    for number, line in read_lines(path):
        try:
            fields = line.decode("utf-8").split("\t")
            if len(fields) != 2:
                raise WrongLineError(f"{len(fields)} fields instead of 2")
            rows.append((as_id(fields[0].strip(), "id"), fields[1]))
        except (WrongLineError, UnicodeDecodeError) as error:
            bad.append(BadLine(number, "not UTF-8 text" if isinstance(error, UnicodeDecodeError) else str(error)))
            if not skip:
                raise bad_lines_error(path, bad, PAIRS) from error
    return pl.DataFrame(rows, schema=[name, "text"], orient="row"), skipped_note(path, bad)


def _read_lists(path: PathOrStr, kind: str, skip: bool) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Read lines with several texts of a query each."""
    rows: list[tuple[str, str, str]] = []
    bad: list[BadLine] = []
    for number, item in read_objects(path, bad, skip=skip, expected=EXPECTED[kind]):
        try:
            rows += list(_list_texts(item, kind))
        except WrongLineError as error:
            bad.append(BadLine(number, str(error)))
            if not skip:
                raise bad_lines_error(path, bad, EXPECTED[kind]) from error
    if not rows:
        raise FormatError("no rows: the file is empty", file=str(path), expected=EXPECTED[kind])
    frame = pl.DataFrame(rows, schema=dict.fromkeys(("query", "subquestion", "text"), pl.String), orient="row")
    return (frame if kind == "subquestions" else frame.drop("subquestion")), skipped_note(path, bad)


def _list_texts(item: dict[str, Any], kind: str) -> Iterator[tuple[str, str, str]]:
    query = as_id(next((item[name] for name in ("query_id", "qid", "_id", "id") if name in item), None), "query_id")
    given = next((item[name] for name in LIST_KEYS[kind] if name in item), None)
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list):
        raise WrongLineError(f"the list {kind!r} is missing: {quote_short(given, 24)}")
    for number, each in enumerate(texts, 1):
        if isinstance(each, dict) and kind == "subquestions":
            yield query, as_id(each.get("id", number), "id"), as_text(each.get("text"), "text")
        else:
            yield query, str(number), as_text(each, f"text {number}")
