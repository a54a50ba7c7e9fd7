"""``argilla``: records with responses, as Argilla 2 writes a dataset to JSON, or as Argilla 1 listed them.

Questions are named like fields, and Argilla's fields like texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ragworth.errors import FormatError, quote_short
from ragworth.label.imports.contract import ImportedLabels, LabelImport, known_item, read_choice, read_json_list
from ragworth.label.labels import Label, Labels
from ragworth.label.tasks.contract import LabelItem, LabelTask
from ragworth.label.tasks.fields import ChoiceField, SpansField, make_span

EXPECTED = '[{"id": …, "fields": {"question": "…"}, "responses": {"relevance": [{"value": …, "user_id": …}]}}]'
SKIPPED = "discarded in Argilla"


def read(path: Path, task: LabelTask, items: Mapping[str, LabelItem]) -> ImportedLabels:
    used: dict[str, LabelItem] = {}
    labels: list[Label] = []
    for number, row in enumerate(read_json_list(path, EXPECTED), 1):
        try:
            mine = _item(row, task)
            item = known_item(mine, items, path, task)
            for person, answers in _answers(row).items():
                labels.append(_label(person, answers, item, task))
                used[item.id] = item
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise FormatError(f"record {number}: {error}", file=str(path), expected=EXPECTED) from error
    return ImportedLabels(tuple(used.values()), Labels(labels, source=str(path)))


def _item(row: Mapping[str, Any], task: LabelTask) -> LabelItem:
    names = [part.name for part in task.parts]
    parts = {name: str(row["fields"][name]) for name in names if row["fields"].get(name) not in (None, "")}
    meta = {str(name): str(value) for name, value in (row.get("metadata") or {}).items()}
    made = task.make_item(meta or parts, parts)
    return LabelItem(str(row.get("id") or made.id), task.kind, parts, made.group, meta)


def _answers(row: Mapping[str, Any]) -> dict[str, dict[str, Any] | None]:
    """Each person's values by question; None if they discarded the record."""
    found: dict[str, dict[str, Any] | None] = {}
    given = row.get("responses") or {}
    if isinstance(given, list):
        for response in given:
            person, status = _person(response), response.get("status", "submitted")
            values = {name: inside["value"] for name, inside in (response.get("values") or {}).items()}
            if status != "draft":
                found[person] = None if status == "discarded" else values
        return found
    for name, responses in given.items():
        for response in responses:
            mine = found.setdefault(_person(response), {})
            assert mine is not None
            if name in mine:
                raise ValueError(f"two responses of {_person(response)!r} to {name!r}")
            mine[name] = response["value"]
    return found


def _person(response: Mapping[str, Any]) -> str:
    if response.get("user_id") in (None, ""):
        raise ValueError("a response doesn't say who it is by")
    return str(response["user_id"])


def _label(person: str, answers: Mapping[str, Any] | None, item: LabelItem, task: LabelTask) -> Label:
    if answers is None:
        return Label(person, item.id, None, skipped=SKIPPED)
    value: dict[str, Any] = {}
    for name, given in answers.items():
        for field_name, part in _field_names(name, task):
            field = next(each for each in task.fields if each.name == field_name)
            if isinstance(field, SpansField):
                ends = [(int(span["start"]), int(span["end"])) for span in given]
                value.setdefault(field.name, []).extend(make_span(part, item.parts[part], *pair) for pair in ends)
            else:
                value[field.name] = read_choice(field, given) if isinstance(field, ChoiceField) else str(given)
    return Label(person, item.id, value)


def _field_names(question: str, task: LabelTask) -> Iterator[tuple[str, str]]:
    """The field of a question, and the text that it highlights."""
    for field in task.fields:
        parts = field.parts if isinstance(field, SpansField) else ("",)
        for part in parts:
            if question == (field.name if len(parts) == 1 else f"{field.name}-{part}"):
                yield field.name, part
                return
    raise ValueError(f"there is no field {quote_short(question)}")


IMPORT = LabelImport("argilla", "Argilla's records with responses (JSON)", read)
