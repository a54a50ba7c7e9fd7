"""Links that let somebody in: the owner's one-time link, and invitations.

A token has 256 random bits. The database has only its hash, so a copy of the database opens nothing.
"""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.contrib.auth.hashers import make_password
from django.contrib.sessions.models import Session
from django.utils import timezone

from ragworth.label.site.models import AccessLink, User

LIFETIMES = {AccessLink.START: timedelta(minutes=10), AccessLink.INVITATION: timedelta(days=7)}


def create_link(kind: str, user: User, lifetime: timedelta | None = None) -> str:
    """Make a link for a user and return its token, which is shown once. It ends their earlier ones."""
    AccessLink.objects.filter(kind=kind, user=user, used_at=None).update(revoked_at=timezone.now())
    token = secrets.token_urlsafe(32)
    expires = timezone.now() + (lifetime or LIFETIMES[kind])
    AccessLink.objects.create(kind=kind, token_hash=_hash(token), user=user, expires_at=expires)
    return token


def find_link(kind: str, token: str) -> AccessLink | None:
    """The link of a token, if it still works."""
    links = AccessLink.objects.filter(kind=kind, token_hash=_hash(token), used_at=None, revoked_at=None)
    working = links.filter(expires_at__gt=timezone.now(), user__is_active=True)
    return working.select_related("user").first()


def use_link(link: AccessLink) -> bool:
    """Mark a link as used; False if another request was faster."""
    return bool(AccessLink.objects.filter(pk=link.pk, used_at=None).update(used_at=timezone.now()))


def end_logins() -> int:
    """End all passwords, links and sessions; return how many people had one that worked."""
    links = AccessLink.objects.filter(revoked_at=None, used_at=None)
    people = {user.pk for user in User.objects.all() if user.has_usable_password()}
    people |= set(links.values_list("user", flat=True))
    links.update(revoked_at=timezone.now())
    User.objects.update(password=make_password(None))
    Session.objects.all().delete()
    return len(people)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
