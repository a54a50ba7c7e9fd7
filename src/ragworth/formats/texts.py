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
read, with the answers and passages in the same file.

A TSV file of queries or passages may also have an id and a text on each line and no header, as in TREC and MS MARCO.
A sub-question in JSONL is a text, numbered from 1, or ``{"id": …, "text": …}``.
"""

from __future__ import annotations

import os
from functools import partial
from itertools import chain, islice
from typing import Any, Literal

import polars as pl

from ragworth.core.errors import BadLine, FormatError, quote_short
from ragworth.data.coercion import ID_ALIASES
from ragworth.data.collection import Collection
from ragworth.formats.catalog import FORMATS, Spec
from ragworth.formats.contract import Format, LoadedCollection
from ragworth.formats.files import (
    NOT_UTF8,
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
ID_KEYS = {
    "queries": ("_id", "id", *ID_ALIASES["query"]),
    "passages": ("_id", "id", *ID_ALIASES["passage"]),
    "answers": QUERY_KEYS,
    "subquestions": QUERY_KEYS,
}
"""Keys of ids in JSONL, in order of preference."""

PAIRS = "an id and a text on each line, separated by a tab"
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
    if suffix == ".tsv" and kind in ("queries", "passages") and _lacks_header(path):
        frame, notes = _read_pairs(path, kind, skip_bad_lines)
    elif suffix in (".csv", ".tsv", ".parquet"):
        frame, notes = read_table(path, skip_bad_lines=skip_bad_lines)
    elif suffix in LINES:
        frame, notes = read_texts(path, kind, skip_bad_lines=skip_bad_lines)
    else:
        raise FormatError("unknown file extension", file=str(path), expected=".jsonl, .parquet, .csv or .tsv")
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


def _read_pairs(path: PathOrStr, kind: CollectionPart, skip: bool) -> TextRows:
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
            bad.append(BadLine(number, NOT_UTF8 if isinstance(error, UnicodeDecodeError) else str(error)))
            if not skip:
                raise bad_lines_error(path, bad, PAIRS) from error
    return _frame(rows, kind), skipped_note(path, bad)


def read_texts(path: PathOrStr, kind: CollectionPart, *, skip_bad_lines: bool = False) -> TextRows:
    """Read JSON lines, such as BEIR's ``{"_id": …, "title": …, "text": …}`` or pyserini's ``{"id": …, "contents": …}``.

    The title is prepended to the text.
    """
    bad: list[BadLine] = []
    example = f'{{"query_id": …, "{kind}": ["…"]}}' if kind in LIST_KEYS else '{"_id": …, "text": …}'
    expected, parse = f"{example} on each line", partial(_parse_list if kind in LIST_KEYS else _parse_text, kind=kind)
    lines = read_values(path, bad, skip=skip_bad_lines, expected=expected, parse=parse)
    rows = chain.from_iterable(texts for _, texts in lines)
    frames: list[pl.DataFrame] = []
    while batch := list(islice(rows, BATCH)):
        frames.append(_frame(batch, kind))
    if not frames:
        raise empty_file_error(path, expected)
    return pl.concat(frames), skipped_note(path, bad)


def _frame(rows: list[Any], kind: CollectionPart) -> pl.DataFrame:
    names = {"passages": ("passage", "text"), "subquestions": ("query", "subquestion", "text")}
    return pl.DataFrame(rows, dict.fromkeys(names.get(kind, ("query", "text")), pl.String), orient="row")


def _parse_id(item: dict[str, Any], kind: CollectionPart) -> str:
    return as_id(next((item[key] for key in ID_KEYS[kind] if key in item), None), ID_KEYS[kind][0])


def _parse_text(value: Any, kind: CollectionPart) -> list[tuple[str, ...]]:
    item = as_object(value)
    text, title = as_text(item.get("text", item.get("contents")), "text"), as_text(item.get("title") or "", "title")
    return [(_parse_id(item, kind), f"{title}\n{text}" if title else text)]


def _parse_list(value: Any, kind: CollectionPart) -> list[tuple[str, ...]]:
    item = as_object(value)
    query = _parse_id(item, kind)
    cell = next((item[name] for name in LIST_KEYS[kind] if name in item), None)
    texts = [cell] if isinstance(cell, str) else cell
    if not isinstance(texts, list):
        raise WrongLineError(f"the list {kind!r} is missing: {quote_short(cell, 24)}")
    if kind == "answers":
        return [(query, as_text(text, f"text {number}")) for number, text in enumerate(texts, 1)]
    objects = [each if isinstance(each, dict) else {"text": each} for each in texts]
    return [
        (query, as_id(each.get("id", number), "id"), as_text(each.get("text"), f"text {number}"))
        for number, each in enumerate(objects, 1)
    ]
