"""Find out the format of a file from its beginning, and advise how to read one that no format knows."""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from ragworth.errors import FormatError, Hint, format_names
from ragworth.formats.catalog import FORMATS
from ragworth.formats.contract import FileSample, Format
from ragworth.formats.document_rows import find_rows
from ragworth.formats.fields import FIELDS, SYSTEM_COLUMNS, FieldFinder, plain_name, quote_argument
from ragworth.formats.files import PathOrStr
from ragworth.formats.log import NAMES
from ragworth.formats.log_files import check_first_line, sample_file, sample_rows
from ragworth.formats.unused_columns import holds_texts

WORDS = {
    "accepted": (
        *("gold", "truth", "reference", "expected", "target", "correct", "ideal", "label"),
        *("referenz", "muster", "erwartet", "attendu", "esperad", "参考", "标准", "正确", "期待", "正解"),
    ),
    "question": (
        *("question", "query", "prompt", "user", "input", "utterance"),
        *("frage", "pregunta", "domanda", "问题", "質問", "q"),
    ),
    "passages": (
        *("context", "passage", "chunk", "retriev", "doc", "source", "snippet", "evidence", "hits", "search"),
        *("kontext", "contesto", "上下文", "检索", "文脈"),
    ),
    "answer": (
        *("answer", "response", "output", "predict", "completion", "generat", "reply", "assistant"),
        *("antwort", "réponse", "reponse", "respuesta", "risposta", "答案", "回答", "model", "llm"),
    ),
}
"""Words in the names of columns that hint at a field, the most telling first."""


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
    sample = sample_file(path)
    found = recognise(sample)
    if sample.kind != "json" or not isinstance(sample.document, dict):
        return InspectedFile(sample, found)
    if found is not None and not any(isinstance(value, dict | list) for value in _questions(sample.document)):
        return InspectedFile(sample, found)
    alone = sample.rows == (sample.document,)
    inner = find_rows(sample.document, known=found is not None, columns=columns) if alone else None
    if inner is None:
        return InspectedFile(sample, found)
    sample = sample_rows(str(path), "json", inner.rows, document=inner.rows)
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
            check_first_line(sample.path)
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
    closest = _closest(sample)
    mapping = guess_columns(sample)
    return FormatError(
        f"no known format has these columns: {format_names(list(sample.columns), 16)}",
        file=sample.path,
        expected=f"{closest.title}, which is closest, has {format_names(list(closest.columns), 8)}" if closest else "",
        remedy=mapping_hint(mapping),
    )


def mapping_hint(mapping: dict[str, str]) -> Hint:
    """Advice to map columns, in words for each place."""
    pairs = " ".join(f"--map {quote_argument(f'{field}={column}')}" for field, column in mapping.items())
    lines = "".join(f"\n    {field} = {json.dumps(column, ensure_ascii=False)}" for field, column in mapping.items())
    shown = json.dumps(mapping, ensure_ascii=False)
    return Hint(
        f"say what the columns are, such as: {pairs}",
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


def _closest(sample: FileSample) -> Format | None:
    """The format of logs whose columns are most like those of a file."""
    names = [plain_name(column) for column in sample.columns]

    def likeness(each: Format) -> float:
        matches = (max((difflib.SequenceMatcher(None, a, b).ratio() for a in names), default=0.0) for b in each.columns)
        return sum(match for match in matches if match > 0.6) / max(len(each.columns), 4)

    logs = [each for each in FORMATS if each.load_rows is not None and each.columns]
    return max(logs, key=likeness, default=None)


def guess_columns(sample: FileSample) -> dict[str, str]:
    """A mapping that may be right: by the words in the names of columns, and by what is in them."""
    found = FieldFinder(NAMES).keys(dict.fromkeys(sample.columns))
    known = {field: column for field, column in found.items() if field in FIELDS}
    free = [
        column
        for column, values in _all_columns(sample).items()
        if column not in found.values() and holds_texts(column, values)
    ]
    systems = [column for column in free if plain_name(column).rpartition(".")[2] in SYSTEM_COLUMNS]
    free = [column for column in free if column not in systems]
    known = {**({"system": systems[0]} if systems else {}), **known}
    for field in ("accepted", "passages", "question", "answer"):
        if field not in known and (column := _guess_column(field, free, sample)):
            known[field] = column
            free.remove(column)
    wanted = [field for field in ("question", "answer", "passages", "accepted", "system") if field in known]
    mapping: dict[str, str] = {field: known[field] for field in wanted}
    if "question" not in mapping:
        mapping = {"question": "COLUMN", **mapping}
    if not {"answer", "passages"} & set(mapping):
        mapping["answer"] = "COLUMN"
    return mapping


def _all_columns(sample: FileSample) -> dict[str, list[Any]]:
    """The values of the columns, and of the fields of objects in them, which have names with dots."""
    columns: dict[str, list[Any]] = {}
    for column in sample.columns:
        for value in (row.get(column) for row in sample.rows):
            inner = value if isinstance(value, dict) else {}
            for name, each in {f"{column}.{key}": held for key, held in inner.items()}.items() or [(column, value)]:
                columns.setdefault(name, []).append(each)
    return columns


def _guess_column(field: str, free: list[str], sample: FileSample) -> str | None:
    for word in WORDS[field]:
        for column in free:
            parts = plain_name(column)
            if (word in parts.split("_")) if len(word) <= 2 and word.isascii() else (word in parts):
                return column
    first = sample.rows[0] if sample.rows else {}
    if field == "passages":
        return next((column for column in free if isinstance(first.get(column), list)), None)
    if field == "question":
        return next((column for column in free if str(first.get(column)).rstrip().endswith("?")), None)
    return None
