"""The page on which people label, and what it sends and fetches."""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from ragworth.label.site.events import Receipt, RefusedError, Submission, submit, undo
from ragworth.label.site.leases import hold, next_item
from ragworth.label.site.models import Assignment, LabelEvent, Project
from ragworth.label.site.person_progress import PersonProgress, fresh_progress, quick_progress
from ragworth.label.site.project_task import task_of
from ragworth.label.site.transactions import writing_together
from ragworth.label.site.views.access import find_project, read_json
from ragworth.label.site.views.item_view import item_context

MAX_COMMENT = 5000
MAX_SECONDS = 24 * 3600.0


@require_GET
def label_page(request: Any, slug: str, item: int | None = None) -> HttpResponse:
    """One item, with its instructions. With an item's id: an answer of one's own, to be changed."""
    project = find_project(request, slug)
    if item is not None:
        held = Assignment.objects.filter(item=item, user=request.user, project=project).select_related("item").first()
        if held is None or held.state == Assignment.RESERVED:
            raise Http404
    else:
        held = next_item(request.user, project)
    task = task_of(project)
    context = {
        "project": project,
        "task": task,
        "card": _card(request, project, held) if held else "",
        "urls": {name: reverse(name, args=[slug]) for name in ("answer", "next", "undo", "hold")},
        "progress": _progress(fresh_progress(request.user, project)),
        "facts": {**task.describe(), "queue": f"{request.user.pk}:{project.pk}", "lease": project.lease_minutes * 60},
    }
    return render(request, "label/label.html", context)


@require_POST
def next_card(request: Any, slug: str) -> JsonResponse:
    """Another item, besides those that the page has."""
    project = find_project(request, slug)
    held = next_item(request.user, project, held_items(read_json(request)))
    return JsonResponse(_following(request, project, held, quick_progress(request.user, project, 0)))


@require_POST
def hold_items(request: Any, slug: str) -> JsonResponse:
    """Renew the leases of the items on the page, and say which of them others have now."""
    project = find_project(request, slug)
    return JsonResponse({"lost": hold(request.user, project, held_items(read_json(request)))})


@require_POST
def answer(request: Any, slug: str) -> JsonResponse:
    """Store an answer or a skip, and send the next item."""
    project = find_project(request, slug)
    data = read_json(request)
    try:
        with writing_together(waiting=project.after_id is not None):
            receipt = submit(request.user, project, item_id(data), parse_submission(data))
            held = next_item(request.user, project, held_items(data), receipt.event.item.position)
    except RefusedError as error:
        return JsonResponse({"problems": error.problems}, status=error.status)
    is_first = receipt.event.kind == LabelEvent.ANSWER and not (receipt.repeated or receipt.replaced)
    progress = quick_progress(request.user, project, 1) if is_first else fresh_progress(request.user, project)
    return JsonResponse({**_describe(receipt), **_following(request, project, held, progress)})


@require_POST
def take_back(request: Any, slug: str) -> JsonResponse:
    """Undo the last answer and send its item again."""
    project = find_project(request, slug)
    data = read_json(request)
    try:
        held = undo(request.user, project, _client_id(data))
    except RefusedError as error:
        return JsonResponse({"problems": error.problems}, status=error.status)
    if held is None:
        return JsonResponse({"card": None})
    return JsonResponse(_following(request, project, held, fresh_progress(request.user, project)))


def parse_submission(data: dict[str, Any], kind: str = "") -> Submission:
    """What the page sent, checked as far as that is possible without the task."""
    kind = kind or str(data.get("kind", ""))
    value, comment = data.get("value"), data.get("comment", "")
    if kind not in (LabelEvent.ANSWER, LabelEvent.SKIP, LabelEvent.ADJUDICATE) or not isinstance(value, dict):
        raise RefusedError(["The page sent no answer. Reload it."], 400)
    if kind == LabelEvent.SKIP:
        value = {"reason": str(value.get("reason", ""))[:MAX_COMMENT]}
    if not isinstance(comment, str) or len(comment) > MAX_COMMENT:
        raise RefusedError([f"The comment has more than {MAX_COMMENT:,} characters."])
    if not all(map(_is_storable, (comment, *_texts(value)))):
        raise RefusedError(["The answer has a NUL character, or half of a character that takes two."])
    return Submission(
        _client_id(data), kind, value, comment.strip(), _time(data, "shown_at"), _time(data, "answered_at"),
        _seconds(data), data.get("suggested") is True,
    )  # fmt: skip


def _texts(value: Any) -> Iterator[str]:
    """All texts in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.items() if isinstance(value, dict) else value:
            yield from _texts(list(each) if isinstance(each, tuple) else each)


def _is_storable(text: str) -> bool:
    """Whether every database can hold a text."""
    return "\0" not in text and not any("\ud800" <= sign <= "\udfff" for sign in text)


def _client_id(data: dict[str, Any]) -> uuid.UUID:
    try:
        return uuid.UUID(str(data["id"]))
    except (KeyError, ValueError) as error:
        raise RefusedError(["The page sent an answer without an id. Reload it."], 400) from error


def item_id(data: dict[str, Any]) -> int:
    number = data.get("item")
    if type(number) is not int or not 0 < number < 2**63:
        raise RefusedError(["The page sent an answer without an item. Reload it."], 400)
    return number


def held_items(data: dict[str, Any]) -> list[int]:
    """The items that the page has."""
    listed = data.get("holding")
    numbers = [each for each in listed if type(each) is int] if isinstance(listed, list) else []
    return [number for number in numbers if 0 < number < 2**63][:10]


def _time(data: dict[str, Any], name: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(str(data[name]))
        return time.astimezone(UTC) if time.tzinfo is not None else None
    except (KeyError, ValueError, OverflowError):
        return None


def _seconds(data: dict[str, Any]) -> float | None:
    seconds = data.get("seconds")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not math.isfinite(seconds):
        return None
    return min(max(float(seconds), 0.0), MAX_SECONDS)


def _describe(receipt: Receipt) -> dict[str, Any]:
    return {"stored": True, "repeated": receipt.repeated, "replaced": receipt.replaced, "extra": receipt.extra}


def _following(request: Any, project: Project, held: Assignment | None, progress: PersonProgress) -> dict[str, Any]:
    """The next item and the progress, for the page."""
    return {"card": _card(request, project, held) if held else None, "progress": _progress(progress)}


def _card(request: Any, project: Project, held: Assignment) -> str:
    """An item and its form as HTML, with the person's earlier answer to it."""
    event = None
    if not held.is_new:
        answers = LabelEvent.objects.filter(item=held.item, user=request.user, kind=LabelEvent.ANSWER)
        event = answers.order_by("-id").first()
    return render_to_string("label/card.html", item_context(project, held.item, event))


def _progress(progress: PersonProgress) -> dict[str, Any]:
    return {"done": progress.done, "left": progress.left, "seconds": progress.seconds}
