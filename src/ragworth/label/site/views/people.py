"""Accounts, invitations and the audit log."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from ragworth.core.errors import RagworthError
from ragworth.label.site import audit
from ragworth.label.site.links import create_link
from ragworth.label.site.models import OWNER, ROLES, AccessLink, AuditRecord, Project, User
from ragworth.label.site.projects import add_person, is_last_owner

PAGE = 100


@require_GET
def people_page(request: Any) -> HttpResponse:
    """Everybody with an account, and a form to invite more."""
    people = User.objects.prefetch_related("memberships__project").order_by("name")
    context = {"people": people, "roles": ROLES, "projects": Project.objects.order_by("title")}
    return render(request, "label/people.html", context)


@require_POST
def invite(request: Any) -> HttpResponse:
    """Create an account and show its invitation link, once."""
    chosen = Project.objects.filter(slug__in=request.POST.getlist("projects"))
    try:
        user = add_person(request.POST.get("name", "").strip(), request.POST.get("role", ""), list(chosen))
    except RagworthError as error:
        messages.error(request, str(error))
        return redirect("people")
    token = create_link(AccessLink.INVITATION, user)
    audit.record("invitation", subject=f"{user.name} ({user.role})", request=request)
    link = request.build_absolute_uri(reverse("join", args=[token]))
    return render(request, "label/invited.html", {"person": user, "link": link})


@require_POST
def change_person(request: Any, person: int) -> HttpResponse:
    """Change a role, or switch an account on or off. The last owner stays."""
    user = get_object_or_404(User, pk=person)
    role, active = request.POST.get("role", user.role), request.POST.get("active", "yes") == "yes"
    if (role != OWNER or not active) and is_last_owner(user):
        messages.error(request, "The site needs an owner.")
    elif role in ROLES:
        user.role, user.is_active = role, active
        user.save(update_fields=["role", "is_active"])
        audit.record("account changed", subject=f"{user.name}: {role}, {'on' if active else 'off'}", request=request)
    return redirect("people")


@require_GET
def audit_page(request: Any) -> HttpResponse:
    """Who did what, newest first."""
    records = AuditRecord.objects.select_related("user").order_by("-id")
    return render(request, "label/audit.html", {"page": Paginator(records, PAGE).get_page(request.GET.get("page"))})
