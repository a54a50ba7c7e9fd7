"""Create projects and people, add items, and say how far the work is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db import connection
from django.db.models import Count, Exists, OuterRef, Q

from ragworth.core.errors import InputError, format_count, format_list, quote_short
from ragworth.label.dataset import FACTS
from ragworth.label.labels import ADJUDICATED
from ragworth.label.site.leases import UNLIMITED
from ragworth.label.site.models import ANNOTATOR, OWNER, ROLES, Assignment, Membership, Project, ProjectItem, User
from ragworth.label.site.project_task import label_item, task_of
from ragworth.label.site.transactions import writing
from ragworth.label.tasks import LabelItem, LabelTask

BATCH = 2000
MANY = 100
"""New items from which PostgreSQL's statistics are updated at once."""
NAME = re.compile(r"[\w.@+-]{1,80}")


@writing()
def create_project(project: Project, items: Iterable[LabelItem]) -> int:
    """Save a new project with its items and return their number."""
    if Project.objects.filter(slug=project.slug).exists():
        raise InputError(
            f"there is a project {quote_short(project.slug)} already", remedy="choose another name with --name"
        )
    task = task_of(project)
    if task.after and project.after is None:
        raise InputError(
            f"the task {task.kind} follows the task {task.after}",
            remedy=f"create a project of the task {task.after} first, and name it with --after",
        )
    project.save()
    return add_items(project, items)


@writing()
def add_items(project: Project, items: Iterable[LabelItem]) -> int:
    """Add items to a project and return their number. Nothing is added if one of them is wrong."""
    task = task_of(project)
    # Two people who add items at the same time wait for each other, and count on from where the first one ended.
    project.item_count = Project.objects.select_for_update(no_key=True).get(pk=project.pk).item_count
    known = set(ProjectItem.objects.filter(project=project).values_list("key", flat=True))
    rows: list[ProjectItem] = []
    wrong: list[str] = []
    start = project.item_count
    names = _known_names(project) if start else {}
    for item in items:
        problems = [*task.item_problems(item), *_storage_problems(item)]
        if item.id in known:
            problems.append("there is an item with this id already")
        else:
            problems += _naming_problems(task, item, names)
        wrong += [f"item {quote_short(item.id)}: {problem}" for problem in problems]
        known.add(item.id)
        rows.append(_row(project, item, start + len(rows)))
    if wrong:
        raise InputError(f"{format_count(len(wrong), 'problem')} with the items: {format_list(wrong)}")
    if not rows and not start:
        raise InputError("there are no items to label", expected="at least one item")
    ProjectItem.objects.bulk_create(rows, batch_size=BATCH)
    project.item_count = start + len(rows)
    project.save(update_fields=["item_count"])
    if connection.vendor == "postgresql" and len(rows) >= MANY:
        # Otherwise its planner doesn't know of them for a minute, and reads all items to find a few.
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE label_projectitem")
    return len(rows)


def _row(project: Project, item: LabelItem, position: int) -> ProjectItem:
    everyone = item.is_control or project.after is not None
    return ProjectItem(
        project=project,
        key=item.id,
        position=position,
        parts=dict(item.parts),
        group=item.group,
        meta=dict(item.meta),
        gold=item.gold,
        suggestion=item.suggestion,
        repeat_of=item.repeat_of,
        stratum=item.stratum,
        probability=item.probability,
        slots=None if everyone else project.judgments,
        open_slots=UNLIMITED if everyone else project.judgments,
    )


def _known_names(project: Project) -> dict[str, str]:
    """The items of a project, by what names them in tables."""
    rows = ProjectItem.objects.filter(project=project, gold__isnull=True, repeat_of="").defer("parts")
    items = [label_item(row, project.task, texts=False) for row in rows.iterator(BATCH)]
    return {repr(task_of(project).keys(item)): item.id for item in items}


