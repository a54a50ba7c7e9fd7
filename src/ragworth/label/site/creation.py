"""What the commands do: projects from sources, invitations, status tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ragworth.core.errors import InputError, format_list, quote_short
from ragworth.label.disagreement import read_disagreement
from ragworth.label.imports import import_labels
from ragworth.label.items import read_items
from ragworth.label.selection import Selection, select_items
from ragworth.label.site.settings import SiteOptions
from ragworth.label.site.startup import open_site, site_folder
from ragworth.label.sources import open_label_source
from ragworth.label.tasks import LabelItem, LabelTask, load_task

if TYPE_CHECKING:
    from ragworth.label.site.importing import ImportCounts


class CreatedProject(NamedTuple):
    """How many items a new project has, and what could not become one."""

    items: int
    left_out: Mapping[str, int]


def create_from_sources(
    places: Sequence[str], kind: str, slug: str, title: str, options: Mapping[str, Any]
) -> CreatedProject:
    """Create a project from a workspace, results or files. ``options`` are those of ``ragworth label new``."""
    task = load_task(kind)
    items, left_out = choose_items(places, task, options)
    place = Path(places[0])
    open_site(site_folder(place if place.is_dir() else place.parent), SiteOptions(options["database"]), create=True)
    from ragworth.label.site import audit
    from ragworth.label.site.models import Project
    from ragworth.label.site.projects import create_project
    from ragworth.label.site.server import find_owner

    after = Project.objects.filter(slug=options["after"]).first() if options["after"] else None
    if options["after"] and after is None:
        raise InputError(f"there is no project {quote_short(options['after'])}", remedy="create it first")
    if after is not None and after.task != task.after:
        raise InputError(f"{after.slug} is a project of the task {after.task}, and {task.kind} follows {task.after}")
    project = Project(
        slug=slug,
        title=title,
        task=task.kind,
        definition=read_definition(kind),
        judgments=options["judgments"],
        seed=options["seed"],
        lease_minutes=options["lease"],
        show_suggestions=options["suggestions"],
        blind=not options["not_blind"],
        after=after,
    )
    count = create_project(project, items)
    audit.record("project created", user=find_owner(), subject=f"{slug}: {count} items of {task.kind}")
    return CreatedProject(count, left_out)


def choose_items(
    places: Sequence[str], task: LabelTask, options: Mapping[str, Any]
) -> tuple[list[LabelItem], Mapping[str, int]]:
    """The items of a new project, and how many units were left out, by reason."""
    _check_effects(places, task, options)
    left_out: Mapping[str, int] = {}
    source = None
    if options["item_file"]:
        items = read_items(options["item_file"], task)
    else:
        source = open_label_source(places, k=options["k"], seed=options["seed"])
        items = list(task.items(source))
        left_out = source.left_out
    gold = read_items(options["gold"], task) if options["gold"] else []
    controls = [item for item in items if item.is_control]
    selection = Selection(options["random_queries"], options["disputed"], options["repeats"], options["seed"])
    plain = [item for item in items if not item.is_control]
    if not plain:
        reasons = format_list([f"{reason} {number:,}" for reason, number in left_out.items()])
        parts = format_list([part.title.lower() for part in task.parts if not part.optional])
        raise InputError(
            f"there is nothing to label for {task.kind}{reasons and f' (left out: {reasons})'}",
            expected=f"evaluated queries, each with these texts: {parts}",
            file=places[0],
        )
    scores = read_disagreement(plain, options["judges"], source) if options["disputed"] else None
    chosen = [*select_items(task, plain, selection, scores, gold), *controls]
    if options["suggestions"] and not any(item.suggestion is not None for item in chosen):
        raise InputError("no item has a suggestion to show", remedy="leave out --suggestions")
    return chosen, left_out


def _check_effects(places: Sequence[str], task: LabelTask, options: Mapping[str, Any]) -> None:
    """Refuse options that would change nothing."""
    drawing = ["random_queries", "disputed", "judges", "gold", "repeats"]
    drawing += ["judgments"] if options["judgments"] > 1 else []
    idle = {
        f"the task {task.kind}, which chooses items by earlier answers": drawing if task.after else [],
        f"the task {task.kind}, which follows no other": [] if task.after else ["after"],
        "the items of a file": ["k"] if options["item_file"] else [],
        "no disputed items": [] if options["disputed"] else ["judges"],
    }
    for reason, names in idle.items():
        if given := [name for name in names if options[name] not in (None, 0, ())]:
            flag = f"{'-' if given[0] == 'k' else '--'}{given[0].replace('_', '-')}"
            raise InputError(f"{flag} has no effect with {reason}", remedy=f"leave out {flag}")
    if options["item_file"] and len(places) > 1:
        raise InputError(
            f"{quote_short(str(places[1]))} has no effect: the items are those of {quote_short(options['item_file'])}",
            expected="one place beside --items, where the project will be",
        )


def invite_people(
    names: Sequence[str],
    slugs: Sequence[str],
    *,
    role: str | None,
    most: int | None,
    days: int,
    url: str,
    database: str,
) -> list[tuple[str, str]]:
    """Add people to projects; each name with an invitation link, which is empty for those who have a password."""
    from ragworth.label.site import audit
    from ragworth.label.site.links import create_link
    from ragworth.label.site.models import AccessLink, Project
    from ragworth.label.site.projects import add_person

    projects = list(Project.objects.order_by("id"))
    if unknown := [slug for slug in slugs if slug not in {project.slug for project in projects}]:
        raise InputError(
            f"there is no project {quote_short(unknown[0])}", expected=format_list([p.slug for p in projects])
        )
    chosen = [project for project in projects if not slugs or project.slug in slugs]
    people = [add_person(name, role, chosen, most) for name in names]
    links = []
    for user in people:
        token = "" if user.has_usable_password() else create_link(AccessLink.INVITATION, user, timedelta(days=days))
        audit.record("invitation" if token else "assigned", subject=f"{user.name} ({user.role})")
        links.append((user.name, f"{url.rstrip('/')}/join/{token}/" if token else ""))
    return links


def import_file(file: str, form: str, kind: str | None, slug: str | None) -> tuple[ImportCounts, tuple[str, ...]]:
    """Add the labels of a file to a project, which is created if a task is given; with what users should know."""
    from ragworth.label.site import audit
    from ragworth.label.site.importing import store_labels
    from ragworth.label.site.models import Project
    from ragworth.label.site.project_task import label_item, task_of
    from ragworth.label.site.projects import create_project
    from ragworth.label.site.server import find_owner

    owner = find_owner()
    if kind is not None:
        task = load_task(kind)
        found = import_labels(file, form, task)
        people = Counter(label.item for label in found.labels.answers if not label.adjudicated)
        project = Project(
            slug=slug or task.kind,
            title=slug or task.kind,
            task=task.kind,
            definition=read_definition(kind),
            judgments=max(people.values(), default=1),
        )
        create_project(project, found.items)
    else:
        project = Project.objects.get(slug=slug)
        known = {row.key: label_item(row, project.task) for row in project.items.all()}
        found = import_labels(file, form, task_of(project), known)
    counts = store_labels(project, found.labels, owner)
    audit.record("labels imported", user=owner, subject=f"{project.slug}: {counts.added} of {form}")
    return counts, found.notes


def read_definition(kind: str) -> str:
    """The text of a custom task's file; empty for a task that comes with ragworth."""
    return Path(kind).read_text(encoding="utf-8") if kind.endswith(".toml") else ""


def status_tables() -> list[tuple[str, str, Any, Any]]:
    """Projects and people as tables: name, title, frame, readable frame."""
    import polars as pl

    from ragworth.label.site.models import Project, User
    from ragworth.label.site.person_progress import progress_of
    from ragworth.label.site.projects import status_of

    projects, people = [], []
    for project in Project.objects.order_by("id"):
        status = status_of(project)
        projects.append({"project": project.slug, "task": project.task, **status.__dict__})
        for user in User.objects.filter(assignments__project=project).distinct().order_by("name"):
            mine = progress_of(user, project)
            facts = {"labelled": mine.done, "left": mine.left, "seconds": mine.seconds}
            people.append({"project": project.slug, "person": user.name, "role": user.role, **facts})
    schema = {"project": pl.String, "person": pl.String, "role": pl.String}
    numbers = {"labelled": pl.Int64, "left": pl.Int64, "seconds": pl.Float64}
    frames = [pl.DataFrame(projects), pl.DataFrame(people, schema={**schema, **numbers})]
    return [("projects", "Projects", frames[0], frames[0]), ("people", "People", frames[1], frames[1])]
