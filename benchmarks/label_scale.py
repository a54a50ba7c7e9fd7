"""A labelling project with 10⁵ items: how long its steps take, and how they grow.

::

    python benchmarks/label_scale.py 10000 100000
    python benchmarks/label_scale.py 100000 --database postgresql

For each size it creates a project, fills in one label for each item, and measures one step after another in this
process: lists (first, middle and filtered page), the next item of a new person and of one with 500 labels, status,
export and agreement. CPU seconds, and the peak memory of the process so far. PostgreSQL works in processes of its own,
so there it is elapsed seconds. Prints a table.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

if sys.path[0] == str(Path(__file__).resolve().parent):
    # Run as a script: our coverage.py must not stand for the package of that name.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks.postgres_server import postgres_server
from benchmarks.simulated_annotators import passage_item

from ragworth.label.site.settings import SiteOptions
from ragworth.label.site.startup import open_site

BATCH = 2000


class Steps:
    """Steps that are measured by a clock, in order."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.rows: list[tuple[str, float, float]] = []

    def measure(self, name: str, step: Callable[[], Any], times: int = 1) -> Any:
        start = self.clock()
        for _ in range(times):
            found = step()
        seconds = (self.clock() - start) / times
        self.rows.append((name, seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))
        return found


def fill(project: Any, user: Any) -> None:
    """One label for each item, without the page."""
    from ragworth.label.site.models import Assignment, LabelEvent, ProjectItem

    ids = list(ProjectItem.objects.filter(project=project).values_list("id", flat=True))
    facts = {"project": project, "user": user}
    for start in range(0, len(ids), BATCH):
        some = ids[start : start + BATCH]
        Assignment.objects.bulk_create(Assignment(item_id=one, slot=1, state=Assignment.DONE, **facts) for one in some)
        LabelEvent.objects.bulk_create(
            LabelEvent(item_id=one, kind=LabelEvent.ANSWER, value={"relevance": str(one % 4)}, seconds=3.0, **facts)
            for one in some
        )
    ProjectItem.objects.filter(project=project).update(open_slots=1)


def measure_site(folder: Path, size: int, database: str) -> Steps:
    open_site(folder / "labels", SiteOptions(database, hosts=("testserver",)), create=True)
    from django.test import Client

    from ragworth.label.exports import export_labels
    from ragworth.label.site.agreements import agreement_tables
    from ragworth.label.site.events import Submission, submit
    from ragworth.label.site.exporting import labelled_data
    from ragworth.label.site.leases import next_item
    from ragworth.label.site.models import Project
    from ragworth.label.site.projects import add_person, create_project, status_of

    steps = Steps(time.perf_counter if database else time.process_time)
    project = Project(slug="scale", title="Scale", task="relevance", judgments=2)
    steps.measure("create the project", lambda: create_project(project, map(passage_item, range(size))))
    fill(project, add_person("first", "annotator", [project]))
    owner, second = add_person("owner", "owner", [project]), add_person("second", "annotator", [project])
    client = Client()
    client.force_login(owner)
    paths = {"first page": "", "middle page": f"?page={size // 100}", "open items": "?show=open", "by id": "?q=i77"}
    for name, query in paths.items():
        steps.measure(f"list: {name}", partial(client.get, f"/p/scale/items/{query}"), 3)
    steps.measure("page of the project", lambda: client.get("/p/scale/").content)
    steps.measure("first item of a new person", lambda: next_item(second, project))

    def label_one() -> None:
        held = next_item(second, project)
        assert held is not None
        submit(second, project, held.item_id, Submission(uuid.uuid4(), "answer", {"relevance": "1"}))

    steps.measure("an answer and the next item", label_one, 300)
    steps.measure("status", lambda: status_of(project))
    steps.measure("agreement", lambda: agreement_tables(project))
    data = steps.measure("read items and labels", lambda: labelled_data(project))
    for form in ("tables", "labels", "label-studio"):
        steps.measure(f"export: {form}", partial(export_labels, data, form, folder / form))
    return steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", type=int, nargs="*", default=[10_000, 100_000])
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
    options = parser.parse_args()
    found = {}
    for size in options.sizes:
        place = nullcontext("") if options.database == "sqlite" else postgres_server()
        with tempfile.TemporaryDirectory() as folder, place as address:
            found[size] = measure_site(Path(folder), size, address).rows
    unit = "CPU s" if options.database == "sqlite" else "s"
    print(f"| step | {' | '.join(f'{size:,} items: {unit} | peak MB' for size in found)} |")
    print(f"| --- |{' ---: | ---: |' * len(found)}")
    for rows in zip(*found.values(), strict=True):
        cells = " | ".join(f"{seconds:.3f} | {memory:,.0f}" for _, seconds, memory in rows)
        print(f"| {rows[0][0]} | {cells} |")


if __name__ == "__main__":
    main()
