"""Signing in and out, the owner's one-time link, and invitations."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import authenticate, login, logout
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_http_methods, require_POST

from ragworth.label.site import audit
from ragworth.label.site.links import find_link, use_link
from ragworth.label.site.models import AccessLink

BACKEND = "django.contrib.auth.backends.ModelBackend"


@require_http_methods(["GET", "POST"])
def sign_in(request: Any) -> HttpResponse:
    """The login form. After a few wrong passwords it refuses for some minutes, right ones too."""
    # PostgreSQL has no NUL characters in texts, and nobody has one in their name.
    name, problem, status = str(request.POST.get("name", "")).replace("\0", "")[:80], "", 200
    target = request.POST.get("next") or request.GET.get("next") or ""
    if request.method == "POST":
        if audit.too_many_failures(name, request):
            problem, status = "Too many failed attempts. Wait 15 minutes and try again.", 429
        elif user := authenticate(request, username=name, password=request.POST.get("password", "")):
            login(request, user)
            audit.record("login", user=user, subject=name, request=request)
            safe = url_has_allowed_host_and_scheme(target, {request.get_host()}, request.is_secure())
            return redirect(target if safe else "home")
        else:
            audit.record(audit.LOGIN_FAILED, subject=name, request=request)
            problem, status = "This name and password don't match.", 403
    return render(request, "label/login.html", {"problem": problem, "name": name, "next": target}, status=status)


@require_POST
def sign_out(request: Any) -> HttpResponse:
    audit.record("logout", request=request)
    logout(request)
    return redirect("login")


@require_http_methods(["GET"])
def start(request: Any, token: str) -> HttpResponse:
    """Sign the owner in by the link that the server printed. It works once."""
    link = find_link(AccessLink.START, token)
    if link is None or not use_link(link):
        return _expired(request)
    login(request, link.user, backend=BACKEND)
    audit.record("login by link", user=link.user, subject=link.user.name, request=request)
    return redirect("home")


@require_http_methods(["GET", "POST"])
def join(request: Any, token: str) -> HttpResponse:
    """Accept an invitation by choosing a password."""
    link = find_link(AccessLink.INVITATION, token)
    if link is None:
        return _expired(request)
    problems: list[str] = []
    if request.method == "POST":
        password = str(request.POST.get("password", ""))
        if password != request.POST.get("again"):
            problems = ["The two passwords differ."]
        else:
            try:
                validate_password(password, link.user)
            except ValidationError as error:
                problems = list(error.messages)
        if not problems:
            if not use_link(link):
                return _expired(request)
            link.user.set_password(password)
            link.user.save(update_fields=["password"])
            login(request, link.user, backend=BACKEND)
            audit.record("invitation accepted", user=link.user, subject=link.user.name, request=request)
            return redirect("home")
    return render(request, "label/join.html", {"name": link.user.name, "problems": problems})


def _expired(request: Any) -> HttpResponse:
    return render(request, "label/expired.html", status=410)
