"""From the database's rows to the tasks, items and labels that the rest of ragworth knows."""

from __future__ import annotations

from functools import lru_cache

from ragworth.label.site.models import Project, ProjectItem
from ragworth.label.tasks import LABEL_TASKS, LabelItem, LabelTask


def task_of(project: Project) -> LabelTask:
    """The task of a project."""
    return _load(project.task, project.definition)


@lru_cache(maxsize=64)
def _load(kind: str, definition: str) -> LabelTask:
    if definition:
        from ragworth.label.tasks.custom import parse_custom_task

        return parse_custom_task(definition)
    return LABEL_TASKS.get(kind)()


def label_item(row: ProjectItem, task: str, *, texts: bool = True) -> LabelItem:
    """A row as an item of a task, with or without its texts."""
    return LabelItem(
        id=row.key,
        task=task,
        parts=row.parts if texts else {},
        group=row.group,
        meta=row.meta,
        gold=row.gold,
        suggestion=row.suggestion,
        repeat_of=row.repeat_of,
        stratum=row.stratum,
        probability=row.probability,
    )
