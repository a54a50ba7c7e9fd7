"""The tables of a store, and whether a file has them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import cache

from ragworth.core.errors import StoreError

APPLICATION_ID = 0x72677774
"""Marks a SQLite file as ours."""

SCHEMA_VERSION = 2
"""Stores of another version are refused. Raise it with every change of `SCHEMA`."""

SCHEMA = """
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
        made REAL NOT NULL
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
"""


def prepare_file(db: sqlite3.Connection, file: str) -> None:
    """Create the tables in an empty file; reject other files and versions."""
    db.execute("BEGIN")  # one snapshot: another process may be creating them
    (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    (mark,) = db.execute("PRAGMA application_id").fetchone()
    db.execute("COMMIT")
    if tables and mark != APPLICATION_ID:
        raise StoreError("this SQLite file is not a store of calls", file=file)
    if tables and version != SCHEMA_VERSION:
        raise StoreError(
            f"it was written by another version of ragworth (schema {version})",
            file=file,
            expected=f"schema {SCHEMA_VERSION}",
            remedy="use that version of ragworth, or name another store",
        )
    if tables:
        _check_schema(db, file)
    db.execute("PRAGMA trusted_schema = OFF")
    db.execute("PRAGMA synchronous = FULL")
    if not tables:
        db.execute("PRAGMA journal_mode = WAL")
        _create_tables(db)


def _check_schema(db: sqlite3.Connection, file: str) -> None:
    """Reject tables whose schema isn't ours, and triggers."""
    rows = db.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
    tables = {name: " ".join(str(sql).split()) for kind, name, sql in rows if kind in ("table", "view")}
    foreign = [f"the {kind} {name!r}" for kind, name, _ in rows if kind == "trigger"]
    foreign += [f"another form of {name!r}" for name, sql in _expected_tables().items() if tables.get(name) != sql]
    if foreign:
        raise StoreError(
            f"its schema was changed by another program: it has {', '.join(foreign)}",
            file=file,
            expected="the tables that ragworth creates",
            remedy="use another store, or an earlier copy",
        )


def _create_tables(db: sqlite3.Connection) -> None:
    """Create all tables atomically, unless another process has done so meanwhile."""
    db.execute("BEGIN EXCLUSIVE")
    try:
        (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        for statement in SCHEMA.split(";") if not tables else ():
            if statement.strip():
                db.execute(statement)
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


@cache
def _expected_tables() -> dict[str, str]:
    """SQL of the tables by name."""
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(SCHEMA)
        rows = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
    return {name: " ".join(sql.split()) for name, sql in rows}
