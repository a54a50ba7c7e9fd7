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
from functools import partial
from typing import Any, Literal

import polars as pl

from ragworth.core.errors import BadLine, FormatError, quote_short
from ragworth.data.collection import Collection
from ragworth.formats.catalog import FORMATS, Spec
from ragworth.formats.contract import Format, LoadedCollection
from ragworth.formats.files import (
    PathOrStr,
    bad_lines_error,
    empty_file_error,
    read_lines,
    skipped_note,
)
from ragworth.formats.heads import read_head
from ragworth.formats.kinds import LIST_KEYS, QUERY_KEYS, lacks_header
from ragworth.formats.tables import LINES, read_table
from ragworth.formats.values import WrongLineError, as_id, as_object, as_text, read_values

CollectionPart = Literal["queries", "passages", "answers", "subquestions"]
CONVERSATION_FORMATS = ("conversations", "canard", "cast", "mtrag")
PAIRS = "an id and a text on each line, separated by a tab"
TEXTS = '{"_id": …, "text": …} on each line'
LISTS = '{{"query_id": …, "{}": ["…"]}} on each line'

BATCH = 100_000
"""Texts converted to Python objects at a time."""

TextRows = tuple[pl.DataFrame, tuple[str, ...]]
"""Texts, and notes on skipped lines."""


def read(path: PathOrStr, kind: CollectionPart, *, skip_bad_lines: bool = False) -> Collection:
    """Read a collection with only these texts; of conversations, all that their file has."""
    spec = Spec.of(path)
    suffix, path = spec.suffix, spec.path
    if kind == "queries" and (form := conversation_format(spec)) is not None:
        loaded: LoadedCollection = form.do("load")(path, skip_bad_lines=skip_bad_lines)
        return loaded.collection
    single = {"queries": "query", "passages": "passage"}.get(kind)
    if single and suffix == ".tsv" and _lacks_header(path):
        frame, notes = read_pairs(path, single, skip_bad_lines)
    elif suffix in (".csv", ".tsv", ".parquet"):
        frame, notes = read_table(path, skip_bad_lines=skip_bad_lines)
    elif suffix in LINES:
        read_lines_of = read_texts if single else _read_lists
        frame, notes = read_lines_of(path, kind=single or kind, skip_bad_lines=skip_bad_lines)
    else:
        raise FormatError("unknown file extension", file=str(path), expected=".jsonl, .parquet, .csv or .tsv")
    if not frame.height:
        raise empty_file_error(path, f"texts of {kind}")
    return Collection.of(**{kind: frame}, source=str(path), notes=notes)


def conversation_format(spec: Spec) -> Format | None:
    """The format of a file of conversations, which its beginning or the format in front of the path says."""
    if spec.format:
        return FORMATS.get(spec.format) if spec.format in CONVERSATION_FORMATS else None
    if spec.suffix not in (".json", *LINES) or not os.path.isfile(spec.path):  # noqa: PTH113
        return None
    head = read_head(spec.path)
    return next((form for form in map(FORMATS.get, CONVERSATION_FORMATS) if (form.inspect or bool)(head)), None)


def _lacks_header(path: PathOrStr) -> bool:
    _, first = next(read_lines(path), (0, b""))
    return lacks_header(first.decode("utf-8", "replace").split("\t"))


def read_pairs(path: PathOrStr, name: str, skip: bool) -> TextRows:
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


def read_texts(path: PathOrStr, *, kind: str, skip_bad_lines: bool = False) -> TextRows:
    """Read texts by id: BEIR's ``{"_id": …, "title": …, "text": …}`` or pyserini's ``{"id": …, "contents": …}``.

    The title is prepended to the text.
    """
    frames: list[pl.DataFrame] = []
    ids: list[str] = []
    texts: list[str] = []
    bad: list[BadLine] = []
    parse = partial(_parse_text, keys=("_id", "id", f"{kind}_id", "doc_id", "docno", kind))
    for _, (identity, text) in read_values(path, bad, skip=skip_bad_lines, expected=TEXTS, parse=parse):
        if len(ids) == BATCH:
            frames.append(pl.DataFrame({kind: ids, "text": texts}))
            ids, texts = [], []
        ids.append(identity)
        texts.append(text)
    if not ids:
        raise empty_file_error(path, TEXTS)
    return pl.concat([*frames, pl.DataFrame({kind: ids, "text": texts})]), skipped_note(path, bad)


def _parse_text(value: Any, keys: tuple[str, ...]) -> tuple[str, str]:
    item = as_object(value)
    identity = as_id(next((item[key] for key in keys if key in item), None), "_id")
    text, title = as_text(item.get("text", item.get("contents")), "text"), as_text(item.get("title") or "", "title")
    return identity, f"{title}\n{text}" if title else text


def _read_lists(path: PathOrStr, *, kind: str, skip_bad_lines: bool) -> TextRows:
    """Read lines with several texts of a query each."""
    bad: list[BadLine] = []
    expected = LISTS.format(kind)
    parse = partial(_parse_list, kind=kind)
    lists = read_values(path, bad, skip=skip_bad_lines, expected=expected, parse=parse)
    rows = [row for _, texts in lists for row in texts]
    if not rows:
        raise empty_file_error(path, expected)
    frame = pl.DataFrame(rows, schema=dict.fromkeys(("query", "subquestion", "text"), pl.String), orient="row")
    return (frame if kind == "subquestions" else frame.drop("subquestion")), skipped_note(path, bad)


def _parse_list(value: Any, kind: str) -> list[tuple[str, str, str]]:
    item = as_object(value)
    query = as_id(next((item[name] for name in QUERY_KEYS if name in item), None), "query_id")
    given = next((item[name] for name in LIST_KEYS[kind] if name in item), None)
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list):
        raise WrongLineError(f"the list {kind!r} is missing: {quote_short(given, 24)}")
    rows: list[tuple[str, str, str]] = []
    for number, each in enumerate(texts, 1):
        if isinstance(each, dict) and kind == "subquestions":
            rows.append((query, as_id(each.get("id", number), "id"), as_text(each.get("text"), "text")))
        else:
            rows.append((query, str(number), as_text(each, f"text {number}")))
    return rows
