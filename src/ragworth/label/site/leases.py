"""Which item a person gets next.

Each person sees a project in an order of their own, drawn from the project's seed. Taking an item leases one of its K
slots for some minutes; the page renews it while the person works on the item. An unanswered lease expires, and
somebody else gets the slot when no other item is left for them.

Everything that changes rows locks the person first, then waits for at most the items that the request is about, and
then takes only rows that nobody else has locked, so that two requests can't block each other. On SQLite a transaction
locks the whole database.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from datetime import timedelta
from functools import lru_cache
from typing import Any

import numpy as np
from django.db import connection
from django.db.models import Exists, F, OuterRef, QuerySet
from django.db.models.expressions import RawSQL
from django.utils import timezone

from ragworth.label.site.models import Assignment, LabelEvent, Project, ProjectItem, User
from ragworth.label.site.project_task import label_item, task_of
from ragworth.label.site.transactions import locks_rows, writing
from ragworth.label.tasks import LabelItem, Value

UNLIMITED = 1_000_000
"""Open slots of an item that everyone labels: gold items, repeats, and those of a task that follows another."""
REPEAT_GAP = 10
"""Answers between an item and its repeat, unless nothing else is left."""
CHUNKS = (12, 60, 500)
"""Items of a person's order that are looked up in one query, one chunk after another, before all open items are."""
HAD = (Assignment.DONE, Assignment.SKIPPED, Assignment.EXTRA)
"""States after which an item isn't offered to the same person again."""
Order = np.ndarray[Any, np.dtype[np.int64]]


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


@lru_cache(maxsize=256)
def personal_order(seed: int, user: int, count: int) -> Order:
    """The positions of a project's items in the order in which one person sees them."""
    return np.random.default_rng([seed, user]).permutation(count)


@lru_cache(maxsize=256)
def personal_ranks(seed: int, user: int, count: int) -> Order:
    """The inverse of `personal_order`: where in a person's order each position is."""
    return np.argsort(personal_order(seed, user, count))


def find_free(user: User, project: Project, after: int | None = None) -> ProjectItem | None:
    """The next item with an open slot that a person hasn't had, in their order from where they are, locked.

    ``after``: the position where they are; otherwise that of the item they took last.
    """
    free = free_items(user, project).filter(repeat_of="")
    for positions in _positions(user, project, free, after):
        at = " ".join(f"WHEN {position} THEN {place}" for place, position in enumerate(positions))
        in_order = free.filter(position__in=positions).order_by(RawSQL(f'CASE "position" {at} END', ()))
        if item := lock_first(in_order):
            return item
    return None


def lock_first(items: QuerySet[ProjectItem]) -> ProjectItem | None:
    """The first of some items that nobody else has locked."""
    found: ProjectItem | None = items.select_for_update(skip_locked=True).first()
    return found


def _positions(user: User, project: Project, free: QuerySet[ProjectItem], after: int | None) -> Iterator[list[int]]:
    """A person's order in chunks, from where they are; then that of all free items."""
    arguments = (project.seed, user.pk, project.item_count)
    order, ranks = personal_order(*arguments), personal_ranks(*arguments)
    if after is None:
        taken = Assignment.objects.filter(project=project, user=user).order_by("-id")
        after = taken.values_list("item__position", flat=True).first()
    start = int(ranks[after]) if after is not None else 0
    begin = start
    for size in CHUNKS:
        if begin < len(order):
            yield order[begin : begin + size].tolist()
        begin += size
    rest = sorted(free.values_list("position", flat=True), key=lambda place: int(ranks[place] - start) % len(order))
    yield from (rest[at : at + CHUNKS[-1]] for at in range(0, len(rest), CHUNKS[-1]))


def has_repeats(project: Project) -> bool:
    """Whether a project has items that repeat another one."""
    return _has_repeats(project.pk, str(project.created_at), project.item_count)


@lru_cache(maxsize=256)
def _has_repeats(project: int, created_at: str, items: int) -> bool:
    """Remembered until items are added; the time tells projects of two sites apart."""
    return bool(ProjectItem.objects.filter(project=project).exclude(repeat_of="").exists())


def find_repeat(user: User, project: Project, gap: int) -> ProjectItem | None:
    """An item that repeats one that a person labelled at least ``gap`` answers ago, locked."""
    mine = LabelEvent.objects.filter(project=project, user=user, kind=LabelEvent.ANSWER).order_by("-id")
    answered = mine.values_list("item__key", flat=True)[gap:]
    waiting = free_items(user, project).exclude(repeat_of="")
    return lock_first(waiting.filter(repeat_of__in=list(answered)).order_by("id")) if waiting.exists() else None


def free_items(user: User, project: Project) -> QuerySet[ProjectItem]:
    """Items with an open slot that a person neither holds nor has had."""
    taken = Assignment.objects.filter(item=OuterRef("pk"), user=user, state__in=(*HAD, Assignment.LEASED))
    return ProjectItem.objects.filter(~Exists(taken), project=project, open_slots__gt=0)
