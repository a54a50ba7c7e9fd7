"""Who may open which page. Every route names its roles; a route without roles is open to nobody."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.urls import path
from django.urls.converters import IntConverter

from ragworth.label.site.models import ADJUDICATOR, OWNER, ROLES

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
