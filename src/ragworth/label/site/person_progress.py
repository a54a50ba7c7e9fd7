"""How far a person is, and how long the rest will take."""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import median

from django.db.models import Count, Q, QuerySet

from ragworth.label.site.leases import free_items
from ragworth.label.site.models import Assignment, LabelEvent, Membership, Project, User

RECENT = 50
"""Answers from which the time of an item is estimated."""
FRESH = 60.0
"""Seconds for which a count is good enough while a person labels, except that their own answers are added."""


@dataclass(frozen=True)
class PersonProgress:
    """How far one person is. ``seconds`` is the median time of their last items; None before the first one."""

    done: int
    left: int
    seconds: float | None


_recent: dict[tuple[str, int, int], tuple[float, PersonProgress]] = {}


def quick_progress(user: User, project: Project, answers: int) -> PersonProgress:
    """`progress_of` as it was up to a minute ago; ``answers``: how many the person has given since the last call."""
    at, known = _recent.get(_key(user, project), (0.0, None))
    if known is None or time.monotonic() - at > FRESH:
        return fresh_progress(user, project)
    known = PersonProgress(known.done + answers, max(0, known.left - answers), known.seconds)
    _recent[_key(user, project)] = (at, known)
    return known


def fresh_progress(user: User, project: Project) -> PersonProgress:
    """`progress_of`, from which `quick_progress` counts on."""
    if len(_recent) > 1000:
        _recent.clear()
    known = progress_of(user, project)
    _recent[_key(user, project)] = (time.monotonic(), known)
    return known


def _key(user: User, project: Project) -> tuple[str, int, int]:
    """The time tells projects of two sites apart."""
    return (str(project.created_at), user.pk, project.pk)


def progress_of(user: User, project: Project) -> PersonProgress:
    """What a person has done in a project, and what is left for them."""
    states = _mine(user, project).aggregate(
        done=Count("id", filter=Q(state__in=(Assignment.DONE, Assignment.EXTRA))),
        held=Count("id", filter=Q(state__in=(Assignment.LEASED, Assignment.RESERVED))),
    )
    left = states["held"] + (0 if project.after_id else free_items(user, project).filter(repeat_of="").count())
    membership = Membership.objects.filter(project=project, user=user).first()
    if membership is not None and membership.most is not None:
        left = min(left, max(0, membership.most - states["done"]))
    recent = LabelEvent.objects.filter(project=project, user=user, kind=LabelEvent.ANSWER, seconds__isnull=False)
    seconds = list(recent.order_by("-id").values_list("seconds", flat=True)[:RECENT])
    return PersonProgress(states["done"], left, median(seconds) if seconds else None)


def _mine(user: User, project: Project) -> QuerySet[Assignment]:
    return Assignment.objects.filter(project=project, user=user)
