"""Items that a person could label next, in their own order.

A few of them are looked up at a time, so it stays fast at 10⁵ items.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from django.db.models import Exists, OuterRef, QuerySet
from django.db.models.expressions import RawSQL

from ragworth.label.site.models import Assignment, LabelEvent, Project, ProjectItem, User

CHUNKS = (12, 60, 500)
"""Items of a person's order that are looked up in one query, one chunk after another, before all open items are."""
HAD = (Assignment.DONE, Assignment.SKIPPED, Assignment.EXTRA)
"""States after which an item isn't offered to the same person again."""
Order = np.ndarray[Any, np.dtype[np.int64]]


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
