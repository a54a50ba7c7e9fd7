"""An item and its form, for templates."""

from __future__ import annotations

from typing import Any

from ragworth.label.site.models import LabelEvent, Project, ProjectItem
from ragworth.label.site.project_task import task_of
from ragworth.label.tasks import ChoiceField, LabelTask, SpansField
from ragworth.label.tasks.fields import text_hash


def item_context(project: Project, item: ProjectItem, event: LabelEvent | None = None) -> dict[str, Any]:
    """What the template of an item needs. Hidden facts are in it only if the project isn't blind."""
    task = task_of(project)
    markable = {name for each in task.fields if isinstance(each, SpansField) for name in each.parts}
    parts = [
        {
            "name": part.name,
            "title": part.title,
            "role": part.role,
            "text": item.parts[part.name],
            "markable": part.name in markable,
        }
        for part in task.parts
        if part.name in item.parts
    ]
    value = (event.value if event is not None else None) or {}
    return {
        "project": project,
        "item": item,
        "parts": parts,
        "fields": [_field(each, value.get(each.name)) for each in task.fields],
        "comment": event.comment if event is not None else "",
        "meta": {} if project.blind else item.meta,
        "suggestion": describe_value(task, item.suggestion, item.parts) if project.show_suggestions else [],
        "facts": {
            "item": item.pk,
            "suggested": project.show_suggestions and item.suggestion is not None,
            "texts": {part["name"]: part["text"] for part in parts if part["markable"]},
            "hashes": {part["name"]: text_hash(part["text"]) for part in parts if part["markable"]},
            "spans": {each.name: value.get(each.name) or [] for each in task.fields if isinstance(each, SpansField)},
        },
    }


def _field(field: Any, value: Any) -> dict[str, Any]:
    made = {
        "type": field.type,
        "name": field.name,
        "title": field.title,
        "required": field.required,
        "help": field.help,
    }
    if isinstance(field, ChoiceField):
        made["options"] = [{"option": each, "checked": each.value == value} for each in field.options]
    return {**made, "value": value}


def describe_value(task: LabelTask, value: Any, parts: dict[str, str]) -> list[dict[str, Any]]:
    """An answer field by field, in words."""
    shown: list[dict[str, Any]] = []
    for field in task.fields:
        given = (value or {}).get(field.name)
        if given in (None, "", []):
            continue
        if isinstance(field, ChoiceField):
            known = {each.value: each.label for each in field.options}
            shown.append({"title": field.title, "text": known.get(given, str(given)), "spans": []})
        elif isinstance(field, SpansField):
            quotes = [parts.get(span["part"], "")[span["start"] : span["end"]] for span in given]
            shown.append({"title": field.title, "text": "", "spans": quotes})
        else:
            shown.append({"title": field.title, "text": str(given), "spans": []})
    return shown
