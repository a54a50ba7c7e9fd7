"""Find the rows of a log in one JSON object: columns of a data frame, or a list of rows somewhere in the object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ragworth.formats.logs.fields import FIELDS, FieldFinder, plain_name
from ragworth.formats.logs.search_hits import is_chroma

Row = dict[str, Any]

LISTS_OF_ROWS = {
    *("data", "rows", "results", "records", "samples", "items", "log", "logs", "entries", "questions", "queries"),
    *("traces", "runs", "test_cases", "cases", "outputs", "responses", "answers", "predictions", "evaluations"),
    "interactions",
}
"""Usual names of the list that is the log. If the only list has another, a note names it."""


class DocumentRows(NamedTuple):
    """The rows in a JSON object, and what users should know about how they were found."""

    rows: list[Row]
    note: str = ""


def find_rows(document: Any, *, known: bool, columns: Mapping[str, str] | None = None) -> DocumentRows | None:
    """The rows in a JSON object; None if it is a record itself.

    ``known``: whether the object is of a known format; ``columns``: the user's names of its fields.
    """
    if not isinstance(document, Mapping):
        return None
    rows = split_rows(document) or column_rows(document)
    if rows is not None or known or any(name.partition(".")[0] in document for name in (columns or {}).values()):
        return None if rows is None else DocumentRows(rows)
    return inner_rows(document)


def split_rows(document: Mapping[str, Any]) -> list[Row] | None:
    """The rows of ``{"columns": […], "data": [[…], …]}``; None if it isn't that."""
    columns, data = document.get("columns") or (), document.get("data") or ()
    if _is_list_of(columns, str) and _is_list_of(data, list) and all(len(row) == len(columns) for row in data):
        return [dict(zip(columns, row, strict=True)) for row in data]
    return None


def column_rows(document: Mapping[str, Any]) -> list[Row] | None:
    """The rows of ``{column: [value, …]}`` or ``{column: {row: value}}``; None if it isn't that.

    One column must have nothing but texts, because the fields of a single record may be lists, too.
    """
    columns = list(document.values())
    if len(columns) < 2 or is_chroma(document):
        return None
    if all(isinstance(each, Mapping) for each in columns):
        names = list(columns[0])
        numbered = all(str(name).isdecimal() for name in names)  # as pandas writes frames
        if any(each.keys() != columns[0].keys() for each in columns) or not (numbered or _has_question(document)):
            return None
        if {"text", "content", "value"} & columns[0].keys():  # objects with a text
            return None
        columns = [[each[name] for name in names] for each in columns]
    elif not all(isinstance(each, list) for each in columns) or len({len(each) for each in columns}) > 1:
        return None
    if not any(each and all(isinstance(value, str) for value in each) for each in columns):
        return None
    return [dict(zip(document, row, strict=True)) for row in zip(*columns, strict=True)]


def inner_rows(document: Mapping[str, Any]) -> DocumentRows | None:
    """The rows in an object that is no record itself; None if there are none, or several lists that may be them.

    Known are ``{system: [row, …]}``, ``{query: row}``, and the only list beside other fields, if
    none of these is one of a record: ``{"total": 2, "data": [row, …]}``.
    """
    lists = {str(name): value for name, value in document.items() if _is_list_of(value, Mapping)}
    if len(lists) == len(document) > 1 and all(_is_record(rows[0]) for rows in lists.values()):
        if not _share_questions(lists.values()):
            return None  # they may be splits of a dataset
        return DocumentRows([{"system": name, **row} for name, rows in lists.items() for row in rows])
    if len(document) > 1 and all(isinstance(each, Mapping) and _is_record(each) for each in document.values()):
        return DocumentRows([{"query_id": str(name), **row} for name, row in document.items()])
    others = {name: value for name, value in document.items() if name not in lists}
    if len(lists) != 1 or any(isinstance(value, list) and value for value in others.values()):
        return None
    if {"question", "answer", "accepted"} & FieldFinder(FIELDS).keys(others).keys():
        return None
    name, rows = next(iter(lists.items()))
    unusual = plain_name(name) not in LISTS_OF_ROWS
    return DocumentRows(
        [dict(row) for row in rows], f"{name!r} is read as the log: it is the only list of objects" if unusual else ""
    )


def _share_questions(lists: Iterable[Sequence[Mapping[str, Any]]]) -> bool:
    """Whether all lists of rows have a question in common, as answers of several systems do."""
    finder = FieldFinder(FIELDS)
    asked = [{str(finder.get(row, "question")) for row in rows} for rows in lists]
    return bool(set.intersection(*asked))


def _is_list_of(value: Any, kind: type[Any]) -> bool:
    return isinstance(value, Sequence) and bool(value) and all(isinstance(each, kind) for each in value)


def _has_question(row: Mapping[str, Any]) -> bool:
    return "question" in FieldFinder(FIELDS).keys(row)


def _is_record(row: Mapping[str, Any]) -> bool:
    """Whether an object has a question, and an answer or passages."""
    return _has_question(row) and bool({"answer", "passages"} & FieldFinder(FIELDS).keys(row).keys())
