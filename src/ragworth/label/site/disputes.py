"""Items that somebody has to decide: people disagree on them, or skipped them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from django.db.models import Q, QuerySet

from ragworth.label.agreement import answer_distance
from ragworth.label.site.models import Assignment, LabelEvent, Project, ProjectItem
from ragworth.label.site.project_task import task_of


def next_undecided(project: Project, holding: Collection[int]) -> ProjectItem | None:
    """The next item to decide, besides some that the page has; those that have all their labels come first."""
    found = (queue.exclude(pk__in=holding).order_by("-distance", "pk").first() for queue in _queues(project))
    return next(filter(None, found), None)


def count_undecided(project: Project) -> int:
    return sum(queue.count() for queue in _queues(project))


def _queues(project: Project) -> Iterator[QuerySet[ProjectItem]]:
    """Items with all their labels, then those that lack some: somebody skipped them, or the project is closed."""
    waiting = ProjectItem.objects.filter(project=project, adjudicated=False)
    yield waiting.filter(disputed=True)
    unfinished = waiting.filter(disputed=False, open_slots__gt=0, gold__isnull=True, repeat_of="")
    skipped = Q(pk__in=_items_in(project, Assignment.SKIPPED))
    # Of an item without a number of labels, one is enough.
    unfinished = unfinished.exclude(slots=None, pk__in=_items_in(project, Assignment.DONE))
    yield unfinished.filter(skipped if project.is_open else skipped | Q(distance__gt=0))


def _items_in(project: Project, state: str) -> QuerySet[Assignment, Any]:
    return Assignment.objects.filter(project=project, state=state).values("item")


def update_dispute(row: ProjectItem) -> None:
    """Note how far the labels of an item are apart, and whether that is a dispute: once all its labels are there."""
    if not _has_several_labels(row):
        return
    task = task_of(row.project)
    chosen = [value[task.main.name] for value in counted_values(row) if task.main.name in value]
    distance = answer_distance(task, chosen)
    is_complete = row.slots is None or len(chosen) == row.slots
    disputed = distance > 0 and is_complete and not row.adjudicated
    if (disputed, distance) != (row.disputed, row.distance):
        ProjectItem.objects.filter(pk=row.pk).update(disputed=disputed, distance=distance)


def _has_several_labels(row: ProjectItem) -> bool:
    """Whether labels of an item may differ, or did before the last event. Items that check annotators don't count."""
    if row.gold is not None or row.repeat_of or row.slots == 1:
        return False
    if row.slots is None:
        return True
    return row.slots - row.open_slots > 1 or row.distance > 0


def counted_values(item: ProjectItem) -> list[dict[str, Any]]:
    """The current answers to one item, in the order of its slots."""
    holds = {"user__assignments__item": item, "user__assignments__state": Assignment.DONE}
    answers = item.events.filter(kind=LabelEvent.ANSWER, **holds).order_by("user__assignments__slot", "id")
    return list(dict(answers.values_list("user", "value")).values())


def skip_reasons(item: ProjectItem) -> list[str]:
    """Why people skipped an item, in the order in which they did."""
    holds = {"user__assignments__item": item, "user__assignments__state": Assignment.SKIPPED}
    skips = item.events.filter(kind=LabelEvent.SKIP, **holds).order_by("id")
    return [value["reason"] for value in dict(skips.values_list("user", "value")).values()]
