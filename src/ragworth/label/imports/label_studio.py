"""``label-studio``: Label Studio's JSON export: controls are named like fields, and data keys like texts.

Offsets in UTF-16 code units become code points, and the highlighted text is compared with the text it is from.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ragworth.core.errors import FormatError, quote_short
from ragworth.label.exports.label_studio import ITEM, META
from ragworth.label.imports.contract import ImportedLabels, LabelImport, known_item, read_choice, read_json_list
from ragworth.label.labels import Label, Labels
from ragworth.label.tasks.contract import LabelItem, LabelTask
from ragworth.label.tasks.fields import ChoiceField, SpansField, make_span, span_text
from ragworth.label.utf16 import from_utf16

EXPECTED = '[{"data": {"question": "…"}, "annotations": [{"completed_by": …, "result": […]}]}]'
SKIPPED = "skipped in Label Studio"


def read(path: Path, task: LabelTask, items: Mapping[str, LabelItem]) -> ImportedLabels:
    used: dict[str, LabelItem] = {}
    labels: list[Label] = []
    for number, row in enumerate(read_json_list(path, EXPECTED), 1):
        data, annotations = row.get("data"), row.get("annotations", [])
        if not isinstance(data, dict) or not isinstance(annotations, list):
            raise FormatError(f"task {number} has no data or annotations", file=str(path), expected=EXPECTED)
        item = known_item(_item(data, task), items, path, task)
        for annotation in annotations:
            try:
                labels.append(_label(annotation, item, task))
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                raise FormatError(f"task {number}: {error}", file=str(path), expected=EXPECTED) from error
            used[item.id] = item
    return ImportedLabels(tuple(used.values()), Labels(labels, source=str(path)))


def _item(data: Mapping[str, Any], task: LabelTask) -> LabelItem:
    parts = {part.name: str(data[part.name]) for part in task.parts if data.get(part.name) not in (None, "")}
    given = data.get(META)
    meta = {str(name): str(text) for name, text in given.items()} if isinstance(given, dict) else {}
    made = task.make_item(meta or parts, parts)
    return LabelItem(str(data.get(ITEM) or made.id), task.kind, parts, made.group, meta)


def _label(annotation: Mapping[str, Any], item: LabelItem, task: LabelTask) -> Label:
    who = annotation.get("completed_by")
    annotator = who.get("email") or who.get("username") or who.get("id") if isinstance(who, dict) else who
    if annotator in (None, ""):
        raise ValueError("an annotation doesn't say who it is by")
    seconds = annotation.get("lead_time")
    facts: dict[str, Any] = {"seconds": None if seconds is None else float(seconds)}
    facts["answered_at"] = str(annotation.get("created_at") or "")
    if annotation.get("was_cancelled"):
        return Label(str(annotator), item.id, None, skipped=SKIPPED, **facts)
    value: dict[str, Any] = {}
    for result in annotation.get("result", []):
        _add(result, value, item, task)
    return Label(str(annotator), item.id, value, **facts)


def _add(result: Mapping[str, Any], value: dict[str, Any], item: LabelItem, task: LabelTask) -> None:
    """Add what one result says."""
    name, part, given = result["from_name"], result["to_name"], result["value"]
    names = (name, name.removesuffix(f"-{part}"))
    field = next((each for each in task.fields if each.name in names), None)
    if field is None:
        raise ValueError(f"there is no field {quote_short(name)}")
    if isinstance(field, SpansField):
        value.setdefault(field.name, []).append(_span(given, part, item))
    elif isinstance(field, ChoiceField):
        chosen = given.get("choices") or [given[each] for each in ("rating", "number") if each in given]
        if len(chosen) != 1:
            raise ValueError(f"{field.title} has {len(chosen)} values")
        value[field.name] = read_choice(field, chosen[0])
    else:
        text = given["text"]
        value[field.name] = "\n".join(text) if isinstance(text, list) else str(text)


def _span(given: Mapping[str, Any], part: str, item: LabelItem) -> dict[str, Any]:
    text = item.parts[part]
    start, end = (from_utf16(text, int(given[name])) for name in ("start", "end"))
    if start is None or end is None:
        raise ValueError(f"a highlight from {given['start']} to {given['end']} is not in the {part}")
    span = make_span(part, text, start, end)
    if "text" in given and given["text"] != span_text(span, item.parts):
        raise ValueError(f"a highlight of {quote_short(given['text'], 40)} is {quote_short(text[start:end], 40)} here")
    return span


IMPORT = LabelImport("label-studio", "Label Studio's export (JSON)", read)
