"""Parquet, CSV and TSV with a header: any of our tables under our names or the usual ones."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import polars as pl

from ragworth.collection import Collection
from ragworth.errors import BadLine, FormatError, counted, quoted
from ragworth.formats.columns import bad_lines_error, skipped_note
from ragworth.formats.contract import Format, Loaded
from ragworth.formats.files import Path_, chunks, created, opened, stem
from ragworth.ordering import Ties
from ragworth.tables import Contexts, Judgments, Ratings, Table

T = TypeVar("T", bound=Table)
IDS = {"query", "passage", "subquestion", "system", "_id", "id"}


def read_parquet(path: Path_) -> pl.DataFrame:
    """A Parquet file as it is."""
    with opened(path):  # a missing file, or a folder, is reported like everywhere else
        pass
    try:
        return pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError, pl.exceptions.PanicException) as error:
        raise FormatError(
            f"cannot be read as Parquet ({str(error).splitlines()[0][:120]})", file=str(path), expected="a Parquet file"
        ) from error


def read_csv(path: Path_, *, skip_bad_lines: bool = False) -> tuple[pl.DataFrame, list[BadLine]]:
    """A CSV or TSV file with a header; the separator is the one the header has, ids stay text."""
    data = b"".join(chunks(path))
    header, _, _ = data.partition(b"\n")
    if not header.strip():
        raise FormatError("no rows: the file is empty", file=str(path), expected="a header line and rows")
    separator = max("\t,;", key=lambda sign: header.count(sign.encode()))
    try:
        names = [n.strip().strip('"') for n in header.decode("utf-8").rstrip("\r").split(separator)]
    except UnicodeDecodeError as error:
        raise FormatError("the header is not UTF-8 text", file=str(path), line=1, expected="column names") from error
    if len(set(names)) < len(names):
        raise FormatError(f"a column is there twice: {quoted(', '.join(names))}", file=str(path), line=1)
    frame, bad = _parsed(path, data, separator, names)
    if bad and not skip_bad_lines:
        raise bad_lines_error(path, bad, f"{len(names)} fields between {separator!r}, as in the header")
    return _typed(frame), bad


def _parsed(path: Path_, data: bytes, separator: str, names: list[str]) -> tuple[pl.DataFrame, list[BadLine]]:
    """All fields as text; rows of the wrong length are bad lines."""
    schema = dict.fromkeys(names, pl.String)
    try:
        frame = pl.read_csv(io.BytesIO(data), separator=separator, has_header=True, schema=schema, null_values=[""])
        if not frame.height or not bool(frame[names[-1]].is_null().all()):
            return frame, []
    except pl.exceptions.PolarsError:
        pass
    import csv

    rows: list[list[str | None]] = []
    bad: list[BadLine] = []
    text = io.StringIO(data.decode("utf-8", "replace"), newline="")
    reader = csv.reader(text, delimiter=separator)
    try:
        for i, row in enumerate(reader):
            if i == 0 or not row:
                continue
            if len(row) != len(names):
                found = f"{counted(len(row), 'field')} where {len(names)} belong in {quoted(separator.join(row), 60)}"
                bad.append(BadLine(reader.line_num, found))
            else:
                rows.append([cell or None for cell in row])
    except csv.Error as error:
        raise FormatError(f"cannot be read as CSV: {error}", file=str(path), line=reader.line_num) from error
    return pl.DataFrame(rows, schema=schema, orient="row"), bad


def _typed(frame: pl.DataFrame) -> pl.DataFrame:
    """Columns of numbers as numbers, unless their name says that they are ids."""
    columns: list[pl.Series] = []
    for column in frame:
        if column.name not in ("text", "status", "source", "aspect") and not _is_id(column.name):
            numbers = column.cast(pl.Float64, strict=False)
            if numbers.null_count() == column.null_count() and column.null_count() < len(column):
                columns.append(numbers)
                continue
        columns.append(column)
    return pl.DataFrame(columns)


def _is_id(name: str) -> bool:
    return name in IDS or name.endswith(("_id", "-id", "qid", "docno", "docid"))


def read_table(path: Path_, *, skip_bad_lines: bool = False) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """A table as it is, by its ending, and what was skipped."""
    if ".parquet" in Path(path).suffixes:
        return read_parquet(path), ()
    frame, bad = read_csv(path, skip_bad_lines=skip_bad_lines)
    return frame, skipped_note(path, bad)


def read_contexts(
    path: Path_, *, system: str | None = None, ties: Ties = "float64", skip_bad_lines: bool = False
) -> Contexts:
    """Contexts from a table with query, passage and score or rank; ``system`` where the table has none."""
    frame, notes = read_table(path, skip_bad_lines=skip_bad_lines)
    return Contexts(frame, system=system or stem(path), ties=ties, source=str(path), notes=notes)


def _reader(table: type[T]) -> Callable[..., T]:
    def read(path: Path_, *, skip_bad_lines: bool = False) -> T:
        frame, notes = read_table(path, skip_bad_lines=skip_bad_lines)
        if not frame.height:
            raise FormatError("no rows: the file is empty", file=str(path), expected=f"a {table.name} table")
        return table(frame, source=str(path), notes=notes)

    read.__doc__ = f"{table.name.capitalize()} from a table in long form."
    return read


def load_passages(path: Path_, *, skip_bad_lines: bool = False) -> Loaded:
    """Passage texts from a table with passage and text."""
    frame, notes = read_table(path, skip_bad_lines=skip_bad_lines)
    return Loaded(Collection.of(passages=frame, source=str(path), notes=notes))


def write_table(table: Table, path: Path_) -> None:
    """Write any table as Parquet, or as CSV or TSV with a header, by the file's ending."""
    endings = Path(path).suffixes
    with created(path) as stream:
        if ".parquet" in endings:
            table.frame.write_parquet(stream)
        else:
            table.frame.write_csv(stream, separator="\t" if ".tsv" in endings else ",")


FORMAT = Format(
    name="table",
    title="Parquet, CSV or TSV with a header",
    endings=(".parquet", ".csv", ".tsv"),
    contexts=read_contexts,
    judgments=_reader(Judgments),
    ratings=_reader(Ratings),
    load=load_passages,
    write_contexts=write_table,
    write_judgments=write_table,
    write_ratings=write_table,
)
