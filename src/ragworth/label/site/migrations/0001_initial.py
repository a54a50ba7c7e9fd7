"""The tables, and triggers that make events append-only."""

from __future__ import annotations

import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from ragworth.label.site.append_only import create_triggers


class Migration(migrations.Migration):
    initial = True

    dependencies: list[tuple[str, str]] = []

    operations = [
        migrations.CreateModel(
            name="User",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("password", models.CharField(max_length=128, verbose_name="password")),
                ("last_login", models.DateTimeField(blank=True, null=True, verbose_name="last login")),
                ("name", models.CharField(max_length=80, unique=True)),
                (
                    "role",
                    models.CharField(
                        choices=[("owner", "owner"), ("annotator", "annotator"), ("adjudicator", "adjudicator")],
                        default="annotator",
                        max_length=16,
                    ),
                ),
                ("is_active", models.BooleanField(default=True)),
                ("joined_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("role__in", ("owner", "annotator", "adjudicator"))), name="label_user_role"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="AccessLink",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "kind",
                    models.CharField(choices=[("start", "start"), ("invitation", "invitation")], max_length=10),
                ),
                ("token_hash", models.CharField(max_length=64, unique=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("expires_at", models.DateTimeField()),
                ("used_at", models.DateTimeField(blank=True, null=True)),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="links", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Project",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("slug", models.SlugField(max_length=60, unique=True)),
                ("title", models.CharField(max_length=200)),
                ("task", models.CharField(max_length=60)),
                ("definition", models.TextField(blank=True)),
                (
                    "judgments",
                    models.PositiveSmallIntegerField(default=1, help_text="How many people label each item."),
                ),
                ("seed", models.PositiveIntegerField(default=0)),
                ("lease_minutes", models.PositiveIntegerField(default=30)),
                ("show_suggestions", models.BooleanField(default=False)),
                ("blind", models.BooleanField(default=True, help_text="Hide ids and system names from annotators.")),
                ("is_open", models.BooleanField(default=True)),
                ("item_count", models.PositiveIntegerField(default=0)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "after",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="followers",
                        to="label.project",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ProjectItem",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.CharField(max_length=500)),
                ("position", models.PositiveIntegerField()),
                ("parts", models.JSONField()),
                ("group", models.CharField(blank=True, max_length=500)),
                ("meta", models.JSONField(default=dict)),
                ("gold", models.JSONField(blank=True, null=True)),
                ("suggestion", models.JSONField(blank=True, null=True)),
                ("repeat_of", models.CharField(blank=True, max_length=500)),
                ("stratum", models.CharField(blank=True, max_length=100)),
                ("probability", models.FloatField(blank=True, null=True)),
                (
                    "slots",
                    models.PositiveSmallIntegerField(help_text="People who label it; empty: everyone.", null=True),
                ),
                ("open_slots", models.PositiveIntegerField()),
                ("disputed", models.BooleanField(default=False)),
                ("distance", models.FloatField(default=0.0, help_text="How far apart the answers are, from 0 to 1.")),
                ("adjudicated", models.BooleanField(default=False)),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="items", to="label.project"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="LabelEvent",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("client_id", models.UUIDField(default=uuid.uuid4, unique=True)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("answer", "answer"),
                            ("skip", "skip"),
                            ("undo", "undo"),
                            ("adjudicate", "adjudicate"),
                        ],
                        max_length=10,
                    ),
                ),
                ("value", models.JSONField(blank=True, null=True)),
                ("comment", models.TextField(blank=True)),
                ("seen_suggestion", models.BooleanField(default=False)),
                ("shown_at", models.DateTimeField(blank=True, null=True)),
                ("answered_at", models.DateTimeField(blank=True, null=True)),
                ("seconds", models.FloatField(blank=True, null=True)),
                ("received_at", models.DateTimeField(auto_now_add=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="events", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="events", to="label.project"
                    ),
                ),
                (
                    "item",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="events", to="label.projectitem"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Assignment",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("slot", models.PositiveIntegerField(blank=True, null=True)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("reserved", "reserved"),
                            ("leased", "leased"),
                            ("done", "done"),
                            ("skipped", "skipped"),
                            ("expired", "expired"),
                            ("extra", "extra"),
                        ],
                        max_length=10,
                    ),
                ),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="assignments",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("project", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to="label.project")),
                (
                    "item",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="assignments", to="label.projectitem"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="AuditRecord",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField(auto_now_add=True)),
                ("action", models.CharField(max_length=40)),
                ("subject", models.CharField(blank=True, max_length=300)),
                ("address", models.CharField(blank=True, max_length=64)),
                (
                    "user",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="audit",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["action", "subject", "at"], name="label_audit_subject"),
                    models.Index(fields=["action", "address", "at"], name="label_audit_address"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Membership",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("most", models.PositiveIntegerField(blank=True, help_text="Most items; empty: no limit.", null=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="memberships",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="memberships", to="label.project"
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("project", "user"), name="label_member")],
            },
        ),
        migrations.AddIndex(
            model_name="projectitem",
            index=models.Index(
                condition=models.Q(("open_slots__gt", 0)), fields=["project", "position"], name="label_item_open"
            ),
        ),
        migrations.AddIndex(
            model_name="projectitem",
            index=models.Index(fields=["project", "group"], name="label_item_group"),
        ),
        migrations.AddIndex(
            model_name="projectitem",
            index=models.Index(
                condition=models.Q(("repeat_of", ""), _negated=True),
                fields=["project", "repeat_of"],
                name="label_item_repeat",
            ),
        ),
        migrations.AddIndex(
            model_name="projectitem",
            index=models.Index(
                condition=models.Q(("disputed", True)), fields=["project", "-distance"], name="label_item_disputed"
            ),
        ),
        migrations.AddConstraint(
            model_name="projectitem",
            constraint=models.UniqueConstraint(fields=("project", "key"), name="label_item_key"),
        ),
        migrations.AddConstraint(
            model_name="projectitem",
            constraint=models.UniqueConstraint(fields=("project", "position"), name="label_item_position"),
        ),
        migrations.AddIndex(
            model_name="labelevent",
            index=models.Index(fields=["item", "user", "id"], name="label_event_item"),
        ),
        migrations.AddIndex(
            model_name="labelevent",
            index=models.Index(fields=["project", "user", "id"], name="label_event_mine"),
        ),
        migrations.AddIndex(
            model_name="assignment",
            index=models.Index(fields=["project", "user", "state"], name="label_assignment_mine"),
        ),
        migrations.AddIndex(
            model_name="assignment",
            index=models.Index(fields=["project", "state", "expires_at"], name="label_assignment_expiry"),
        ),
        migrations.AddConstraint(
            model_name="assignment",
            constraint=models.UniqueConstraint(fields=("item", "user"), name="label_assignment_person"),
        ),
        migrations.AddConstraint(
            model_name="assignment",
            constraint=models.UniqueConstraint(fields=("item", "slot"), name="label_assignment_slot"),
        ),
        migrations.RunPython(create_triggers),
    ]
