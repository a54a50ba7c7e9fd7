"""“Label this”: put a particular query, passage or answer into a person's hands."""

from __future__ import annotations

from collections.abc import Mapping

from ragworth.label.opening import source_of_results
from ragworth.label.site.leases import lock_person, renew, take_slot
from ragworth.label.site.models import Assignment, Project, ProjectItem, User
from ragworth.label.site.project_task import task_of
from ragworth.label.site.projects import add_items
from ragworth.label.site.reading import find_results_folder, read_results
from ragworth.label.site.transactions import writing


@writing()
def take_for_labelling(user: User, project: Project, wanted: Mapping[str, str]) -> ProjectItem | None:
    """The item about something, created if the project has none; leased to the person if a slot is open."""
    lock_person(user)
    item = _find(project, wanted) or _create(project, wanted)
    if item is None:
        return None
    row = Assignment.objects.filter(item=item, user=user).first() or Assignment(project=project, item=item, user=user)
    if row.state not in (Assignment.DONE, Assignment.EXTRA):
        take_slot(row, item)
        renew(row, project)
    return item


def _find(project: Project, wanted: Mapping[str, str]) -> ProjectItem | None:
    rows = ProjectItem.objects.select_for_update().filter(project=project, group=wanted.get("query", ""), repeat_of="")
    return next((row for row in rows.order_by("position") if _fits(row.meta, wanted)), None)


def _create(project: Project, wanted: Mapping[str, str]) -> ProjectItem | None:
    """Add the item from the results beside the site. It was chosen by hand, so it has no inclusion probability."""
    folder = find_results_folder()
    if folder is None:
        return None
    task = task_of(project)
    source = source_of_results(read_results(folder), k=10_000, seed=project.seed)
    meta = next((unit for unit in task.units(source) if _fits(unit, wanted)), None)
    if meta is None:
        return None
    item = task.make_item(meta, task.texts(meta, source))
    add_items(project, [item])
    return ProjectItem.objects.get(project=project, key=item.id)


def _fits(meta: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether an item is about something. Facts that its task doesn't have, such as a system, don't matter."""
    shared = [name for name in wanted if name in meta]
    return "query" in shared and all(meta[name] == wanted[name] for name in shared)
