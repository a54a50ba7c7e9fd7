"""Django's admin, for owners. Events and the audit log can be read and not changed."""

from __future__ import annotations

from typing import Any

from django.contrib import admin

from ragworth.label.site import audit, models


class ReadOnlyAdmin(admin.ModelAdmin):
    """A table that nobody changes by hand."""

    def has_add_permission(self, request: Any, obj: object = None) -> bool:
        return False

    def has_change_permission(self, request: Any, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: Any, obj: object = None) -> bool:
        return False


class AuditedAdmin(admin.ModelAdmin):
    """A table whose changes are in the audit log."""

    def save_model(self, request: Any, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        fields = ", ".join(form.changed_data)
        audit.record(
            "changed in the admin" if change else "added in the admin", subject=_describe(obj, fields), request=request
        )

    def delete_model(self, request: Any, obj: Any) -> None:
        audit.record("deleted in the admin", subject=_describe(obj), request=request)
        super().delete_model(request, obj)

    def delete_queryset(self, request: Any, queryset: Any) -> None:
        for obj in queryset:
            self.delete_model(request, obj)


def _describe(obj: Any, fields: str = "") -> str:
    return f"{obj._meta.verbose_name} {obj}{f': {fields}' if fields else ''}"


@admin.register(models.Project)
class ProjectAdmin(AuditedAdmin):
    """Titles and switches. K, the task and the seed are fixed once there are labels."""

    list_display = ("title", "slug", "task", "judgments", "item_count", "is_open")
    fields = ("title", "slug", "task", "judgments", "seed", "lease_minutes", "show_suggestions", "blind", "is_open")
    readonly_fields = ("slug", "task", "judgments", "seed")

    def has_add_permission(self, request: Any, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: Any, obj: object = None) -> bool:
        return False


@admin.register(models.User)
class UserAdmin(ReadOnlyAdmin):
    """Accounts. They are changed on the page People, which keeps the last owner; passwords by invitation links."""

    list_display = ("name", "role", "is_active", "last_login")
    fields = ("name", "role", "is_active", "last_login", "joined_at")


@admin.register(models.Membership)
class MembershipAdmin(AuditedAdmin):
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
