"""The reading room: a workspace's report and results, query by query, and read-only links to it."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from ragworth.label.site import audit
from ragworth.label.site.adding import take_for_labelling
from ragworth.label.site.links import create_link, find_link
from ragworth.label.site.models import AccessLink, Project
from ragworth.label.site.reading import find_queries, find_results_folder, query_view, read_results, summary_rows
from ragworth.label.site.views.access import find_project

PAGE = 50
REPORT_POLICY = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data:; font-src data:; frame-ancestors 'self'"
)
"""The report has its script inside. In a sandbox without an origin it can't reach the site or its cookies."""


@require_GET
def room_page(request: Any) -> HttpResponse:
    """Means of all systems, and the queries."""
    return _room(request, "")


@require_GET
def query_page(request: Any) -> HttpResponse:
    """One query: what every system retrieved and answered, and what came of it."""
    return _query(request, "")


@require_GET
def report_page(request: Any) -> HttpResponse:
    """The report of the evaluation."""
    return _report()


@require_GET
def shared_room(request: Any, token: str) -> HttpResponse:
    return _room(request, token) if find_link(AccessLink.SHARE, token) else _expired(request)


@require_GET
def shared_query(request: Any, token: str) -> HttpResponse:
    return _query(request, token) if find_link(AccessLink.SHARE, token) else _expired(request)


@require_GET
def shared_report(request: Any, token: str) -> HttpResponse:
    return _report() if find_link(AccessLink.SHARE, token) else _expired(request)


@require_POST
def share(request: Any) -> HttpResponse:
    """Make a read-only link to the reading room; it is shown once."""
    token = create_link(AccessLink.SHARE, request.user)
    audit.record("share link", request=request)
    link = request.build_absolute_uri(reverse("shared-room", args=[token]))
    return render(request, "label/shared.html", {"link": link})


@require_POST
def revoke_share(request: Any, link: int) -> HttpResponse:
    """Make a read-only link stop working."""
    row = get_object_or_404(AccessLink, pk=link, kind=AccessLink.SHARE)
    row.revoked_at = timezone.now()
    row.save(update_fields=["revoked_at"])
    audit.record("share link revoked", subject=row.pk, request=request)
    return redirect("room")


@require_POST
def label_this(request: Any) -> HttpResponse:
    """Open a passage or answer of the reading room for labelling."""
    project = find_project(request, request.POST.get("project", ""))
    wanted = {name: request.POST[name] for name in ("query", "passage", "system") if request.POST.get(name)}
    item = take_for_labelling(request.user, project, wanted)
    if item is None:
        messages.error(request, f"“{project.title}” has no item for this.")
        return redirect(f"{reverse('room-query')}?{request.POST.get('back', '')}")
    return redirect("relabel", project.slug, item.pk)


def _folder() -> Any:
    folder = find_results_folder()
    if folder is None:
        raise Http404
    return folder


def _room(request: Any, token: str) -> HttpResponse:
    folder = _folder()
    results = read_results(folder)
    words = request.GET.get("q", "").strip()
    queries = find_queries(results, words)
    number = request.GET.get("page", "1")
    page = max(1, int(number)) if number.isascii() and number.isdigit() and len(number) < 9 else 1
    shown = queries.slice((page - 1) * PAGE, PAGE)
    active = AccessLink.objects.filter(kind=AccessLink.SHARE, revoked_at=None, expires_at__gt=timezone.now())
    context = {
        **_links(token),
        "title": results.manifest.get("title") or "Results",
        "summary": summary_rows(folder),
        "queries": shown.to_dicts(),
        "total": queries.height,
        "words": words,
        "page": page,
        "more": page * PAGE < queries.height,
        "has_report": (folder / "report.html").is_file(),
        "shares": [] if token else active.order_by("-id"),
    }
    return render(request, "label/room.html", context)


def _query(request: Any, token: str) -> HttpResponse:
    view = query_view(read_results(_folder()), request.GET.get("id", ""))
    if view is None:
        raise Http404
    projects = [] if token else list(Project.objects.filter(is_open=True, after=None).order_by("title"))
    return render(request, "label/query.html", {**_links(token), **view, "projects": projects})


def _report() -> HttpResponse:
    path = _folder() / "report.html"
    if not path.is_file():
        raise Http404
    return HttpResponse(path.read_bytes(), headers={"Content-Security-Policy": REPORT_POLICY})


def _links(token: str) -> dict[str, Any]:
    """Addresses of the reading room, for owners or for a read-only link."""
    if token:
        names = {"room": "shared-room", "query": "shared-query", "report": "shared-report"}
        return {"links": {each: reverse(name, args=[token]) for each, name in names.items()}, "shared": True}
    names = {"room": "room", "query": "room-query", "report": "room-report"}
    return {"links": {each: reverse(name) for each, name in names.items()}, "shared": False}


def _expired(request: Any) -> HttpResponse:
    return render(request, "label/expired.html", status=410)
