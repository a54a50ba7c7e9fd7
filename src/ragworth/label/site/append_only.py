"""Triggers that refuse to change or delete rows of a table."""

from __future__ import annotations

from typing import Any

TABLES = ("label_labelevent", "label_auditrecord")


def create_triggers(apps: Any, editor: Any) -> None:
    """Make the events and the audit log append-only; called by the first migration."""
    postgres = editor.connection.vendor == "postgresql"
    if postgres:
        editor.execute(
            "CREATE FUNCTION label_append_only() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME; END $$",
            params=None,
        )
    for table in TABLES:
        for action in ("UPDATE", "DELETE"):
            head = f"CREATE TRIGGER {table}_no_{action.lower()} BEFORE {action} ON {table}"
            body = (
                "FOR EACH ROW EXECUTE FUNCTION label_append_only()"
                if postgres
                else f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
            )
            editor.execute(f"{head} {body}", params=None)


def replace_triggers() -> None:
    """Replace all triggers of an SQLite database, which may be somebody else's, by ours."""
    from django.db import connection

    with connection.schema_editor() as editor, connection.cursor() as cursor:
        for (name,) in cursor.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            editor.execute(f"DROP TRIGGER {editor.quote_name(name)}", params=None)
        create_triggers(None, editor)
