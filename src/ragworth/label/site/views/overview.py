"""The first page, people's own answers, and pages for errors."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Paginator
from django.http import HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from ragworth.label.site.events import current_events
from ragworth.label.site.models import LabelEvent
from ragworth.label.site.person_progress import progress_of
from ragworth.label.site.project_task import task_of
from ragworth.label.site.projects import status_of
from ragworth.label.site.views.access import find_project, projects_of
from ragworth.label.site.views.item_view import describe_value

PAGE = 50


@require_GET
def home(request: Any) -> HttpResponse:
    """The projects of a person, and how far they are."""
    rows = [
        {
            "project": project,
            "task": task_of(project),
            "progress": progress_of(request.user, project),
            "status": status_of(project) if request.user.is_owner else None,
        }
        for project in projects_of(request.user)
    ]
    return render(request, "label/home.html", {"rows": rows})


@require_GET
def own_answers(request: Any, slug: str) -> HttpResponse:
    """A person's own answers, newest first, each with a link to change it."""
    project = find_project(request, slug)
    task = task_of(project)
    events = current_events(project).filter(user=request.user).exclude(kind=LabelEvent.UNDO)
    page = Paginator(events.select_related("item").order_by("-id"), PAGE).get_page(request.GET.get("page"))
    rows = [
        {
            "event": event,
            "first": next(iter(event.item.parts.values()), ""),
            "value": describe_value(task, event.value, event.item.parts) if event.kind == LabelEvent.ANSWER else [],
        }
        for event in page
    ]
    return render(request, "label/mine.html", {"project": project, "rows": rows, "page": page})


def forbidden(request: Any, exception: Exception | None = None) -> HttpResponse:
    return _error(request, 403, "You may not open this page.")


def not_found(request: Any, exception: Exception | None = None) -> HttpResponse:
    return _error(request, 404, "There is no such page, or it is not yours.")


def failed(request: Any) -> HttpResponse:
    return _error(request, 500, "Something went wrong. Nothing that was stored is lost; try again.")


def _error(request: Any, status: int, message: str) -> HttpResponse:
    if request.headers.get("Accept", "").startswith("application/json"):
        return JsonResponse({"problems": [message]}, status=status)
    return render(request, "label/error.html", {"message": message, "status": status}, status=status)
