"""Django's admin, for owners. Events and the audit log can be read and not changed."""

from __future__ import annotations

from typing import Any

from django.contrib import admin

from ragworth.label.site import models


class ReadOnlyAdmin(admin.ModelAdmin):
    """A table that nobody changes by hand."""

    def has_add_permission(self, request: Any, obj: object = None) -> bool:
        return False

    def has_change_permission(self, request: Any, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: Any, obj: object = None) -> bool:
        return False


@admin.register(models.Project)
class ProjectAdmin(admin.ModelAdmin):
    """Titles and switches. K, the task and the seed are fixed once there are labels."""

    list_display = ("title", "slug", "task", "judgments", "item_count", "is_open")
    fields = ("title", "slug", "task", "judgments", "seed", "lease_minutes", "show_suggestions", "blind", "is_open")
    readonly_fields = ("slug", "task", "judgments", "seed")

    def has_add_permission(self, request: Any, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: Any, obj: object = None) -> bool:
        return False


@admin.register(models.User)
class UserAdmin(admin.ModelAdmin):
    """Accounts. Passwords are set by invitation links."""

    list_display = ("name", "role", "is_active", "last_login")
    fields = ("name", "role", "is_active", "last_login", "joined_at")
    readonly_fields = ("name", "last_login", "joined_at")

    def has_add_permission(self, request: Any, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: Any, obj: object = None) -> bool:
        return False


@admin.register(models.Membership)
class MembershipAdmin(admin.ModelAdmin):
    """Who works on what."""

    list_display = ("project", "user", "most")


@admin.register(models.ProjectItem)
class ProjectItemAdmin(ReadOnlyAdmin):
    """Items."""

    list_display = ("key", "project", "group", "slots", "open_slots", "disputed")
    list_filter = ("project", "disputed", "adjudicated")
    search_fields = ("key", "group")


@admin.register(models.LabelEvent)
class LabelEventAdmin(ReadOnlyAdmin):
    """Events."""

    list_display = ("id", "received_at", "user", "kind", "item", "seconds")
    list_filter = ("project", "kind")
    list_select_related = ("user", "item")


@admin.register(models.AuditRecord)
class AuditRecordAdmin(ReadOnlyAdmin):
    """The audit log."""

    list_display = ("at", "user", "action", "subject", "address")
    list_filter = ("action",)
    list_select_related = ("user",)
