"""What people do, as events; and the current labels, as a view on them.

A person's label of an item is their last event on it: an answer, a skip, or nothing after an undo. Nothing is ever
changed or deleted.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Exists, F, Max, QuerySet

from ragworth.label.labels import ADJUDICATED, Label
from ragworth.label.site.disputes import update_dispute
from ragworth.label.site.leases import free_slot, lock_person, renew, take_slot
from ragworth.label.site.models import Assignment, LabelEvent, Project, ProjectItem, User
from ragworth.label.site.project_task import label_item, task_of
from ragworth.label.site.transactions import writing

OWN_KINDS = (LabelEvent.ANSWER, LabelEvent.SKIP, LabelEvent.UNDO)


class RefusedError(Exception):
    """A submission that can't be stored. ``problems`` says why, in words for the annotator."""

    def __init__(self, problems: list[str], status: int = 422) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems
        self.status = status


@dataclass(frozen=True)
class Submission:
    """An answer or a skip, as the page sends it. The value of a skip is ``{"reason": …}``."""

    client_id: uuid.UUID
    kind: str
    value: dict[str, Any]
    comment: str = ""
    shown_at: datetime | None = None
    answered_at: datetime | None = None
    seconds: float | None = None
    seen_suggestion: bool = False


@dataclass(frozen=True)
class Receipt:
    """What became of a submission.

    ``repeated``: it had been stored before. ``replaced``: it replaces an earlier answer of the same person. ``extra``:
    the lease had expired and others have filled all slots, so the answer is kept but doesn't count.
    """

    event: LabelEvent
    repeated: bool = False
    replaced: bool = False
    extra: bool = False


@writing()
def submit(user: User, project: Project, item: int, submission: Submission) -> Receipt:
    """Store an answer or a skip, once."""
    lock_person(user)
    held = _find_held(user, project, item, submission.client_id)
    if (held is None or held.is_repeated) and (earlier := _find_repeated(user, submission.client_id)):
        return Receipt(earlier, repeated=True)
    if held is None or held.state == Assignment.RESERVED:
        raise RefusedError(["This item is not one of yours."], 404)
    row = held.item
    row.project = project
    _check(project, row, submission)
    replaced = held.state in (Assignment.DONE, Assignment.SKIPPED, Assignment.EXTRA)
    if submission.kind == LabelEvent.SKIP:
        free_slot(held)
        held.state = Assignment.SKIPPED
    else:
        held.state = Assignment.DONE if take_slot(held, row) else Assignment.EXTRA
    held.expires_at = None
    held.save()
    event = LabelEvent.objects.create(
        client_id=submission.client_id,
        project=project,
        item=row,
        user=user,
        kind=submission.kind,
        value=submission.value,
        comment=submission.comment,
        shown_at=submission.shown_at,
        answered_at=submission.answered_at,
        seconds=submission.seconds,
        seen_suggestion=submission.seen_suggestion or _has_seen_suggestion(user, project, row),
    )
    update_dispute(row)
    return Receipt(event, replaced=replaced, extra=held.state == Assignment.EXTRA)


def _find_held(user: User, project: Project, item: int, client_id: uuid.UUID) -> Any:
    """A person's hold of an item, both locked; ``is_repeated`` says whether there is an event of this id."""
    repeated = Exists(LabelEvent.objects.filter(client_id=client_id))
    held = Assignment.objects.select_for_update(of=("self", "item")).select_related("item")
    return held.filter(item=item, user=user, project=project).annotate(is_repeated=repeated).first()


@writing()
def undo(user: User, project: Project, client_id: uuid.UUID) -> Assignment | None:
    """Take back a person's last answer or skip; they get the item again. None if there is nothing to undo."""
    lock_person(user)
    if earlier := _find_repeated(user, client_id):
        return Assignment.objects.get(item=earlier.item, user=user)
    last = last_answer(user, project)
    if last is None:
        return None
    held = _find_held(user, project, last.item_id, client_id)
    LabelEvent.objects.create(client_id=client_id, project=project, item=held.item, user=user, kind=LabelEvent.UNDO)
    # They keep their slot, or take one if one is open.
    take_slot(held, held.item)
    renew(held, project)
    update_dispute(held.item)
    return held


