"""Labels from elsewhere, as events of a project."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from django.db import transaction

from ragworth.label.labels import Label, Labels
from ragworth.label.site.events import update_dispute
from ragworth.label.site.leases import take_slot
from ragworth.label.site.models import Assignment, LabelEvent, Project, ProjectItem, User
from ragworth.label.site.project_task import label_item, task_of
from ragworth.label.site.projects import add_person

NAMESPACE = uuid.UUID("8a6f0d6e-4a3c-4a43-9a53-0d2d7f0c7c11")
"""Of the ids of imported events, so that a second import of the same labels adds nothing."""


class ImportCounts(NamedTuple):
    """How many labels were added, were there already, and don't count because their items have K labels."""

    added: int
    known: int
    extra: int


@transaction.atomic
def store_labels(project: Project, labels: Labels, by: User) -> ImportCounts:
    """Add labels to a project. Annotators get accounts without a password. Nothing is added if one label is wrong."""
    rows = labels.rows
    items = {row.key: row for row in ProjectItem.objects.filter(project=project)}
    known = {key: label_item(row, project.task) for key, row in items.items()}
    labels.check(task_of(project), known, imported=True)
    people = {name: add_person(name, None, [project]) for name in _names(rows)}
    counts = {"added": 0, "known": 0, "extra": 0}
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
    extra = False
    if label.adjudicated:
        kind = LabelEvent.ADJUDICATE
        ProjectItem.objects.filter(pk=item.pk).update(adjudicated=True, disputed=False)
    else:
        kind = LabelEvent.SKIP if label.value is None else LabelEvent.ANSWER
        extra = not _fill_slot(project, item, user, kind)
    LabelEvent.objects.create(
        client_id=client_id,
        project=project,
        item=item,
        user=user,
        kind=kind,
        value={"reason": label.skipped} if label.value is None else dict(label.value),
        comment=label.comment,
        seen_suggestion=label.seen_suggestion,
        shown_at=_time(label.shown_at),
        answered_at=_time(label.answered_at),
        seconds=label.seconds,
    )
    return "extra" if extra else "added"


def _fill_slot(project: Project, item: ProjectItem, user: User, kind: str) -> bool:
    """Take a slot for an answer; False if the item has all its labels."""
    row = Assignment.objects.filter(item=item, user=user).first() or Assignment(project=project, item=item, user=user)
    if kind == LabelEvent.SKIP:
        row.state = Assignment.SKIPPED
    else:
        row.state = Assignment.DONE if take_slot(row, item) else Assignment.EXTRA
    row.expires_at = None
    row.save()
    return bool(row.state != Assignment.EXTRA)


def _time(text: str) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
