"""Find the rows of a log in one JSON object: columns of a data frame, or a list of rows under a usual name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ragworth.formats.logs.fields import FieldFinder
from ragworth.formats.logs.names import FIELDS, plain_name

Row = dict[str, Any]

LISTS_OF_ROWS = {
    *("data", "rows", "results", "records", "samples", "items", "log", "logs", "entries", "questions", "queries"),
    *("traces", "runs", "test_cases", "cases", "outputs", "responses", "answers", "predictions", "evaluations"),
    "interactions",
}


def find_rows(document: Any, *, known: bool, columns: Mapping[str, str] | None = None) -> list[Row] | None:
    """Return the rows in a JSON object; None if it is a record itself.

    ``known``: whether the object is of a known format; ``columns``: the user's names of its fields.
    """
    if not isinstance(document, Mapping):
        return None
    rows = split_rows(document) or column_rows(document)
    mapped = any(name.partition(".")[0] in document for name in (columns or {}).values())
    if rows is None and not known and not mapped:
        return _listed_rows(document)
    return rows


def split_rows(document: Mapping[str, Any]) -> list[Row] | None:
    """Return the rows of ``{"columns": […], "data": [[…], …]}``; None if it isn't that."""
    columns, data = document.get("columns") or (), document.get("data") or ()
    if _is_list_of(columns, str) and _is_list_of(data, list) and all(len(row) == len(columns) for row in data):
        return [dict(zip(columns, row, strict=True)) for row in data]
    return None


def column_rows(document: Mapping[str, Any]) -> list[Row] | None:
    """Return the rows of ``{column: [value, …]}``, or of ``{column: {row: value}}`` as pandas writes it.

    One column must have nothing but texts, because the fields of a single record may be lists, too.
    """
    columns = list(document.values())
    if columns and all(isinstance(each, Mapping) for each in columns):
        numbered = all(str(name).isdecimal() for name in columns[0])
        if not numbered or any(each.keys() != columns[0].keys() for each in columns):
            return None
        columns = [list(each.values()) for each in columns]
    if len(columns) < 2 or "ids" in document or not all(isinstance(each, list) for each in columns):
        return None
    if len({len(each) for each in columns}) > 1 or not any(_is_list_of(each, str) for each in columns):
        return None
    return [dict(zip(document, row, strict=True)) for row in zip(*columns, strict=True)]


def _listed_rows(document: Mapping[str, Any]) -> list[Row] | None:
    """The only list under a usual name, in an object that is no record itself: ``{"total": 2, "data": [row, …]}``."""
    lists = {name: value for name, value in document.items() if _is_list_of(value, Mapping)}
    others = {name: value for name, value in document.items() if name not in lists}
    is_record = {"question", "answer", "accepted"} & FieldFinder(FIELDS).keys(others).keys()
    named = [rows for name, rows in lists.items() if plain_name(name) in LISTS_OF_ROWS]
    if len(named) != 1 or len(lists) > 1 or is_record:
        return None
    return [dict(row) for row in named[0]]


def _is_list_of(value: Any, kind: type[Any]) -> bool:
    return isinstance(value, Sequence) and bool(value) and all(isinstance(each, kind) for each in value)