def last_answer(user: User, project: Project) -> LabelEvent | None:
    """A person's last answer or skip that they haven't taken back."""
    current = current_events(project).filter(user=user).exclude(kind=LabelEvent.UNDO)
    return current.select_related("item").order_by("-id").first()


def current_events(project: Project) -> QuerySet[LabelEvent]:
    """Every person's last event on every item."""
    own = LabelEvent.objects.filter(project=project, kind__in=OWN_KINDS)
    last = own.values("item", "user").annotate(last=Max("id")).values("last")
    return LabelEvent.objects.filter(pk__in=last)


@writing()
def adjudicate(user: User, project: Project, item: int, submission: Submission) -> Receipt:
    """Store a decision about a disputed item."""
    lock_person(user)
    if earlier := _find_repeated(user, submission.client_id):
        return Receipt(earlier, repeated=True)
    row = ProjectItem.objects.select_for_update().filter(pk=item, project=project).first()
    if row is None:
        raise RefusedError(["There is no such item."], 404)
    _check(project, row, submission)
    event = LabelEvent.objects.create(
        client_id=submission.client_id,
        project=project,
        item=row,
        user=user,
        kind=LabelEvent.ADJUDICATE,
        value=submission.value,
        comment=submission.comment,
        shown_at=submission.shown_at,
        answered_at=submission.answered_at,
        seconds=submission.seconds,
    )
    replaced = row.adjudicated
    ProjectItem.objects.filter(pk=row.pk).update(adjudicated=True, disputed=False)
    return Receipt(event, replaced=replaced)


def current_labels(project: Project, *, extra: bool = False) -> Iterator[Label]:
    """The labels of a project as they are now, people's first and decisions after them.

    ``extra``: with answers that came after their lease had expired and others had filled all slots.
    """
    surplus = Assignment.objects.filter(project=project, state=Assignment.EXTRA).values_list("item_id", "user_id")
    left_out = set() if extra else set(surplus)
    events = current_events(project).exclude(kind=LabelEvent.UNDO)
    for event in _named(events).iterator(2000):
        if (event.item_id, event.user_id) not in left_out:
            yield _label(event, event.user_name)
    decided = LabelEvent.objects.filter(project=project, kind=LabelEvent.ADJUDICATE)
    last = decided.values("item").annotate(last=Max("id")).values("last")
    for event in _named(LabelEvent.objects.filter(pk__in=last)).iterator(2000):
        yield _label(event, ADJUDICATED)


def _named(events: QuerySet[LabelEvent]) -> QuerySet[LabelEvent]:
    """Events with the names of their items and people, without the items' texts."""
    return events.annotate(item_key=F("item__key"), user_name=F("user__name")).order_by("id")


def _label(event: Any, annotator: str) -> Label:
    skipped = event.kind == LabelEvent.SKIP
    return Label(
        annotator=annotator,
        item=event.item_key,
        value=None if skipped else event.value,
        shown_at=event.shown_at.isoformat() if event.shown_at else "",
        answered_at=(event.answered_at or event.received_at).isoformat(),
        seconds=event.seconds,
        skipped=event.value["reason"] if skipped else "",
        comment=event.comment,
        seen_suggestion=event.seen_suggestion,
    )


def _find_repeated(user: User, client_id: uuid.UUID) -> LabelEvent | None:
    """The event that was stored under this id before; somebody else's id is refused."""
    event = LabelEvent.objects.filter(client_id=client_id).select_related("item").first()
    if event is not None and event.user_id != user.pk:
        raise RefusedError(["This answer has the id of somebody else's. Reload the page."], 409)
    return event


def _has_seen_suggestion(user: User, project: Project, row: ProjectItem) -> bool:
    """Whether the item is shown with a suggestion, or was when the person answered it before."""
    if row.suggestion is None:
        return False
    return project.show_suggestions or row.events.filter(user=user, seen_suggestion=True).exists()


def _check(project: Project, row: ProjectItem, submission: Submission) -> None:
    if submission.kind == LabelEvent.SKIP:
        if not submission.value.get("reason", "").strip():
            raise RefusedError(["Say why you skip this item."])
        return
    if problems := task_of(project).validate(submission.value, label_item(row, project.task)):
        raise RefusedError(problems)
