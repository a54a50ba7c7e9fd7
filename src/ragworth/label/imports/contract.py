"""What an import format is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ragworth.core.errors import FormatError, quote_short
from ragworth.core.nested_text import parse_json
from ragworth.formats.files import read_chunks
from ragworth.label.labels import Labels
from ragworth.label.tasks.contract import LabelItem, LabelTask
from ragworth.label.tasks.fields import ChoiceField


class ImportedLabels(NamedTuple):
    """The items that have labels, the labels, and what users should know."""

    items: tuple[LabelItem, ...]
    labels: Labels
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class LabelImport:
    """``read`` gets a path, a task and the known items by id (none if the file's own are to be made)."""

    name: str
    title: str
    read: Callable[[Path, LabelTask, Mapping[str, LabelItem]], ImportedLabels]


def read_json_list(path: Path, expected: str) -> list[dict[str, Any]]:
    """A JSON document that is a list of objects."""
    try:
        rows = parse_json(b"".join(read_chunks(path)))
    except ValueError as error:
        raise FormatError(f"this is not JSON ({str(error)[:80]})", file=str(path), expected=expected) from error
    if not isinstance(rows, list) or not all(isinstance(each, dict) for each in rows):
        raise FormatError("this is not a list of objects", file=str(path), expected=expected)
    return rows


def read_choice(field: ChoiceField, given: object) -> str:
    """The value of a scale that another program wrote: the value itself, a number, or its label."""
    if isinstance(given, float) and given.is_integer():
        given = int(given)
    text = str(given).strip()
    for option in field.options:
        if text == option.value or text.casefold() == option.label.casefold():
            return option.value
    raise ValueError(f"{field.title}: {quote_short(text)} is none of {', '.join(each.value for each in field.options)}")


def known_item(item: LabelItem, items: Mapping[str, LabelItem], path: Path, task: LabelTask) -> LabelItem:
    """The known item with the same id, which must have the same texts; or, if none are known, the item itself."""
    if not items:
        if problems := task.item_problems(item):
            raise FormatError(f"the item {quote_short(item.id)}: {problems[0]}", file=str(path))
        return item
    if item.id not in items:
        raise FormatError(f"there is no item {quote_short(item.id)} in this project", file=str(path))
    mine = items[item.id]
    if changed := [name for name, text in item.parts.items() if mine.parts.get(name) != text]:
        raise FormatError(f"the {changed[0]} of the item {quote_short(item.id)} is another text", file=str(path))
    return mine
