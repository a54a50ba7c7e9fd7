"""A project as its owner sees it: progress, items, labels, downloads."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_POST

from ragworth.core.errors import RagworthError
from ragworth.label.items import read_items
from ragworth.label.site import audit
from ragworth.label.site.disputes import count_undecided
from ragworth.label.site.exporting import export_bytes, export_formats
from ragworth.label.site.models import Assignment, LabelEvent, ProjectItem, User
from ragworth.label.site.person_progress import progress_of
from ragworth.label.site.project_task import task_of
from ragworth.label.site.projects import add_items, status_of
from ragworth.label.site.settings import MAX_UPLOAD
from ragworth.label.site.views.access import find_project
from ragworth.label.site.views.item_view import describe_value, item_context

PAGE = 50
FILTERS: dict[str, dict[str, Any]] = {
    "all": {},
    "open": {"open_slots__gt": 0},
    "complete": {"open_slots": 0},
    "disputed": {"disputed": True},
    "decided": {"adjudicated": True},
    "gold": {"gold__isnull": False},
}


@require_GET
def project_page(request: Any, slug: str) -> HttpResponse:
    """Progress by person, and everything that an owner does with a project."""
    project = find_project(request, slug)
    people = User.objects.filter(assignments__project=project).distinct().order_by("name")
    rows = [{"user": user, "progress": progress_of(user, project)} for user in people]
    context = {
        "project": project,
        "task": task_of(project),
        "status": status_of(project),
        "undecided": count_undecided(project),
        "people": rows,
        "formats": export_formats(),
    }
    return render(request, "label/project.html", context)


@require_GET
def item_list(request: Any, slug: str) -> HttpResponse:
    """Items, fifty a page."""
    project = find_project(request, slug)
    chosen = request.GET.get("show", "all")
    items = ProjectItem.objects.filter(project=project, **FILTERS.get(chosen, {}))
    if words := request.GET.get("q", "").replace("\0", "").strip():
        items = items.filter(key__startswith=words)
    page = Paginator(items.order_by("position"), PAGE).get_page(request.GET.get("page"))
    rows = [{"item": item, "first": next(iter(item.parts.values()), "")} for item in page]
    context = {"project": project, "rows": rows, "page": page, "filters": FILTERS, "chosen": chosen, "words": words}
    return render(request, "label/items.html", context)


@require_GET
def item_page(request: Any, slug: str, item: int) -> HttpResponse:
    """An item with everything that happened to it."""
    project = find_project(request, slug)
    row = get_object_or_404(ProjectItem, pk=item, project=project)
    task = task_of(project)
    events = [
        {
            "event": event,
            "value": describe_value(task, event.value, row.parts) if event.kind != LabelEvent.SKIP else [],
        }
        for event in row.events.select_related("user").order_by("id")
    ]
    context = {
        **item_context(project, row),
        "meta": row.meta,
        "events": events,
        "gold": describe_value(task, row.gold, row.parts),
        "assignments": Assignment.objects.filter(item=row).select_related("user").order_by("slot", "id"),
    }
    return render(request, "label/item.html", context)


@require_POST
def upload_items(request: Any, slug: str) -> HttpResponse:
    """Add the items of an uploaded JSONL file. The name that the browser sends is not used."""
    project = find_project(request, slug)
    upload = request.FILES.get("items")
    if upload is None or upload.size > MAX_UPLOAD:
        messages.error(request, f"Choose a JSONL file of at most {MAX_UPLOAD // 2**20} MB.")
        return redirect("items", slug)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "items.jsonl"
        with path.open("wb") as file:
            for chunk in upload.chunks():
                file.write(chunk)
        try:
            added = add_items(project, read_items(path, task_of(project)))
        except RagworthError as error:
            messages.error(request, str(error).replace(str(path), "The file"))
        else:
            audit.record("items added", subject=f"{slug}: {added}", request=request)
            messages.success(request, f"{added:,} items were added.")
    return redirect("items", slug)


@require_POST
def set_open(request: Any, slug: str) -> HttpResponse:
    """Open a project for labelling, or close it."""
    project = find_project(request, slug)
    project.is_open = request.POST.get("open") == "yes"
    project.save(update_fields=["is_open"])
    audit.record("project opened" if project.is_open else "project closed", subject=slug, request=request)
    return redirect("project", slug)


@require_GET
def download(request: Any, slug: str, format: str) -> HttpResponse:
    """The labels in one of the export formats."""
    project = find_project(request, slug)
    if format not in export_formats():
        raise Http404
    try:
        name, data = export_bytes(project, format)
    except RagworthError as error:
        messages.error(request, str(error))
        return redirect("project", slug)
    audit.record("export", subject=f"{slug}: {format}", request=request)
    response = HttpResponse(data, content_type="application/octet-stream")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
