"""``argilla``: records with responses, as Argilla 2 writes a dataset to JSON.

A skipped item has no response there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ragworth.label.dataset import LabelledData
from ragworth.label.exports.contract import LabelExport, write_json
from ragworth.label.labels import Label
from ragworth.label.tasks.contract import LabelItem, LabelTask
from ragworth.label.tasks.fields import LabelField, SpansField


def write(data: LabelledData, folder: Path) -> list[Path]:
    by_item: dict[str, list[Label]] = {}
    for label in data.labels.answers:
        by_item.setdefault(label.item, []).append(label)
    records = [_record(item, by_item.get(item.id, []), data.task) for item in data.items.values()]
    return [write_json(records, folder / "argilla.json")]


def _record(item: LabelItem, labels: list[Label], task: LabelTask) -> dict[str, Any]:
    responses: dict[str, list[dict[str, Any]]] = {}
    for label in labels:
        for field in task.fields:
            for name, given in question_values(field, (label.value or {}).get(field.name)).items():
                responses.setdefault(name, []).append({"value": given, "user_id": label.annotator})
    suggestions = {
        name: {"value": given, "score": None, "agent": None}
        for field in task.fields
        for name, given in question_values(field, (item.suggestion or {}).get(field.name)).items()
    }
    return {
        "id": item.id,
        "fields": dict(item.parts),
        "metadata": dict(item.meta),
        "suggestions": suggestions,
        "responses": responses,
        "vectors": {},
        "status": "completed" if labels else "pending",
    }


def question_values(field: LabelField, given: Any) -> dict[str, Any]:
    """Argilla's questions for a field, with their values: highlights have a question for each text."""
    if given in (None, "", []):
        return {}
    if not isinstance(field, SpansField):
        return {field.name: given}
    found: dict[str, Any] = {}
    for span in given:
        name = field.name if len(field.parts) == 1 else f"{field.name}-{span['part']}"
        found.setdefault(name, []).append({"start": span["start"], "end": span["end"], "label": field.name})
    return found


EXPORT = LabelExport("argilla", "Argilla's records with responses (JSON)", write, has_items=True)
