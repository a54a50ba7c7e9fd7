"""Tell the format of a file, and what it holds, from its head; and advise how to read one that no format knows.

Formats of tools have signs of their own. Those of ours (`general` 1), logs with usual names (`general` 2) and tables
of grades (`general` 3) only count where no less general format knows the file. So the order in the catalogue means
nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from ragworth.core.errors import FormatError, Hint, format_names
from ragworth.formats.catalog import FORMATS
from ragworth.formats.contract import Contents, Format, Head
from ragworth.formats.logs.engine import NAMES
from ragworth.formats.logs.fields import FieldFinder
from ragworth.formats.logs.names import FIELDS, mapping_hint, plain_name
from ragworth.formats.logs.rows import find_rows
from ragworth.formats.values import read_values


class Detected(NamedTuple):
    """The head of a file, with the rows inside a JSON object; the file's format, None if no format knows it; and what
    it holds.
    """

    head: Head
    format: Format | None
    contents: list[Contents]


def examine(head: Head, columns: Mapping[str, str] | None = None) -> Detected:
    """Find the format of a file, unless the user named it. If it is one JSON object, its rows may be inside.

    ``columns`` are the user's names of fields. Two formats that know a file are an error.
    """
    if head.format:
        form = FORMATS.get(head.format)
        return Detected(head, form, form.inspect(head) if form.inspect is not None else [])
    detected = recognise(head)
    document = head.document
    if head.kind != "json" or not isinstance(document, dict) or head.rows != (document,):
        return detected
    questions = [value for name, value in document.items() if plain_name(name) in FIELDS["question"]]
    known = detected.format is not None
    if known and not any(isinstance(value, dict | list) for value in questions):
        return detected
    inner = find_rows(document, known=known, columns=columns)
    return detected if inner is None else recognise(replace(head, document=inner).of_rows(inner))


def recognise(head: Head) -> Detected:
    """Ask all formats what a file holds; the least general one that knows it counts."""
    known = [(each, contents) for each in FORMATS if each.inspect is not None and (contents := each.inspect(head))]
    least = min((each.general for each, _ in known), default=0)
    best = {each.name: Detected(head, each, contents) for each, contents in known if each.general == least}
    if len(best) > 1:
        names = sorted(best)
        prefixed = [f"{name}:{head.path or 'FILE'}" for name in names]
        raise FormatError(
            f"it may be of the format {' or '.join(names)}",
            file=head.path,
            remedy=f"name the format before the path: {' or '.join(prefixed)}",
        )
    return next(iter(best.values()), Detected(head, None, []))


def unknown_error(head: Head) -> FormatError:
    """The error for a file that no format knows: its columns, the closest format, and the mapping to paste."""
    if head.kind == "lines":
        try:
            next(read_values(head, [], skip=False, expected="a JSON object in each line"), None)
        except FormatError as error:
            return error
    if head.columns and not head.rows:
        return FormatError("it has a header and no rows", file=head.path, expected="a row for each answer or passage")
    if not head.columns:
        return FormatError(
            "it is empty" if head.content == b"" else "no known format begins like this",
            file=head.path,
            expected="JSON, JSON lines, CSV, TSV or Parquet with named fields, or a TREC file",
            remedy="name the format before the path, such as trec:PATH",
        )
    if (ambiguous := _ambiguous(head)) is not None:
        return ambiguous
    mapping = _known_columns(head)
    command, _, python, _ = mapping_hint((mapping, ""))
    keys = "".join(f"\n    {field} = {json.dumps(column, ensure_ascii=False)}" for field, column in mapping.items())
    return FormatError(
        f"no known format has these columns: {format_names(list(head.columns), 16)}",
        file=head.path,
        remedy=Hint(
            f"say what the columns are (leave out what there is not): {command}",
            f"say what the columns are in ragworth.toml, such as:\n    [columns]{keys}",
            f"say what the columns are: {python}",
            option="columns",
        ),
    )


def _ambiguous(head: Head) -> FormatError | None:
    """The error for a question with an ``answer`` that may be a system's or an accepted one."""
    found = FieldFinder(NAMES).layout(dict.fromkeys(head.columns)).columns
    if not {"question", "answer"} <= set(found) or "accepted" in found:
        return None
    column = found["answer"]
    return FormatError(
        f"{column!r} may be the answer of a system, or the accepted answer; the columns are "
        f"{format_names(list(head.columns), 16)}",
        file=head.path,
        remedy=mapping_hint(
            ({"answer": column}, " if a system wrote it; "), ({"accepted": column}, " if it is the accepted answer")
        ),
    )


def _known_columns(head: Head) -> dict[str, str]:
    """A mapping to start from: columns of usual names, also inside objects, and gaps to fill in."""
    columns: dict[str, str] = {}
    for row in head.rows:
        columns |= {name: name for name in row}
        inner = ((name, key) for name, value in row.items() if isinstance(value, dict) for key in value)
        columns |= {key: f"{name}.{key}" for name, key in inner if key not in row}
    found = FieldFinder(FIELDS).layout(dict.fromkeys(columns)).columns
    wanted = {field: found.get(field, "COLUMN") for field in ("question", "answer", "passages", "accepted")}
    return {field: columns.get(name, name) for field, name in wanted.items()}
