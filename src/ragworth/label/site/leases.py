"""Which item a person gets next.

Each person sees a project in an order of their own, drawn from the project's seed. Taking an item leases one of its K
slots for some minutes; the page renews it while the person works on the item. An unanswered lease expires, and
somebody else gets the slot when no other item is left for them.

Everything that changes rows locks the person first, then waits for at most the items that the request is about, and
then takes only rows that nobody else has locked, so that two requests can't block each other. On SQLite a transaction
locks the whole database.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

from django.db import connection
from django.db.models import F
from django.utils import timezone

from ragworth.label.site.candidates import find_free, find_repeat, has_repeats
from ragworth.label.site.models import Assignment, Project, ProjectItem, User
from ragworth.label.site.openings import open_groups
from ragworth.label.site.transactions import locks_rows, writing

UNLIMITED = 1_000_000
"""Open slots of an item that everyone labels: gold items, repeats, and those of a task that follows another."""
REPEAT_GAP = 10
"""Answers between an item and its repeat, unless nothing else is left."""


@writing()
def next_item(
    user: User, project: Project, holding: Collection[int] = (), after: int | None = None
) -> Assignment | None:
    """The next item for a person, leased; None if there is none left.

    ``holding``: ids of the items that the page has already. Leases that the page doesn't hold come first, such as after
    a reload. ``after``: position of the item after which to look in the person's order; otherwise that of their last.
    """
    lock_person(user)
    is_waiting, most = _standing(user, project, holding)
    if is_waiting and (waiting := _waiting(user, project, holding)):
        return waiting
    if not project.is_open or (most is not None and count_items(user, project) >= most):
        return None
    if project.after_id is not None:
        return _reserved(user, project)
    item = _choose(user, project, after)
    if item is None and release_expired(project):
        item = _choose(user, project, after)
    return _lease(item, user, project) if item is not None else None


def _choose(user: User, project: Project, after: int | None) -> ProjectItem | None:
    """The best item for a person that nobody else is just taking, locked."""
    repeating = has_repeats(project)
    item = find_repeat(user, project, REPEAT_GAP) if repeating and _is_turn_of_repeat(user, project) else None
    item = item or find_free(user, project, after)
    return find_repeat(user, project, 0) if item is None and repeating else item


def _is_turn_of_repeat(user: User, project: Project) -> bool:
    done = Assignment.objects.filter(project=project, user=user, state=Assignment.DONE).count()
    return bool(done % REPEAT_GAP == REPEAT_GAP - 1)


def _lease(item: ProjectItem, user: User, project: Project) -> Assignment:
    """Give a person an item that is locked and has an open slot."""
    held = list(item.assignments.all())
    mine = (row for row in held if row.user_id == user.pk)
    row = next(mine, None) or Assignment(project=project, item=item, user=user)
    row.is_new = row.pk is None
    take_slot(row, item, held)
    renew(row, project)
    return row


def _reserved(user: User, project: Project) -> Assignment | None:
    """An item of a task that follows another one, opened for this person."""
    mine = Assignment.objects.filter(project=project, user=user, state=Assignment.RESERVED).order_by("id")
    if not mine.exists():
        open_groups(user, project)
    for row in mine.select_related("item"):
        item = ProjectItem.objects.select_for_update().get(pk=row.item_id)
        if take_slot(row, item):
            renew(row, project)
            return row
    return None


def _standing(user: User, project: Project, holding: Collection[int]) -> tuple[bool, int | None]:
    """Whether a person has leases that the page doesn't have, and how many items they may have at most.

    Every answer needs it, and Django takes 2 ms to write what a database runs in 0.1 ms, so the statement is written
    here.
    """
    lease = "SELECT 1 FROM label_assignment WHERE project_id = %s AND user_id = %s AND state = %s"
    others = f" AND item_id NOT IN ({', '.join(['%s'] * len(holding))})" if holding else ""
    most = "SELECT most FROM label_membership WHERE project_id = %s AND user_id = %s"
    values = [project.pk, user.pk, Assignment.LEASED, *holding, project.pk, user.pk]
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT EXISTS ({lease}{others}), ({most})", values)
        is_waiting, limit = cursor.fetchone()
    return bool(is_waiting), limit


def _waiting(user: User, project: Project, holding: Collection[int]) -> Assignment | None:
    """A lease that the page doesn't have yet, unless somebody else's request is just ending it."""
    mine = Assignment.objects.filter(project=project, user=user, state=Assignment.LEASED).exclude(item__in=holding)
    free = mine.select_for_update(of=("self",), skip_locked=True).select_related("item")
    row = free.order_by("expires_at", "id").first()
    if row is not None:
        renew(row, project)
    return row


@writing()
def hold(user: User, project: Project, items: Collection[int]) -> list[int]:
    """Renew a person's leases of items, also expired ones if a slot is open; return the items that others have now."""
    lock_person(user)
    states = (Assignment.LEASED, Assignment.EXPIRED)
    lost = []
    for item in ProjectItem.objects.select_for_update().filter(pk__in=items, project=project).order_by("pk"):
        row = Assignment.objects.filter(item=item, user=user, state__in=states).first()
        if row is not None and take_slot(row, item):
            renew(row, project)
        elif row is not None:
            lost.append(item.pk)
    return lost


def renew(row: Assignment, project: Project) -> None:
    """Lease an item from now on."""
    row.state = Assignment.LEASED
    row.expires_at = timezone.now() + timedelta(minutes=project.lease_minutes)
    row.save()


def release_expired(project: Project) -> int:
    """Give back the slots of leases that have expired, and count them."""
    late = Assignment.objects.filter(project=project, state=Assignment.LEASED, expires_at__lt=timezone.now())
    free = late.select_for_update(of=("self", "item"), skip_locked=True).select_related("item")
    expired = list(free.defer("item__parts"))
    for row in expired:
        free_slot(row)
        row.state, row.expires_at = Assignment.EXPIRED, None
        row.save()
    return len(expired)


def lock_person(user: User) -> None:
    """Let a person's requests wait for each other. On SQLite the transaction itself does that."""
    if locks_rows():
        with connection.cursor() as cursor:
            cursor.execute("SELECT FROM label_user WHERE id = %s FOR NO KEY UPDATE", [user.pk])


def take_slot(assignment: Assignment, item: ProjectItem, held: Collection[Assignment] | None = None) -> bool:
    """Take a slot of an item, whose row is locked, for a person who has none; False if all are taken.

    ``held``: all assignments of the item, if the caller has read them.
    """
    if assignment.slot is not None:
        return True
    if item.open_slots <= 0:
        return False
    taken = {row.slot for row in (item.assignments.all() if held is None else held) if row.slot is not None}
    if item.slots is None:
        assignment.slot = max(taken, default=0) + 1
    else:
        assignment.slot = next(number for number in range(1, item.slots + 1) if number not in taken)
    ProjectItem.objects.filter(pk=item.pk).update(open_slots=F("open_slots") - 1)
    item.open_slots -= 1
    return True


def free_slot(assignment: Assignment) -> None:
    """Give back the slot of an assignment. The caller saves it."""
    if assignment.slot is not None:
        ProjectItem.objects.filter(pk=assignment.item_id).update(open_slots=F("open_slots") + 1)
        assignment.slot = None


def count_items(user: User, project: Project) -> int:
    """How many items of a project a person has labelled or holds."""
    counted = (Assignment.DONE, Assignment.LEASED)
    return int(Assignment.objects.filter(user=user, project=project, state__in=counted).count())
