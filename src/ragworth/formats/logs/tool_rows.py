"""Make records of rows that evaluation tools and services wrote, once a reader has found the fields in them.

A file may have the answers of several systems; if it has only one, the system is named after the file, as in other
logs. The same question asked again is a repeat. A request that failed has no answer and no grades, even if the tool
counted it as wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from ragworth.core.errors import format_names
from ragworth.formats.grades import Grade
from ragworth.formats.log_files import LogRows
from ragworth.formats.logs.engine import Parser, Reject
from ragworth.formats.logs.fields import FieldFinder
from ragworth.formats.logs.missing_answers import ERROR
from ragworth.formats.logs.records import LogRecord
from ragworth.formats.logs.rows import read_record
from ragworth.formats.logs.values import as_row
from ragworth.formats.values import WrongLineError


class ToolRow(NamedTuple):
    """What a reader found in a row.

    Attributes
    ----------
    fields: values by the names of the format, and whatever else a user may map.
    status: ``error`` if there is no answer because the request failed, or ``truncated``.
    """

    place: int
    fields: Mapping[str, Any]
    system: str | None = None
    grades: Mapping[str, Grade | list[Grade]] = {}
    status: str = ""


ReadRow = Callable[[Mapping[str, Any], int, FieldFinder], Iterable[ToolRow]]
"""Finds what is in a row at a place; there may be several answers in it."""


def tool_parser(
    read: ReadRow, name_systems: Callable[[list[ToolRow], FieldFinder], list[ToolRow]] | None = None
) -> Parser:
    """A parser that makes records of what ``read`` finds in each row.

    ``name_systems`` gives systems and questions their names, where these depend on all rows.
    """

    def parse(rows: LogRows, finder: FieldFinder, reject: Reject) -> Iterator[LogRecord]:
        parsed_rows: list[ToolRow] = []
        for place, value in rows.values:
            try:
                row = as_row(value)
                if row is None:
                    raise WrongLineError("not an object")
                given = _mapped_values(row, finder)
                parsed_rows += [each._replace(fields={**given, **each.fields}) for each in read(row, place, finder)]
            except WrongLineError as error:
                reject(place, str(error))
        yield from tool_records(name_systems(parsed_rows, finder) if name_systems else parsed_rows, finder, reject)

    return parse


def _mapped_values(row: Mapping[str, Any], finder: FieldFinder) -> dict[str, Any]:
    """The values of a row that the user's mapping leads to."""
    names = {name for column in finder.columns.values() for name in (column, column.partition(".")[0])}
    return {name: row[name] for name in names if name in row}


def tool_records(rows: list[ToolRow], finder: FieldFinder, reject: Reject) -> Iterator[LogRecord]:
    """Make a record of each row."""
    several = len({row.system for row in rows if row.system}) > 1
    asked: Counter[tuple[str | None, str]] = Counter()
    for row in rows:
        try:
            record = read_record(row.fields, finder, row.place)
        except WrongLineError as error:
            reject(row.place, str(error))
            continue
        failed = row.status == ERROR
        record = replace(
            record,
            system=record.system or (row.system if several else None),
            answer=None if failed else record.answer,
            status=row.status if failed or record.answer is not None else "",
            outcomes=record.outcomes if failed else {**row.grades, **record.outcomes},
        )
        key = record.system, record.query or record.question or ""
        yield record if "repeat" in finder.columns else replace(record, repeat=asked[key])
        asked[key] += 1


def find_field(fields: Mapping[str, Any], field: str, names: tuple[str, ...]) -> Any:
    """The value of the first of the names that an object has, in any spelling; None if it has none."""
    return FieldFinder({field: names}).get(fields, field)


def unknown_question(fields: Iterable[Any], path: str) -> WrongLineError:
    """The error for a row in which any of several fields may be the question."""
    names = [str(name) for name in fields]
    there = f"there are {format_names(names)}" if names else "it is empty"
    return WrongLineError(f"no question in {path!r}; {there}; say which it is: --map question={path}.NAME")
