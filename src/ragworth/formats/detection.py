"""Find out the format of a file from its beginning, and advise how to read one that no format knows."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from ragworth.core.errors import FormatError, Hint, format_names
from ragworth.formats.catalog import FORMATS
from ragworth.formats.contract import FileSample, Format, Head
from ragworth.formats.files import PathOrStr
from ragworth.formats.heads import read_head
from ragworth.formats.log import NAMES
from ragworth.formats.logs.document_rows import find_rows
from ragworth.formats.logs.fields import FIELDS, FieldFinder, plain_name, quote_argument
from ragworth.formats.values import read_values


def detect(path: PathOrStr) -> Format:
    """Return the format of a file. An unknown one is an error that says how to map its columns."""
    if os.path.isdir(path):  # noqa: PTH112 (pathlib's raises on an invalid name)
        return FORMATS.get("beir")
    sample, found = inspect_file(path)
    if found is None:
        raise unknown_error(sample)
    return found


class InspectedFile(NamedTuple):
    """The beginning of a file, and its format; None if no format knows it."""

    sample: FileSample
    format: Format | None


def inspect_file(path: PathOrStr, columns: Mapping[str, str] | None = None) -> InspectedFile:
    """Sample a file and recognise its format. If it is one JSON object, its rows may be inside.

    ``columns`` are the user's names of fields.
    """
    sample = read_head(path)
    found = recognise(sample)
    if sample.kind != "json" or not isinstance(sample.document, dict):
        return InspectedFile(sample, found)
    if found is not None and not any(isinstance(value, dict | list) for value in _questions(sample.document)):
        return InspectedFile(sample, found)
    alone = sample.rows == (sample.document,)
    inner = find_rows(sample.document, known=found is not None, columns=columns) if alone else None
    if inner is None:
        return InspectedFile(sample, found)
    sample = Head(str(path), "json", document=inner.rows).of_rows(inner.rows)
    return InspectedFile(sample, recognise(sample))


def _questions(document: Mapping[str, Any]) -> list[Any]:
    """The fields of a document that may be its question."""
    return [value for name, value in document.items() if plain_name(name) in FIELDS["question"]]


def recognise(sample: FileSample) -> Format | None:
    """Return the first format that knows a file by its beginning."""
    return next((each for each in FORMATS if each.recognise is not None and each.recognise(sample)), None)


def unknown_error(sample: FileSample) -> FormatError:
    """The error for a file that no format knows: its columns, the closest format, and the mapping to paste."""
    if sample.kind == "lines":
        try:
            next(read_values(sample, [], skip=False, expected="a JSON object in each line"), None)
        except FormatError as error:
            return error
    if not sample.columns:
        return FormatError(
            "no known format begins like this",
            file=sample.path,
            expected="JSON, JSON lines, CSV, TSV or Parquet with named fields, or a TREC file",
            remedy="name the format before the path, such as trec:PATH",
        )
    ambiguous = _ambiguous(sample)
    if ambiguous is not None:
        return ambiguous
    return FormatError(
        f"no known format has these columns: {format_names(list(sample.columns), 16)}",
        file=sample.path,
        remedy=mapping_hint(_known_columns(sample)),
    )


def mapping_hint(mapping: dict[str, str]) -> Hint:
    """Advice to map columns, in words for each place."""
    pairs = " ".join(f"--map {quote_argument(f'{field}={column}')}" for field, column in mapping.items())
    lines = "".join(f"\n    {field} = {json.dumps(column, ensure_ascii=False)}" for field, column in mapping.items())
    shown = json.dumps(mapping, ensure_ascii=False)
    return Hint(
        f"say what the columns are (leave out what there is not): {pairs}",
        f"say what the columns are in ragworth.toml, such as:\n    [columns]{lines}",
        f"say what the columns are: columns={shown}",
        option="columns",
    )


def _ambiguous(sample: FileSample) -> FormatError | None:
    """The error for a question with an ``answer`` that may be a system's or an accepted one."""
    found = FieldFinder(NAMES).keys(dict.fromkeys(sample.columns))
    if not {"question", "answer"} <= set(found) or "accepted" in found:
        return None
    column = found["answer"]
    ours, theirs = mapping_hint({"answer": column}), mapping_hint({"accepted": column})
    return FormatError(
        f"{column!r} may be the answer of a system, or the accepted answer; the columns are "
        f"{format_names(list(sample.columns), 16)}",
        file=sample.path,
        remedy=Hint(
            f"--map answer={column} if a system wrote it, --map accepted={column} if it is the accepted answer",
            f"write under [columns] answer = {json.dumps(column)} if a system wrote it, or accepted = "
            f"{json.dumps(column)} if it is the accepted answer",
            f"{ours.python} if a system wrote it; {theirs.python} if it is the accepted answer",
            option="columns",
        ),
    )


def _known_columns(sample: FileSample) -> dict[str, str]:
    """A mapping to start from: columns of usual names, also inside objects, and gaps to fill in."""
    columns: dict[str, str] = {}
    for row in sample.rows:
        columns |= {name: name for name in row}
        inner = ((name, key) for name, value in row.items() if isinstance(value, dict) for key in value)
        columns |= {key: f"{name}.{key}" for name, key in inner if key not in row}
    found = FieldFinder(FIELDS).keys(dict.fromkeys(columns))
    wanted = {field: found.get(field, "COLUMN") for field in ("question", "answer", "passages", "accepted")}
    return {field: columns.get(name, name) for field, name in wanted.items()}
