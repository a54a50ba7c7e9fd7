"""Item files: one JSON object a line, as `LabelItem` has it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ragworth.core.errors import BadLine, FormatError, quote_short
from ragworth.core.nested_text import validate_value
from ragworth.formats.files import bad_lines_error, create_file
from ragworth.formats.values import read_objects
from ragworth.label.tasks.contract import LabelItem, LabelTask

EXPECTED = '{"id": "i1", "parts": {"question": "…", "passage": "…"}, "meta": {"query": "q1", "passage": "p7"}}'
MAX_TEXT_LENGTH = 1_000_000
"""Maximum length of a text of an item, in code points."""


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
    given = {name: value for name, value in row.items() if value is not None}
    item: LabelItem = validate_value(LabelItem, {"id": "", "task": task.kind, "parts": {}, **given})
    if item.task != task.kind:
        raise ValueError(f"an item of the task {quote_short(item.task)}, not {task.kind}")
    if not item.parts:
        raise ValueError("no parts")
    if long := [name for name, text in item.parts.items() if len(text) > MAX_TEXT_LENGTH]:
        raise ValueError(
            f"the text {long[0]!r} has {len(item.parts[long[0]]):,} characters; at most {MAX_TEXT_LENGTH:,}"
        )
    if item.probability is not None and not 0 < item.probability <= 1:
        raise ValueError(f"probability is {item.probability}, not more than 0 and at most 1")
    derived = task.make_item(item.meta or item.parts, item.parts)
    item = replace(item, id=item.id or derived.id, group=item.group or derived.group)
    if problems := task.item_problems(item):
        raise ValueError("; ".join(problems))
    return item
