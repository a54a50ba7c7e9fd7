"""The schema of a store: its migrations, and bringing a file up to date."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import lru_cache

from ragworth.errors import StoreError

APPLICATION_ID = 0x72677774
"""Marks a SQLite file as ours."""

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE models (
        number INTEGER PRIMARY KEY,
        digest BLOB NOT NULL UNIQUE,
        card TEXT NOT NULL
    );
    CREATE TABLE answers (
        key BLOB PRIMARY KEY,
        model INTEGER NOT NULL REFERENCES models (number),
        kind TEXT NOT NULL,
        response TEXT NOT NULL,
        prompt_tokens INTEGER NOT NULL,
        new_tokens INTEGER NOT NULL,
        seconds REAL NOT NULL,
        made REAL NOT NULL,
        seal BLOB NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE requests (
        key BLOB PRIMARY KEY,
        request BLOB NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE errors (
        key BLOB PRIMARY KEY,
        model INTEGER NOT NULL REFERENCES models (number),
        kind TEXT NOT NULL,
        reason TEXT NOT NULL,
        detail TEXT NOT NULL,
        attempts INTEGER NOT NULL,
        made REAL NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE writer (
        process INTEGER NOT NULL,
        host TEXT NOT NULL,
        since REAL NOT NULL
    );
    """,
)
"""Only ever append; a store records how many it has applied."""


def prepare_file(db: sqlite3.Connection, file: str) -> None:
    """Create or migrate the tables; reject other files and later versions."""
    db.execute("BEGIN")  # one snapshot: another process may be creating them
    (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    (mark,) = db.execute("PRAGMA application_id").fetchone()
    db.execute("COMMIT")
    if tables and mark != APPLICATION_ID:
        raise StoreError("this SQLite file is not a store of calls", file=file)
    if version > len(MIGRATIONS):
        raise StoreError(
            f"it was written by a later version of ragworth (schema {version}, known up to {len(MIGRATIONS)})",
            file=file,
            remedy="update ragworth, or name another store",
        )
    _check_schema(db, file, version if tables else 0)
    db.execute("PRAGMA trusted_schema = OFF")
    db.execute("PRAGMA synchronous = FULL")
    if version < len(MIGRATIONS):
        db.execute("PRAGMA journal_mode = WAL")
        _migrate(db)


def _check_schema(db: sqlite3.Connection, file: str, version: int) -> None:
    """Reject tables whose schema isn't ours, and triggers."""
    rows = db.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
    found = {name: " ".join(str(sql).split()) for kind, name, sql in rows if kind in ("table", "view")}
    foreign = [f"the {kind} {name!r}" for kind, name, _ in rows if kind == "trigger"]
    expected = schema_after(MIGRATIONS[: max(0, version)])
    foreign += [f"another form of {name!r}" for name in expected if found.get(name) != expected[name]]
    if version < 0 or foreign:
        raise StoreError(
            f"its schema was changed by another program: it has {', '.join(foreign) or f'the version {version}'}",
            file=file,
            expected="the tables that ragworth creates",
            remedy="use another store, or an earlier copy",
        )


def _migrate(db: sqlite3.Connection) -> None:
    """Apply missing migrations atomically; another process may have done so meanwhile."""
    db.execute("BEGIN EXCLUSIVE")
    try:
        (version,) = db.execute("PRAGMA user_version").fetchone()
        for step in MIGRATIONS[version:]:
            for statement in step.split(";"):
                if statement.strip():
                    db.execute(statement)
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


@lru_cache(maxsize=4)
def schema_after(steps: tuple[str, ...]) -> dict[str, str]:
    """Tables of a store after these migrations: SQL by name."""
    with closing(sqlite3.connect(":memory:")) as db:
        for step in steps:
            db.executescript(step)
        rows = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
    return {name: " ".join(sql.split()) for name, sql in rows}
