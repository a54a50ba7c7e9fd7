"""Labels from elsewhere, as events of a project."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from ragworth.label.labels import Label, Labels
from ragworth.label.site.disputes import update_dispute
from ragworth.label.site.events import OWN_KINDS
from ragworth.label.site.leases import free_slot, lock_person, take_slot
from ragworth.label.site.models import Assignment, LabelEvent, Project, ProjectItem, User
from ragworth.label.site.project_task import label_item, task_of
from ragworth.label.site.projects import add_person
from ragworth.label.site.transactions import writing

NAMESPACE = uuid.UUID("8a6f0d6e-4a3c-4a43-9a53-0d2d7f0c7c11")
"""Of the ids of imported events, so that a second import of the same labels adds nothing."""


class ImportCounts(NamedTuple):
    """What became of imported labels.

    ``added``, ``known``: there already. ``extra``: stored, and not counted because their items have K labels.
    ``outdated``: left out, because the same person has said something else later, or nobody knows which came first.
    """

    added: int
    known: int
    extra: int
    outdated: int


@writing()
def store_labels(project: Project, labels: Labels, by: User) -> ImportCounts:
    """Add labels to a project. Annotators get accounts without a password. Nothing is added if one label is wrong."""
    rows = labels.rows
    people = {name: add_person(name, None, [project]) for name in _names(rows)}
    for user in sorted(people.values(), key=lambda user: user.pk):
        lock_person(user)
    locked = ProjectItem.objects.select_for_update().filter(project=project).order_by("pk")
    items = {row.key: row for row in locked}
    known = {key: label_item(row, project.task) for key, row in items.items()}
    labels.check(task_of(project), known, imported=True)
    counts = dict.fromkeys(ImportCounts._fields, 0)
    for label in rows:
        user = by if label.adjudicated else people[label.annotator]
        counts[_store(project, items[label.item], user, label)] += 1
    for key in {label.item for label in rows}:
        update_dispute(ProjectItem.objects.select_related("project").get(pk=items[key].pk))
    return ImportCounts(**counts)


def _names(rows: Sequence[Label]) -> list[str]:
    return list(dict.fromkeys(label.annotator for label in rows if not label.adjudicated))


def _store(project: Project, item: ProjectItem, user: User, label: Label) -> str:
    facts = (project.slug, label.annotator, label.item, label.value, label.skipped, label.answered_at)
    client_id = uuid.uuid5(NAMESPACE, repr(facts))
    if LabelEvent.objects.filter(client_id=client_id).exists():
        return "known"
    kind = LabelEvent.SKIP if label.value is None else LabelEvent.ANSWER
    kind = LabelEvent.ADJUDICATE if label.adjudicated else kind
    value = {"reason": label.skipped} if label.value is None else dict(label.value)
    last = _last_event(item, user, kind)
    if last is not None and (last.kind, last.value) == (kind, value):
        return "known"
    if last is not None and not _is_later(label, last):
        return "outdated"
    extra = False
    if label.adjudicated:
        ProjectItem.objects.filter(pk=item.pk).update(adjudicated=True, disputed=False)
    else:
        extra = not _fill_slot(project, item, user, kind)
    LabelEvent.objects.create(
        client_id=client_id,
        project=project,
        item=item,
        user=user,
        kind=kind,
        value=value,
        comment=label.comment,
        seen_suggestion=label.seen_suggestion,
        shown_at=_time(label.shown_at),
        answered_at=_time(label.answered_at),
        seconds=label.seconds,
    )
    return "extra" if extra else "added"


def _last_event(item: ProjectItem, user: User, kind: str) -> LabelEvent | None:
    """What a person did last with an item, or what was decided about it."""
    if kind == LabelEvent.ADJUDICATE:
        return item.events.filter(kind=kind).order_by("-id").first()
    return item.events.filter(user=user, kind__in=OWN_KINDS).order_by("-id").first()


def _is_later(label: Label, last: LabelEvent) -> bool:
    answered = _time(label.answered_at)
    return answered is not None and answered > (last.answered_at or last.received_at)


def _fill_slot(project: Project, item: ProjectItem, user: User, kind: str) -> bool:
    """Take a slot for an answer; False if the item has all its labels."""
    row = Assignment.objects.filter(item=item, user=user).first() or Assignment(project=project, item=item, user=user)
    if kind == LabelEvent.SKIP:
        item.open_slots += row.slot is not None
        free_slot(row)
        row.state = Assignment.SKIPPED
    else:
        row.state = Assignment.DONE if take_slot(row, item) else Assignment.EXTRA
    row.expires_at = None
    row.save()
    return bool(row.state != Assignment.EXTRA)


def _time(text: str) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
