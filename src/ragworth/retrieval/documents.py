"""Documents to split into passages, each with an id, a text and optionally a title: from tables, files and folders."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from ragworth.core.errors import (
    BadLine,
    FormatError,
    InputError,
    TableError,
    format_count,
    format_list,
    format_names,
    quote_short,
)
from ragworth.core.nested_text import max_line
from ragworth.data import coercion
from ragworth.data.coercion import Data
from ragworth.formats.files import (
    PathOrStr,
    empty_file_error,
    open_file,
    skipped_note,
    suffix_of,
)
from ragworth.formats.tables import LINES, read_table
from ragworth.formats.values import WrongLineError, as_id, as_object, as_text, read_values
from ragworth.retrieval.plain_text import READERS, PlainText

COLUMNS = {
    "document": ("document", "document_id", "_id", "id", *coercion.ID_ALIASES["passage"], "url", "path"),
    "title": ("title", "headline"),
    "text": ("text", "content", "contents", "page_content", "body"),
}
"""Accepted names of a document's columns, in order of preference."""

EXPECTED = '{"_id": …, "title": …, "text": …} on each line'
SCHEMA = dict.fromkeys(("document", "title", "text"), pl.String)
TABLES = (".jsonl", ".ndjson", ".parquet", ".csv", ".tsv")

MAX_LISTED = 11
"""How many files an error lists after the first."""


class Documents(NamedTuple):
    """Documents (document, title, text), and notes from reading."""

    frame: pl.DataFrame
    notes: tuple[str, ...] = ()


def is_table(path: Path) -> bool:
    """Return whether a file is a table of documents, by its name."""
    return path.name.lower().removesuffix(".gz").removesuffix(".zst").endswith(TABLES)


def read_document_table(path: PathOrStr) -> Documents:
    """Read documents from JSON lines in BEIR's format, or from a table: Parquet, CSV or TSV."""
    if suffix_of(path) not in LINES:
        frame, notes = read_table(path)
        return Documents(coerce_documents(frame, str(path)), notes)
    bad: list[BadLine] = []
    rows = [row for _, row in read_values(path, bad, skip=False, expected=EXPECTED, parse=_parse_row)]
    if not rows:
        raise empty_file_error(path, EXPECTED)
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    return Documents(coerce_documents(frame, str(path)), skipped_note(path, bad))


def _parse_row(value: Any) -> tuple[str, str, str]:
    item = as_object(value)
    columns = _columns(item) | _columns([name for name, value in item.items() if value is not None])
    if "document" not in columns or "text" not in columns:
        raise WrongLineError(f"no {'text' if 'document' in columns else 'id'}; the line has {format_names(list(item))}")
    title, text = (item.get(columns.get(name, "")) for name in ("title", "text"))
    return (
        as_id(item[columns["document"]], columns["document"]),
        as_text(title or "", "title"),
        as_text("" if text is None else text, columns["text"]),
    )


def _columns(names: Collection[str]) -> dict[str, str]:
    """Return what the id, the title and the text are called."""
    matches = {column: [name for name in accepted if name in names] for column, accepted in COLUMNS.items()}
    return {column: found[0] for column, found in matches.items() if found}


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
    for name in ("text", "title"):
        if name in columns and frame[columns[name]].dtype not in (pl.String, pl.Null):
            kind = frame[columns[name]].dtype
            raise TableError(f"the column {columns[name]!r} has {kind} values", expected="texts", file=source)
    ids, text = coercion.text_ids(frame[columns["document"]], source=source), frame[columns["text"]]
    if text.null_count() == frame.height:
        coercion.to_text(text, source=source)
    duplicates = (~ids.is_first_distinct()).arg_true()
    if len(duplicates):
        raise TableError(
            f"row {duplicates[0] + 1}: the document {quote_short(ids[duplicates[0]])} occurs twice",
            expected="each document once",
            file=source,
        )
    title = pl.col(columns["title"]).cast(pl.String).fill_null("") if "title" in columns else pl.lit("")
    return frame.select(ids.alias("document"), title.alias("title"), text.cast(pl.String).fill_null("").alias("text"))


