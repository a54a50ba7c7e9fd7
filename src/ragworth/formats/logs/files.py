"""Read the rows of a RAG log from JSON, JSON lines, CSV, TSV or Parquet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from ragworth.core.errors import BadLine, FormatError
from ragworth.formats.csv import encoding_error, read_text_csv
from ragworth.formats.files import PathOrStr, bad_lines_error, check_bad_lines, source_name, suffix_of
from ragworth.formats.heads import read_document, read_head
from ragworth.formats.tables import read_parquet
from ragworth.formats.values import read_values

MAX_REPORTED = 1000
"""Bad rows after which a file isn't read to its end."""

Unit = Literal["line", "row", "record"]


class LogRows(NamedTuple):
    """Rows of a log with their places, and what the places count. Cells of tables may hold lists as text."""

    source: str
    unit: Unit
    values: Iterable[tuple[int, Any]]
    cells: bool = False


def read_log(
    path: PathOrStr,
    bad: list[BadLine],
    *,
    skip: bool,
    expected: str,
    find_rows: Callable[[Mapping[str, Any]], list[Any] | None] = lambda document: None,
) -> LogRows:
    """Open a log. Lines that are not JSON are errors, or go to ``bad``.

    ``find_rows`` finds the rows in a file that is one JSON object.
    """
    source, head = source_name(path), read_head(path)
    if suffix_of(path) in (".csv", ".tsv"):
        rows = read_text_csv(head)
        bad += rows.bad
        if bad and not skip:
            raise bad_lines_error(path, bad, expected)
        return LogRows(source, "line", zip(rows.line.tolist(), rows.frame.iter_rows(named=True), strict=True), True)
    if suffix_of(path) == ".parquet":
        return LogRows(source, "row", enumerate(read_parquet(path).iter_rows(named=True), 1), True)
    if head.kind in ("lines", "text"):
        values = read_values(head, bad, skip=skip, expected=expected)
        return LogRows(source, "line", values)
    document = read_document(head)
    items = document[0] if len(document) == 1 and isinstance(document[0], list) else document
    found = find_rows(document[0]) if len(document) == 1 and isinstance(document[0], dict) else None
    return LogRows(source, "record", enumerate(items if found is None else found, 1))


def reject_row(rows: LogRows, bad: list[BadLine], place: int, problem: str, *, skip: bool, expected: str) -> None:
    """Note a row that can't be used; without ``skip``, raise an error once there are many."""
    bad.append(BadLine(place, problem))
    check_bad_lines(rows.source, bad)
    if not skip and len(bad) >= MAX_REPORTED:
        raise bad_rows_error(rows, bad, expected)


def bad_rows_error(rows: LogRows, bad: list[BadLine], expected: str) -> FormatError:
    """The error for all rows that can't be used."""
    bad = sorted(bad, key=lambda each: each.line)
    error = encoding_error(rows.source, bad) or bad_lines_error(rows.source, bad, expected)
    if rows.unit == "line":
        return error
    more = tuple(text.replace("line", rows.unit, 1) for text in error.more)
    return error.copy(found=f"{rows.unit} {bad[0].line}: {bad[0].found}", line=None, more=more)


def unpack_rows(rows: LogRows, unpack: Callable[[Any], Iterable[Any] | None]) -> LogRows:
    """Take the rows out of documents that hold several."""

    def inner() -> Iterator[tuple[int, Any]]:
        for place, value in rows.values:
            inside = unpack(value) if isinstance(value, Mapping) else None
            if inside is None:
                yield place, value
            elif rows.unit == "line":
                yield from ((place, each) for each in inside)
            else:
                yield from enumerate(inside, 1)

    return rows._replace(values=inner())
