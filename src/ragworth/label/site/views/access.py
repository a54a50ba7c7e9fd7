"""What views share: the project of a request, and its JSON."""

from __future__ import annotations

import json
from typing import Any

from django.http import Http404

from ragworth.label.site.models import OWNER, Project


def projects_of(user: Any) -> Any:
    """The projects that a user may see."""
    every = Project.objects.order_by("created_at", "id")
    return every if user.role == OWNER else every.filter(memberships__user=user)


def find_project(request: Any, slug: str) -> Project:
    """A project that the user works on, or owns. Others don't learn that it exists."""
    project = projects_of(request.user).filter(slug=slug).first()
    if project is None:
        raise Http404
    return project


def read_json(request: Any) -> dict[str, Any]:
    """The JSON object in a request's body; an empty one if there is none."""
    try:
        data = json.loads(request.body or b"{}", parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def _refuse_constant(name: str) -> None:
    """NaN and Infinity are no JSON, and PostgreSQL can't store them."""
    raise ValueError(name)