def read_documents(paths: Iterable[str | Path], *, skip_bad_files: bool = False, advice: str = "") -> Documents:
    """Read documents (document, title, text). A file's id is its path inside the folder that was named.

    Hidden files and files of other kinds are left out, with a note that counts them. Files that can't be read are an
    error that lists them, or, with ``skip_bad_files``, a note. ``advice`` is added to the remedy of that error.
    """
    rows: list[tuple[str, str, str]] = []
    tables: list[Documents] = []
    notes: list[str] = []
    problems: list[FormatError] = []
    for path in map(Path, paths):
        if is_table(path):
            tables.append(read_document_table(path))
            continue
        files, left = _files(path)
        notes += left
        for name, file in files:
            try:
                plain = _read_file(file)
                rows.append((name, plain.title, plain.text))
                notes += [f"{file}: {plain.note}"] if plain.note else []
            except FormatError as error:
                problems.append(error)
    if problems and not skip_bad_files:
        raise _join_problems(problems, advice)
    notes += [note for table in tables for note in table.notes]
    notes += [f"left out: {error.file}: {error.found}" for error in problems]
    every = pl.concat([pl.DataFrame(rows, schema=SCHEMA, orient="row"), *(table.frame for table in tables)])
    frame = every.filter(pl.col("text").str.strip_chars() != "")
    if frame.height < every.height:
        empty = every.filter(pl.col("text").str.strip_chars() == "")["document"]
        few = format_list([quote_short(each, 40) for each in empty], 3)
        notes.append(f"{format_count(len(empty), 'document')} without a text left out ({few})")
    if not frame.height:
        expected = f"a folder with files of {', '.join(READERS)}"
        raise InputError("there is no document with a text", more=tuple(notes[:MAX_LISTED]), expected=expected)
    twice = frame["document"].filter(~frame["document"].is_first_distinct())
    if len(twice):
        raise InputError(
            f"two documents have the id {quote_short(twice[0])}",
            remedy="name the folder that contains both, so that their paths differ",
        )
    if copies := frame.height - frame["text"].n_unique():  # they stay, because users retrieve from them
        notes.append(f"{format_count(copies, 'document repeats', 'documents repeat')} the text of another one")
    return Documents(frame, tuple(notes))


def corpus_hash(frame: pl.DataFrame) -> str:
    """Return the SHA-256 of all ids and texts, in order of the ids."""
    digest = hashlib.sha256()
    for row in frame.sort(frame.columns[0]).iter_rows():
        for value in row:
            data = str(value).encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


def _files(path: Path) -> tuple[list[tuple[str, Path]], list[str]]:
    """Return the files to read with their ids, and notes about the others."""
    if path.is_file():
        if path.suffix.lower() not in READERS:
            expected = f"{', '.join((*READERS, *TABLES))}, or a folder"
            raise FormatError("unknown file extension", file=str(path), expected=expected)
        return [(path.name, path)], []
    if not path.is_dir():
        raise FormatError("no such file or folder", file=str(path), remedy="check the path")
    files: list[tuple[str, Path]] = []
    others: Counter[str] = Counter()
    for file in _walk(path):
        if file.suffix.lower() in READERS:
            files.append((file.relative_to(path).as_posix(), file))
        else:
            others[file.suffix.lower() or "no extension"] += 1
    kinds = format_list([f"{kind} {number:,}" for kind, number in others.most_common()], 5)
    left = [f"{path}: {format_count(others.total(), 'file')} of other kinds left out ({kinds})"] if others else []
    return files, left


def _walk(folder: Path) -> Iterator[Path]:
    """Yield files below a folder in order of their names, without hidden ones and without following links."""
    for each in sorted(folder.iterdir()):
        if each.name.startswith("."):
            continue
        if each.is_dir() and not each.is_symlink():
            yield from _walk(each)
        elif each.is_file():
            yield each


def _read_file(path: Path) -> PlainText:
    most = max_line()
    with open_file(path) as stream:
        data = stream.read(most + 1)
    if len(data) > most:
        raise FormatError(f"the file has more than {most:,} bytes", file=str(path), remedy="split it")
    try:
        plain = READERS[path.suffix.lower()](data)
    except UnicodeDecodeError as error:
        raise FormatError(f"byte {error.start:,} isn't UTF-8", file=str(path), remedy="save it as UTF-8") from error
    except FormatError as error:
        raise error.copy(file=str(path)) from error
    return plain if plain.title else plain._replace(title=path.stem.replace("-", " ").replace("_", " "))


def _join_problems(problems: list[FormatError], advice: str) -> FormatError:
    """Return one error for all files that can't be read."""
    first, *rest = problems
    words = [f"{error.file}: {error.found}" for error in rest[:MAX_LISTED]]
    words += [f"… and {len(rest) - MAX_LISTED:,} more"] if len(rest) > MAX_LISTED else []
    remedy = "; ".join(filter(None, (first.remedy or "fix these files", advice)))
    return first.copy(more=(*first.more, *words), remedy=remedy)
