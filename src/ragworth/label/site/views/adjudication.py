"""Agreement, and the queue of items about which people disagree."""

from __future__ import annotations

import random
from typing import Any

from django.http import HttpResponse, JsonResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from ragworth.label.site.agreements import agreement_tables
from ragworth.label.site.disputes import count_undecided, counted_values, next_undecided, skip_reasons
from ragworth.label.site.events import RefusedError, adjudicate
from ragworth.label.site.models import LabelEvent, Project, ProjectItem
from ragworth.label.site.project_task import task_of
from ragworth.label.site.projects import status_of
from ragworth.label.site.views.access import find_project, read_json
from ragworth.label.site.views.item_view import describe_value, item_context
from ragworth.label.site.views.labelling import held_items, item_id, parse_submission


@require_GET
def agreement_page(request: Any, slug: str) -> HttpResponse:
    """How far people agree, with intervals."""
    project = find_project(request, slug)
    tables = agreement_tables(project)
    context = {"project": project, "tables": tables, "status": status_of(project)}
    return render(request, "label/agreement.html", context)


@require_GET
def adjudicate_page(request: Any, slug: str) -> HttpResponse:
    """A disputed item with everybody's answers, anonymous and in random order."""
    project = find_project(request, slug)
    task = task_of(project)
    first = next_undecided(project, [])
    context = {
        "project": project,
        "task": task,
        "card": _card(project, first) if first else "",
        "urls": {
            "answer": reverse("decide", args=[slug]),
            "next": reverse("next-dispute", args=[slug]),
            "undo": "",
            "hold": "",
        },
        "progress": _progress(project),
        "facts": {**task.describe(), "queue": f"{request.user.pk}:{project.pk}:decide"},
        "adjudicating": True,
    }
    return render(request, "label/label.html", context)


@require_POST
def next_dispute(request: Any, slug: str) -> JsonResponse:
    """Another disputed item, besides those that the page has."""
    project = find_project(request, slug)
    return JsonResponse(_following(project, read_json(request)))


@require_POST
def decide(request: Any, slug: str) -> JsonResponse:
    """Store a decision and send the next item."""
    project = find_project(request, slug)
    data = read_json(request)
    try:
        submission = parse_submission(data, LabelEvent.ADJUDICATE)
        receipt = adjudicate(request.user, project, item_id(data), submission)
    except RefusedError as error:
        return JsonResponse({"problems": error.problems}, status=error.status)
    return JsonResponse({"stored": True, "repeated": receipt.repeated, **_following(project, data)})


def _following(project: Project, data: dict[str, Any]) -> dict[str, Any]:
    item = next_undecided(project, held_items(data))
    return {"card": _card(project, item) if item else None, "progress": _progress(project)}


def _card(project: Project, item: ProjectItem) -> str:
    task = task_of(project)
    answers = [describe_value(task, value, item.parts) for value in counted_values(item)]
    random.Random(f"{project.seed}:{item.pk}").shuffle(answers)
    facts = {"answers": answers, "skips": skip_reasons(item), "adjudicating": True}
    context = {**item_context(project, item), **facts}
    return render_to_string("label/card.html", context)


def _progress(project: Project) -> dict[str, Any]:
    status = status_of(project)
    return {"done": status.adjudicated, "left": count_undecided(project), "seconds": None}
