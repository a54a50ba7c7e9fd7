"""The rows of a RAG log: in lines, in tables, and inside one JSON object."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from ragworth.core.errors import BadLine, FormatError
from ragworth.formats.csv import read_text_csv
from ragworth.formats.files import PathOrStr, bad_lines_error, read_parquet, source_name, suffix_of
from ragworth.formats.heads import read_document, read_head
from ragworth.formats.logs.names import FIELDS, plain_name
from ragworth.formats.values import read_values

MAX_REPORTED = 1000
"""Bad rows after which a file isn't read to its end."""

ROWS_KEYS = ("data", "rows", "results", "records", "samples", "items", "examples", "traces")
"""Names of the list of rows in an object that is no record itself."""

Row = Mapping[str, Any]
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
    lines: bool = False,
    find_rows: Callable[[Row], list[Any] | None] = lambda document: None,
) -> LogRows:
    """Open a log. Lines that are not JSON are errors, or go to ``bad``.

    ``lines``: whether it has JSON lines, whatever it is called. ``find_rows`` finds the rows in one JSON object.
    """
    source, head = source_name(path), read_head(path)
    if lines:
        return LogRows(source, "line", read_values(head, bad, skip=skip, expected=expected))
    if head.kind == "table" and suffix_of(path) != ".parquet":
        rows = read_text_csv(head)
        bad += rows.bad
        if bad and not skip:
            raise bad_lines_error(path, bad, expected)
        return LogRows(source, "line", zip(rows.line.tolist(), rows.frame.iter_rows(named=True), strict=True), True)
    if suffix_of(path) == ".parquet":
        return LogRows(source, "row", enumerate(read_parquet(path).iter_rows(named=True), 1), True)
    if head.kind in ("lines", "text"):
        return LogRows(source, "line", read_values(head, bad, skip=skip, expected=expected))
    document = read_document(head)
    items = document[0] if len(document) == 1 and isinstance(document[0], list) else document
    inner = find_rows(document[0]) if len(document) == 1 and isinstance(document[0], dict) else None
    return LogRows(source, "record", enumerate(items if inner is None else inner, 1))


def reject_row(rows: LogRows, bad: list[BadLine], place: int, problem: str, *, skip: bool, expected: str) -> None:
    """Note a row that can't be used; without ``skip``, raise an error once there are many."""
    bad.append(BadLine(place, problem))
    if not skip and len(bad) >= MAX_REPORTED:
        raise bad_rows_error(rows, bad, expected)


def bad_rows_error(rows: LogRows, bad: list[BadLine], expected: str) -> FormatError:
    """Return the error for all rows that can't be used."""
    bad = sorted(bad, key=lambda each: each.line)
    error = bad_lines_error(rows.source, bad, expected)
    if rows.unit == "line":
        return error
    more = tuple(text.replace("line", rows.unit, 1) for text in error.more)
    return error.copy(found=f"{rows.unit} {bad[0].line}: {bad[0].found}", line=None, more=more)


def find_rows(document: Any, *, known: bool, columns: Mapping[str, str] | None = None) -> list[Any] | None:
    """Return the rows in a JSON object; None if it is a record itself.

    ``known``: whether the object is of a known format; ``columns``: the user's names of its fields.
    """
    if not isinstance(document, Mapping):
        return None
    rows = _column_rows(document) or _named_rows(document)
    mapped = any(name.partition(".")[0] in document for name in (columns or {}).values())
    if rows is not None or known or mapped or _has_question(document):
        return rows
    lists = {name: value for name, value in document.items() if _is_list_of(value, Mapping)}
    return next(iter(lists.values())) if len(lists) == 1 and next(iter(lists)) in ROWS_KEYS else None


def _column_rows(document: Row) -> list[Any] | None:
    """Return the rows of an object of columns, as MLflow and pandas write them.

    These are ``{"columns": […], "data": [[…], …]}``, ``{column: {number: value}}`` and ``{column: [value, …]}``. In the
    last, one column must have nothing but texts, because the fields of a single record may be lists, too.
    """
    names, data = document.get("columns") or (), document.get("data") or ()
    if _is_list_of(names, str) and _is_list_of(data, list) and all(len(row) == len(names) for row in data):
        return [dict(zip(names, row, strict=True)) for row in data]
    columns = list(document.values())
    if _is_list_of(columns, Mapping) and all(str(name).isdecimal() for name in columns[0]):
        columns = [list(each.values()) for each in columns if each.keys() == columns[0].keys()]
    sizes = {len(each) if isinstance(each, list) else -1 for each in columns}
    if len(document) != len(columns) or len(columns) < 2 or len(sizes) > 1 or -1 in sizes or "ids" in document:
        return None
    if not any(_is_list_of(each, str) for each in columns):
        return None
    return [dict(zip(document, row, strict=True)) for row in zip(*columns, strict=True)]


def _named_rows(document: Row) -> list[Any] | None:
    """Return the rows of ``{id: row}``, if each of them has a question."""
    if len(document) < 2 or not all(isinstance(row, Mapping) and _has_question(row) for row in document.values()):
        return None
    return [{"id": name, **row} for name, row in document.items()]


def _has_question(row: Row) -> bool:
    return any(plain_name(name) in FIELDS["question"] for name in row)


def _is_list_of(value: Any, kind: type[Any]) -> bool:
    return isinstance(value, Sequence) and bool(value) and all(isinstance(each, kind) for each in value)
