"""What the site stores.

Events are append-only: triggers in the database refuse to change or delete them. Assignments, and the counters of
items, are bookkeeping that follows from events and leases.
"""

from __future__ import annotations

import uuid

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.db import models

OWNER, ANNOTATOR, ADJUDICATOR = "owner", "annotator", "adjudicator"
ROLES = (OWNER, ANNOTATOR, ADJUDICATOR)


class UserManager(BaseUserManager):
    """Accounts by name. A user without a password can sign in by a link only."""

    def create_user(self, name: str, role: str = ANNOTATOR, password: str | None = None) -> User:
        user = self.model(name=name, role=role)
        user.set_password(password)
        user.save(using=self._db)
        return user


class User(AbstractBaseUser):
    """A person. Owners run the site, annotators label, adjudicators settle disagreements as well."""

    name = models.CharField(max_length=80, unique=True)
    role = models.CharField(max_length=16, choices=[(role, role) for role in ROLES], default=ANNOTATOR)
    is_active = models.BooleanField(default=True)
    joined_at = models.DateTimeField(auto_now_add=True)

    USERNAME_FIELD = "name"
    objects = UserManager()

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(role__in=ROLES), name="label_user_role")]

    @property
    def is_owner(self) -> bool:
        return bool(self.is_active and self.role == OWNER)


class Project(models.Model):
    """A task with its items and rules. ``definition`` is the TOML text of a custom task."""

    slug = models.SlugField(max_length=60, unique=True)
    title = models.CharField(max_length=200)
    task = models.CharField(max_length=60)
    definition = models.TextField(blank=True)
    judgments = models.PositiveSmallIntegerField(default=1, help_text="How many people label each item.")
    seed = models.PositiveIntegerField(default=0)
    lease_minutes = models.PositiveIntegerField(default=30)
    show_suggestions = models.BooleanField(default=False)
    blind = models.BooleanField(default=True, help_text="Hide ids and system names from annotators.")
    is_open = models.BooleanField(default=True)
    after = models.ForeignKey("self", null=True, blank=True, on_delete=models.PROTECT, related_name="followers")
    item_count = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return str(self.title)


class ProjectItem(models.Model):
    """One item of a project: a `ragworth.label.tasks.LabelItem`, and how many people still have to label it."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="items")
    key = models.CharField(max_length=500)
    position = models.PositiveIntegerField()
    parts = models.JSONField()
    group = models.CharField(max_length=500, blank=True)
    meta = models.JSONField(default=dict)
    gold = models.JSONField(null=True, blank=True)
    suggestion = models.JSONField(null=True, blank=True)
    repeat_of = models.CharField(max_length=500, blank=True)
    stratum = models.CharField(max_length=100, blank=True)
    probability = models.FloatField(null=True, blank=True)
    slots = models.PositiveSmallIntegerField(null=True, help_text="People who label it; empty: everyone.")
    open_slots = models.PositiveIntegerField()
    disputed = models.BooleanField(default=False)
    distance = models.FloatField(default=0.0, help_text="How far apart the answers are, from 0 to 1.")
    adjudicated = models.BooleanField(default=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "key"], name="label_item_key"),
            models.UniqueConstraint(fields=["project", "position"], name="label_item_position"),
        ]
        indexes = [
            models.Index(fields=["project", "position"], name="label_item_open", condition=models.Q(open_slots__gt=0)),
            models.Index(fields=["project", "group"], name="label_item_group"),
            # Partial, so that SQLite never scans it for the items that repeat nothing, which are nearly all.
            models.Index(fields=["project", "repeat_of"], name="label_item_repeat", condition=~models.Q(repeat_of="")),
            models.Index(
                fields=["project", "-distance"], name="label_item_disputed", condition=models.Q(disputed=True)
            ),
        ]


class Membership(models.Model):
    """Who works on a project, and on how many items at most."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="memberships")
    most = models.PositiveIntegerField(null=True, blank=True, help_text="Most items; empty: no limit.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "user"], name="label_member")]


class Assignment(models.Model):
    """An item in the hands of a person.

    ``slot`` is the number of the judgment, 1 to K, while the person holds or has filled it. The database allows each
    slot of an item once, so that no item ever has more than K counted labels. ``is_new`` isn't stored: the person has
    just got the item, for the first time.
    """

    RESERVED, LEASED, DONE, SKIPPED, EXPIRED, EXTRA = "reserved", "leased", "done", "skipped", "expired", "extra"
    STATES = (RESERVED, LEASED, DONE, SKIPPED, EXPIRED, EXTRA)

    project = models.ForeignKey(Project, on_delete=models.PROTECT)
    item = models.ForeignKey(ProjectItem, on_delete=models.PROTECT, related_name="assignments")
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="assignments")
    slot = models.PositiveIntegerField(null=True, blank=True)
    state = models.CharField(max_length=10, choices=[(state, state) for state in STATES])
    expires_at = models.DateTimeField(null=True, blank=True)
    is_new = False

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["item", "user"], name="label_assignment_person"),
            models.UniqueConstraint(fields=["item", "slot"], name="label_assignment_slot"),
        ]
        indexes = [
            models.Index(fields=["project", "user", "state"], name="label_assignment_mine"),
            models.Index(fields=["project", "state", "expires_at"], name="label_assignment_expiry"),
        ]


class LabelEvent(models.Model):
    """Something a person did with an item. Never changed, never deleted.

    ``client_id`` is made by the page, so an answer that is sent twice is stored once. ``shown_at``, ``answered_at`` and
    ``seconds`` are what the page measured, ``received_at`` is the server's time.
    """

    ANSWER, SKIP, UNDO, ADJUDICATE = "answer", "skip", "undo", "adjudicate"
    KINDS = (ANSWER, SKIP, UNDO, ADJUDICATE)

    client_id = models.UUIDField(unique=True, default=uuid.uuid4)
    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="events")
    item = models.ForeignKey(ProjectItem, on_delete=models.PROTECT, related_name="events")
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="events")
    kind = models.CharField(max_length=10, choices=[(kind, kind) for kind in KINDS])
    value = models.JSONField(null=True, blank=True)
    comment = models.TextField(blank=True)
    seen_suggestion = models.BooleanField(default=False)
    shown_at = models.DateTimeField(null=True, blank=True)
    answered_at = models.DateTimeField(null=True, blank=True)
    seconds = models.FloatField(null=True, blank=True)
    received_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [
            models.Index(fields=["item", "user", "id"], name="label_event_item"),
            models.Index(fields=["project", "user", "id"], name="label_event_mine"),
        ]


class AccessLink(models.Model):
    """A link that lets somebody in. Only the hash of its token is stored."""

    START, INVITATION = "start", "invitation"
    KINDS = (START, INVITATION)

    kind = models.CharField(max_length=10, choices=[(kind, kind) for kind in KINDS])
    token_hash = models.CharField(max_length=64, unique=True)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="links")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)


class AuditRecord(models.Model):
    """Who signed in, invited, exported or changed something. Never changed, never deleted."""

    at = models.DateTimeField(auto_now_add=True)
    user = models.ForeignKey(User, null=True, blank=True, on_delete=models.PROTECT, related_name="audit")
    action = models.CharField(max_length=40)
    subject = models.CharField(max_length=300, blank=True)
    address = models.CharField(max_length=64, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["action", "subject", "at"], name="label_audit_subject"),
            models.Index(fields=["action", "address", "at"], name="label_audit_address"),
        ]
