"""A task that follows another one opens group by group, for each person who has finished the first one there."""

from __future__ import annotations

from collections import defaultdict

from ragworth.label.site.candidates import free_items
from ragworth.label.site.models import Assignment, LabelEvent, Project, ProjectItem, User
from ragworth.label.site.project_task import label_item, task_of
from ragworth.label.tasks import LabelItem, Value


def open_groups(user: User, project: Project) -> int:
    """Reserve the items that have opened for a person since the last time, and count them."""
    ready = _finished_groups(user, project.after)
    opened = set(Assignment.objects.filter(project=project, user=user).values_list("item__group", flat=True).distinct())
    return sum(_open_group(user, project, group, ready[group]) for group in sorted(ready.keys() - opened))


def _finished_groups(user: User, first: Project) -> dict[str, list[tuple[LabelItem, Value]]]:
    """Groups in which nothing of the first task is left for a person, with their answers."""
    done = Assignment.objects.filter(project=first, user=user, state=Assignment.DONE)
    groups = list(done.values_list("item__group", flat=True).distinct())
    unfinished = set(
        free_items(user, first).filter(group__in=groups, repeat_of="").values_list("group", flat=True).distinct()
    )
    held = Assignment.objects.filter(project=first, user=user, state=Assignment.LEASED)
    unfinished |= set(held.values_list("item__group", flat=True))
    answers: dict[str, list[tuple[LabelItem, Value]]] = defaultdict(list)
    for row in done.filter(item__group__in=set(groups) - unfinished).select_related("item").order_by("item__position"):
        last = LabelEvent.objects.filter(item=row.item, user=user, kind=LabelEvent.ANSWER).order_by("-id").first()
        if last is not None and not row.item.repeat_of:
            answers[row.item.group].append((label_item(row.item, first.task), last.value))
    return answers


def _open_group(user: User, project: Project, group: str, earlier: list[tuple[LabelItem, Value]]) -> int:
    rows = {row.key: row for row in ProjectItem.objects.filter(project=project, group=group).order_by("position")}
    candidates = [label_item(row, project.task) for row in rows.values()]
    chosen = task_of(project).open_items(user.name, candidates, earlier, project.seed)
    Assignment.objects.bulk_create(
        Assignment(project=project, item=rows[item.id], user=user, state=Assignment.RESERVED) for item in chosen
    )
    return len(chosen)
