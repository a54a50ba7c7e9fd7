"""Schema migrations of a store. Only ever append; a store records how many it has applied."""

from __future__ import annotations

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
