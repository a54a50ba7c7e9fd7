"""Items that a person could label next, in their own order.

A few of them are looked up at a time, so it stays fast at 10⁵ items.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from django.db.models import Exists, OuterRef, QuerySet

from ragworth.label.site.models import Assignment, LabelEvent, Project, ProjectItem, User

CHUNKS = (12, 60, 500)
"""Items of a person's order that are looked up in one query, one chunk after another, before all open items are."""
MOST_REPEATS = 200
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


def candidates(user: User, project: Project, after: int | None = None) -> Iterator[int]:
    """Ids of items with an open slot that a person hasn't had, in their order from where they are.

    ``after``: the position where they are; otherwise that of the item they took last.
    """
    free = free_items(user, project).filter(repeat_of="")
    arguments = (project.seed, user.pk, project.item_count)
    order, ranks = personal_order(*arguments), personal_ranks(*arguments)
    if after is None:
        taken = Assignment.objects.filter(project=project, user=user).order_by("-id")
        after = taken.values_list("item__position", flat=True).first()
    start = int(ranks[after]) if after is not None else 0
    begin = start
    for size in CHUNKS:
        wanted = order[begin : begin + size].tolist()
        begin += size
        found = dict(free.filter(position__in=wanted).values_list("position", "id"))
        yield from (found[position] for position in wanted if position in found)
    rest = list(free.values_list("position", "id"))
    rest.sort(key=lambda row: (int(ranks[row[0]]) - start) % len(order))
    yield from (row[1] for row in rest)


def has_repeats(project: Project) -> bool:
    """Whether a project has items that repeat another one."""
    return _has_repeats(project.pk, str(project.created_at), project.item_count)


@lru_cache(maxsize=256)
def _has_repeats(project: int, created_at: str, items: int) -> bool:
    """Remembered until items are added; the time tells projects of two sites apart."""
    return bool(ProjectItem.objects.filter(project=project).exclude(repeat_of="").exists())


def repeats(user: User, project: Project, gap: int) -> Iterator[int]:
    """Ids of items that repeat one that a person labelled at least ``gap`` answers ago."""
    mine = LabelEvent.objects.filter(project=project, user=user, kind=LabelEvent.ANSWER).order_by("-id")
    answered = mine.values_list("item__key", flat=True)[gap:]
    waiting = free_items(user, project).exclude(repeat_of="")
    if waiting.exists():
        yield from waiting.filter(repeat_of__in=list(answered)).values_list("id", flat=True)[:MOST_REPEATS]


def free_items(user: User, project: Project) -> QuerySet[ProjectItem]:
    """Items with an open slot that a person neither holds nor has had."""
    taken = Assignment.objects.filter(item=OuterRef("pk"), user=user, state__in=(*HAD, Assignment.LEASED))
    return ProjectItem.objects.filter(~Exists(taken), project=project, open_slots__gt=0)
