"""Join numbered columns of a log, such as ``context_1`` and ``context_2``, in one list."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from ragworth.errors import format_names
from ragworth.formats.fields import FIELDS, FieldFinder, plain_name

JOINED = {"passages": "passages", "accepted": "accepted answers"}
"""Fields that may be spread over numbered columns, and what notes call them."""


def join_numbered(row: Mapping[str, Any], finder: FieldFinder) -> Mapping[str, Any]:
    """The row with the values of numbered columns in a list, if no other column has the field."""
    for field, title in JOINED.items():
        if field in finder.keys(row) or not (columns := _numbered(tuple(row), field)):
            continue
        values = [row[column] for column in columns if row[column] not in (None, "")]
        row = {name: value for name, value in row.items() if name not in columns} | {FIELDS[field][0]: values}
        note = f"{format_names(list(columns), 4)} are read as {title}"
        if note not in finder.notes:
            finder.notes.append(note)
    return row


@lru_cache(maxsize=1024)
def _numbered(columns: tuple[str, ...], field: str) -> tuple[str, ...]:
    """The columns that have a name of the field and a number, in order. ``answer_1`` may be a choice or a repeat."""
    found: dict[str, dict[int, str]] = {}
    for column in columns:
        end = re.fullmatch(r"(\w+?)_?(\d+)", plain_name(column))
        if end and end[1] != "answer" and {end[1], f"{end[1]}s"} & set(FIELDS[field]):
            found.setdefault(end[1], {})[int(end[2])] = column
    most = max(found.values(), key=len, default={})
    return tuple(most[number] for number in sorted(most)) if len(most) > 1 else ()
