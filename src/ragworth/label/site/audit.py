"""The audit log, and the limit on failed logins that is computed from it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone

from ragworth.label.site.models import AuditRecord, User

LOGIN_FAILED = "login failed"
WINDOW = timedelta(minutes=15)
MOST_BY_NAME = 5
"""Failed logins for one name within the window before further ones are refused."""
MOST_BY_ADDRESS = 30
"""Failed logins from one address within the window, for any name."""


def record(action: str, *, user: User | None = None, subject: object = "", request: Any = None) -> None:
    """Add a line to the audit log."""
    if user is None and request is not None and request.user.is_authenticated:
        user = request.user
    address = request.META.get("REMOTE_ADDR", "") if request is not None else ""
    AuditRecord.objects.create(action=action, user=user, subject=str(subject)[:300], address=address[:64])


def too_many_failures(name: str, request: Any) -> bool:
    """Whether logins for this name, or from this address, have to wait."""
    recent = AuditRecord.objects.filter(action=LOGIN_FAILED, at__gte=timezone.now() - WINDOW)
    address = request.META.get("REMOTE_ADDR", "")
    return bool(
        recent.filter(subject=name[:300]).count() >= MOST_BY_NAME
        or recent.filter(address=address).count() >= MOST_BY_ADDRESS
    )
