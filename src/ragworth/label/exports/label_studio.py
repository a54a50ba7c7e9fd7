"""``label-studio``: tasks with annotations in Label Studio's JSON, and a labelling configuration that fits them.

Label Studio runs in a browser, so its offsets count UTF-16 code units.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

from ragworth.formats.files import create_file
from ragworth.label.dataset import LabelledData
from ragworth.label.exports.contract import LabelExport, write_json
from ragworth.label.labels import Label
from ragworth.label.tasks.contract import LabelItem, LabelTask
from ragworth.label.tasks.fields import ChoiceField, LabelField, SpansField, span_text
from ragworth.label.utf16 import to_utf16

ITEM, META = "ragworth_item", "ragworth_meta"
"""Keys of a task's data that name the item."""


def write(data: LabelledData, folder: Path) -> list[Path]:
    by_item: dict[str, list[Label]] = {}
    for label in data.labels:
        by_item.setdefault(label.item, []).append(label)
    tasks = [
        _task(number, item, by_item.get(item.id, []), data.task) for number, item in enumerate(data.items.values(), 1)
    ]
    config = folder / "label-studio-config.xml"
    with create_file(config) as file:
        file.write(labelling_config(data.task).encode())
    return [write_json(tasks, folder / "label-studio.json"), config]


def _task(number: int, item: LabelItem, labels: list[Label], task: LabelTask) -> dict[str, Any]:
    facts = {**item.parts, ITEM: item.id, META: dict(item.meta)}
    annotations = [_annotation(label, item, task) for label in labels]
    return {"id": number, "data": facts, "annotations": annotations}


def _annotation(label: Label, item: LabelItem, task: LabelTask) -> dict[str, Any]:
    found: dict[str, Any] = {
        "completed_by": {"email": label.annotator},
        "result": list(_results(label.value or {}, item, task)),
        "was_cancelled": label.value is None,
        "ground_truth": label.adjudicated,
    }
    if label.answered_at:
        found["created_at"] = label.answered_at
    if label.seconds is not None:
        found["lead_time"] = label.seconds
    return found


def _results(value: Mapping[str, Any], item: LabelItem, task: LabelTask) -> Iterator[dict[str, Any]]:
    for field in task.fields:
        given = value.get(field.name)
        if given in (None, "", []):
            continue
        if isinstance(field, SpansField):
            for span in given:
                text = item.parts[span["part"]]
                ends = {end: to_utf16(text, span[end]) for end in ("start", "end")}
                marked = {**ends, "text": span_text(span, item.parts), "labels": [field.name]}
                name = field.name if len(field.parts) == 1 else f"{field.name}-{span['part']}"
                yield {"from_name": name, "to_name": span["part"], "type": "labels", "value": marked}
        else:
            kind, inside = ("choices", "choices") if isinstance(field, ChoiceField) else ("textarea", "text")
            yield {"from_name": field.name, "to_name": task.parts[0].name, "type": kind, "value": {inside: [given]}}


def labelling_config(task: LabelTask) -> str:
    """Label Studio's configuration of a task."""
    lines = ["<View>"]
    for part in task.parts:
        lines += [f"  <Header value={quoteattr(part.title)}/>"]
        lines += [f"  <Text name={quoteattr(part.name)} value={quoteattr('$' + part.name)}/>"]
    for field in task.fields:
        lines += _control(field, task)
    return "\n".join([*lines, "</View>", ""])


def _control(field: LabelField, task: LabelTask) -> Iterator[str]:
    name, shown = quoteattr(field.name), quoteattr(task.parts[0].name)
    if isinstance(field, ChoiceField):
        required = str(field.required).lower()
        yield f'  <Choices name={name} toName={shown} choice="single" required="{required}">'
        for option in field.options:
            hotkey = quoteattr(option.key)
            yield f"    <Choice value={quoteattr(option.value)} hint={quoteattr(option.label)} hotkey={hotkey}/>"
        yield "  </Choices>"
    elif isinstance(field, SpansField):
        for part in field.parts:
            control = field.name if len(field.parts) == 1 else f"{field.name}-{part}"
            yield f"  <Labels name={quoteattr(control)} toName={quoteattr(part)}>"
            yield f"    <Label value={name}/>"
            yield "  </Labels>"
    else:
        yield f"  <TextArea name={name} toName={shown} placeholder={quoteattr(field.title)}/>"


TITLE = "Label Studio's tasks with annotations (JSON), and its configuration"
EXPORT = LabelExport("label-studio", TITLE, write, has_items=True)
