"""Read documents to split into passages: an id, a text, and an optional separate title."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import polars as pl

from ragworth.core.errors import BadLine, FormatError, TableError, format_names, quote_short
from ragworth.data import coercion
from ragworth.data.coercion import Data
from ragworth.formats.files import PathOrStr, bad_lines_error, skipped_note
from ragworth.formats.tables import read_table
from ragworth.formats.values import WrongLineError, as_id, as_text, read_objects

ID_COLUMNS = ("document", "document_id", "_id", "id", *coercion.ID_ALIASES["passage"], "url", "path")
TEXT_COLUMNS = ("text", "content", "contents", "page_content", "body")
TITLE_COLUMNS = ("title", "headline")
"""Accepted names of a document's columns, in order of preference."""

EXPECTED = '{"_id": …, "title": …, "text": …} on each line'
SCHEMA = {"document": pl.String, "title": pl.String, "text": pl.String}


class Documents(NamedTuple):
    """Documents (document, title, text), and notes from reading."""

    frame: pl.DataFrame
    notes: tuple[str, ...] = ()


def read(path: PathOrStr, *, skip_bad_lines: bool = False) -> Documents:
    """Read documents from JSON lines in BEIR's format, or from a table: Parquet, CSV or TSV."""
    name = str(path).lower().removesuffix(".gz").removesuffix(".zst")
    if name.endswith((".jsonl", ".ndjson")):
        return _read_lines(path, skip_bad_lines)
    if not name.endswith((".csv", ".tsv", ".parquet")):
        raise FormatError("unknown file extension", file=str(path), expected=".jsonl, .parquet, .csv or .tsv")
    frame, notes = read_table(path, skip_bad_lines=skip_bad_lines)
    return Documents(coerce_documents(frame, str(path)), notes)


def _read_lines(path: PathOrStr, skip: bool) -> Documents:
    rows: list[tuple[str, str, str]] = []
    bad: list[BadLine] = []
    for number, item in read_objects(path, bad, skip=skip, expected=EXPECTED):
        try:
            rows.append(_parse_row(item))
        except WrongLineError as error:
            bad.append(BadLine(number, str(error)))
            if not skip:
                raise bad_lines_error(path, bad, EXPECTED) from error
    if not rows:
        raise FormatError("no rows: the file is empty", file=str(path), expected=EXPECTED)
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    return Documents(coerce_documents(frame, str(path)), skipped_note(path, bad))


def _parse_row(item: dict[str, Any]) -> tuple[str, str, str]:
    columns = _columns(item) | _columns([name for name, value in item.items() if value is not None])
    if "document" not in columns or "text" not in columns:
        raise WrongLineError(f"no {'text' if 'document' in columns else 'id'}; the line has {format_names(list(item))}")
    identity = as_id(item[columns["document"]], columns["document"])
    title, text = (item.get(columns.get(name, "")) for name in ("title", "text"))
    return identity, as_text(title or "", "title"), as_text("" if text is None else text, columns["text"])


def _columns(names: Collection[str]) -> dict[str, str]:
    """What the id, the title and the text are called."""
    accepted = {"document": ID_COLUMNS, "title": TITLE_COLUMNS, "text": TEXT_COLUMNS}
    found = {name: next((each for each in some if each in names), None) for name, some in accepted.items()}
    return {name: each for name, each in found.items() if each is not None}


def coerce_documents(data: Data, source: str = "") -> pl.DataFrame:
    """Convert a data frame or a dict of columns to documents: document, title, text. A missing text is an empty one."""
    frame = coercion.to_frame(data, source=source)
    columns = _columns(frame.columns)
    if "document" not in columns or "text" not in columns:
        raise TableError(
            f"documents need an id and a text; the columns are {format_names(frame.columns)}",
            expected="document, text, and optionally title",
            file=source,
        )
    ids, text = coercion.text_ids(frame[columns["document"]], source=source).alias("document"), frame[columns["text"]]
    title = frame[columns["title"]] if "title" in columns else pl.Series([""] * frame.height, dtype=pl.String)
    for column, words in ((text, columns["text"]), (title, "title")):
        if column.dtype not in (pl.String, pl.Null):
            raise TableError(f"the column {words!r} has {column.dtype} values", expected="texts", file=source)
    if text.null_count() == frame.height:
        coercion.check_texts(text, ids, "document", source=source)
    duplicates = (~ids.is_first_distinct()).arg_true()
    if len(duplicates):
        raise TableError(
            f"row {duplicates[0] + 1}: the document {quote_short(ids[duplicates[0]])} occurs twice",
            expected="each document once",
            file=source,
        )
    titles = title.cast(pl.String).fill_null("").alias("title")
    return pl.DataFrame([ids, titles, text.cast(pl.String).fill_null("").alias("text")])
