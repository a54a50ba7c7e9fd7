"""Headers for every response, and who may open which page.

Every route names its roles; a route without roles is open to nobody.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.urls.converters import IntConverter

from ragworth.label.site.models import ADJUDICATOR, OWNER, ROLES

CONTENT_POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
"""No inline script, no inline style, nothing from elsewhere."""

EVERYONE = frozenset({*ROLES, "anonymous"})
SIGNED_IN = frozenset(ROLES)
REVIEWERS = frozenset({OWNER, ADJUDICATOR})
OWNERS = frozenset({OWNER})

PERMISSIONS: dict[str, frozenset[str]] = {}
"""Name of a route → roles that may open it."""


class RowId(IntConverter):
    """The id of a row in an address: a number that every database can look up."""

    regex = "[0-9]{1,18}"


def route(pattern: str, view: Callable[..., Any], name: str, roles: frozenset[str]) -> Any:
    """A path of the site, for the given roles."""
    PERMISSIONS[name] = roles
    return path(pattern, view, name=name)


def role_of(user: Any) -> str:
    """The role of a request's user; a deactivated account counts as anonymous."""
    return str(user.role) if user.is_authenticated and user.is_active else "anonymous"


class ContentPolicyMiddleware:
    """Sends the content security policy."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.headers.setdefault("Content-Security-Policy", CONTENT_POLICY)
        response.headers.setdefault("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
        if not request.path.startswith("/static/"):
            response.headers.setdefault("Cache-Control", "no-store")
        return response


class RoleMiddleware:
    """Lets a request through only if its route names the user's role."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(self, request: Any, view: object, args: object, kwargs: object) -> HttpResponse | None:
        role = role_of(request.user)
        if role in PERMISSIONS.get(request.resolver_match.url_name or "", frozenset()):
            return None
        if role == "anonymous" and request.method == "GET":
            return redirect_to_login(request.get_full_path())
        raise PermissionDenied