def _naming_problems(task: LabelTask, item: LabelItem, known: dict[str, str]) -> list[str]:
    """Why tables couldn't tell an item from others; ``known`` gets its name."""
    if missing := task.missing_names(item):
        return [f"meta has no {format_list(missing)}, so nothing says what its labels are about"]
    if taken := sorted({*FACTS, "aspect"} & task.keys(item).keys()):
        return [f"meta has {quote_short(taken[0])}, which is a column of exported tables"]
    if item.is_control:
        return []
    first = known.setdefault(repr(task.keys(item)), item.id)
    return [] if first == item.id else [f"it is about the same thing as item {quote_short(first)}"]


def _storage_problems(item: LabelItem) -> list[str]:
    """What no database can hold."""
    texts = [item.id, item.group, *item.parts.values(), *map(str, item.meta.values())]
    found = ["a text has a NUL character"] if any("\0" in text for text in texts) else []
    if _has_surrogates("".join(texts)):
        found.append("a text has half a surrogate pair")
    if len(item.id) > 500 or len(item.group) > 500:
        found.append("the id or group is longer than 500 characters")
    return found


def _has_surrogates(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def add_person(name: str, role: str | None, projects: Sequence[Project], most: int | None = None) -> User:
    """Create an account, or find it, and let the person work on projects.

    Without a role, a new person is an annotator and a known one keeps their role. Without ``most``, a limit stays.
    """
    if not NAME.fullmatch(name) or name == ADJUDICATED:
        raise InputError(
            f"{quote_short(name)} can't be the name of a person",
            expected=f"letters, digits and . @ + - _, at most 80, and not {ADJUDICATED!r}",
        )
    if role is not None and role not in ROLES:
        raise InputError(f"{quote_short(role)} is no role", expected=format_list(list(ROLES)))
    user = User.objects.filter(name=name).first()
    if user is None:
        user = User.objects.create_user(name, role or ANNOTATOR)
    elif role is not None and user.role != role:
        if is_last_owner(user):
            raise InputError(f"{quote_short(name)} is the only owner", remedy="make somebody else an owner first")
        user.role = role
        user.save(update_fields=["role"])
    limit = {} if most is None else {"most": most}
    for project in projects:
        Membership.objects.update_or_create(project=project, user=user, defaults=limit)
    return user


def is_last_owner(user: User) -> bool:
    """Whether nobody else could run the site."""
    return bool(user.is_owner and not User.objects.filter(role=OWNER, is_active=True).exclude(pk=user.pk).exists())


@dataclass(frozen=True)
class ProjectStatus:
    """Counts of one project. ``wanted`` and ``labelled`` are judgments: K for each item, or those of items that opened.

    ``controls`` are gold items and repeats, which don't count.
    """

    items: int
    controls: int
    complete: int
    wanted: int
    labelled: int
    skipped: int
    extra: int
    disputed: int
    adjudicated: int


IS_CONTROL = Q(gold__isnull=False) | ~Q(repeat_of="")
PENDING = (Assignment.LEASED, Assignment.RESERVED)


def status_of(project: Project) -> ProjectStatus:
    """How far a project is."""
    mine = Assignment.objects.filter(item=OuterRef("pk"))
    is_full = Exists(mine.filter(state=Assignment.DONE)) if project.after_id else Q(open_slots=0)
    items = ProjectItem.objects.filter(project=project).aggregate(
        items=Count("id"),
        controls=Count("id", filter=IS_CONTROL),
        complete=Count("id", filter=~IS_CONTROL & is_full & ~Exists(mine.filter(state__in=PENDING))),
        disputed=Count("id", filter=Q(disputed=True)),
        adjudicated=Count("id", filter=Q(adjudicated=True)),
    )
    counted = Q(item__gold__isnull=True, item__repeat_of="")
    states = Assignment.objects.filter(project=project).aggregate(
        labelled=Count("id", filter=counted & Q(state=Assignment.DONE)),
        pending=Count("id", filter=counted & Q(state__in=PENDING)),
        skipped=Count("id", filter=Q(state=Assignment.SKIPPED)),
        extra=Count("id", filter=Q(state=Assignment.EXTRA)),
    )
    pending, wanted = states.pop("pending"), (items["items"] - items["controls"]) * project.judgments
    return ProjectStatus(**items, **states, wanted=states["labelled"] + pending if project.after_id else wanted)
