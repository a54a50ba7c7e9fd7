"""Item files: one JSON object a line, as `LabelItem` has it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from ragworth.errors import BadLine, FormatError, format_list, quote_short
from ragworth.formats.columns import bad_lines_error
from ragworth.formats.files import create_file
from ragworth.formats.jsonl import read_objects
from ragworth.label.tasks.contract import LabelItem, LabelTask

EXPECTED = '{"id": "i1", "parts": {"question": "…", "passage": "…"}, "meta": {"query": "q1", "passage": "p7"}}'
MAX_TEXT_LENGTH = 1_000_000
"""Maximum length of a text of an item, in code points."""
KEYS = tuple(field.name for field in fields(LabelItem))


def write_items(items: Iterable[LabelItem], path: str | Path) -> int:
    """Write items, and return how many."""
    count = 0
    with create_file(path) as file:
        for item in items:
            row = {name: value for name, value in asdict(item).items() if value not in (None, "", {})}
            file.write((json.dumps(row, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass"))
            count += 1
    return count


def read_items(path: str | Path, task: LabelTask) -> list[LabelItem]:
    """Read the items of a task; everything that is wrong is reported together."""
    wrong: list[BadLine] = []
    found: dict[str, LabelItem] = {}
    for number, row in read_objects(path, [], skip=False, expected=EXPECTED):
        try:
            item = parse_item(row, task)
        except ValueError as error:
            wrong.append(BadLine(number, str(error)))
            continue
        if item.id in found:
            wrong.append(BadLine(number, f"a second item {quote_short(item.id)}"))
        found[item.id] = item
    lost = [item for item in found.values() if item.repeat_of and item.repeat_of not in found]
    if wrong:
        raise bad_lines_error(path, wrong, EXPECTED)
    if lost:
        raise FormatError(
            f"the item {quote_short(lost[0].id)} repeats {quote_short(lost[0].repeat_of)}, which isn't there",
            file=str(path),
        )
    if not found:
        raise FormatError("there are no items", file=str(path), expected=EXPECTED)
    return list(found.values())


def parse_item(row: Mapping[str, Any], task: LabelTask) -> LabelItem:
    """An item from JSON; a `ValueError` says what is wrong. Without an id, it is derived from ``meta`` or the texts."""
    if unknown := [name for name in row if name not in KEYS]:
        raise ValueError(f"an item has no {format_list([quote_short(name) for name in unknown])}")
    if row.get("task", task.kind) != task.kind:
        raise ValueError(f"an item of the task {quote_short(row['task'])}, not {task.kind}")
    parts, meta = _texts(row, "parts"), _texts(row, "meta")
    if not parts:
        raise ValueError("no parts")
    if long := [name for name, text in parts.items() if len(text) > MAX_TEXT_LENGTH]:
        raise ValueError(f"the text {long[0]!r} has {len(parts[long[0]]):,} characters; at most {MAX_TEXT_LENGTH:,}")
    texts = {name: row.get(name) or "" for name in ("id", "group", "repeat_of", "stratum")}
    if odd := [name for name, text in texts.items() if not isinstance(text, str)]:
        raise ValueError(f"{odd[0]} is {quote_short(texts[odd[0]])}, not a text")
    probability = row.get("probability")
    if probability is not None and not _is_probability(probability):
        raise ValueError(f"probability is {quote_short(probability)}, not more than 0 and at most 1")
    derived = task.make_item(meta or parts, parts)
    item = LabelItem(
        texts["id"] or derived.id,
        task.kind,
        parts,
        texts["group"] or derived.group,
        meta,
        row.get("gold"),
        row.get("suggestion"),
        texts["repeat_of"],
        texts["stratum"],
        None if probability is None else float(probability),
    )
    if problems := task.item_problems(item):
        raise ValueError("; ".join(problems))
    return item


def _texts(row: Mapping[str, Any], name: str) -> dict[str, str]:
    given = row.get(name) or {}
    if not isinstance(given, dict) or not all(isinstance(text, str) for text in given.values()):
        raise ValueError(f"{name} is {quote_short(given)}, not an object of texts")
    return given


def _is_probability(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and math.isfinite(value) and 0 < value <= 1  # type: ignore[arg-type,operator]
