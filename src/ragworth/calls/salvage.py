"""Rebuild a damaged store from every answer that can be read and matches its seal.

SQLite stops at the first damaged page. Keys are hashes, so a table is read in ranges of keys, and an unreadable range
is split until only the damaged pages are left out.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ragworth.calls.seals import is_intact
from ragworth.calls.serialization import DECODE_ERRORS, response_from_json
from ragworth.calls.store import SEALED_COLUMNS, Store
from ragworth.errors import StoreError

BYTES_PER_RANGE = 256
"""Bytes of the file per smallest range of keys: a few rows, less than a page."""


KEY_PREFIXES = 1 << 32
"""Number of values of the first four bytes of a key."""


class RebuildResult(NamedTuple):
    """Contents of the rebuilt file, and the path of the damaged one."""

    answers: int
    errors: int
    damaged: Path


def is_damaged(store: Store) -> bool:
    """Whether the file itself is damaged, not only rows in it."""
    try:
        return store.query("PRAGMA integrity_check(1)") != [("ok",)]
    except StoreError:
        return True


def rebuild(store: Store) -> RebuildResult:
    """Replace a damaged store with everything readable in it, saving the old file as ``.damaged``.

    Closes the old store.
    """
    damaged, new = Path(f"{store.path}.damaged"), Path(f"{store.path}.rebuilt")
    for path in (damaged, new):
        if path.exists():
            raise StoreError("this file already exists", file=str(path), remedy="move it away, or delete it")
    with store.locked():
        try:
            with Store(new) as rebuilt:
                _copy(store, rebuilt)
                counts = [rebuilt.query(f"SELECT count(*) FROM {table}")[0][0] for table in ("answers", "errors")]
            store.close()
            _replace(store.path, new, damaged)
        finally:
            for suffix in ("", "-wal", "-shm", ".lock"):
                Path(f"{new}{suffix}").unlink(missing_ok=True)
    return RebuildResult(counts[0], counts[1], damaged)


def _replace(path: Path, new: Path, damaged: Path) -> None:
    """Swap the files such that a store exists at ``path`` at every moment."""
    try:
        os.link(path, damaged)
    except OSError:  # a file system without hard links
        shutil.copy2(path, damaged)
    journal = Path(f"{path}-wal")
    if journal.exists():  # the old file's: it must not be applied to the new one
        journal.replace(f"{damaged}-wal")
    Path(f"{path}-shm").unlink(missing_ok=True)
    new.replace(path)


def _copy(store: Store, made: Store) -> None:
    """Copy intact rows one by one, because a store may be larger than memory."""
    made.change(
        (statement, row)
        for statement, rows in (
            ("INSERT OR IGNORE INTO models VALUES (?, ?, ?)", _models(store)),
            ("INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", _answers(store)),
            ("INSERT OR IGNORE INTO errors VALUES (?, ?, ?, ?, ?, ?, ?)", _errors(store)),
            (INSERT_REQUEST, _rows(store, "requests", "key, request")),
        )
        for row in rows
    )


INSERT_REQUEST = """
INSERT OR IGNORE INTO requests SELECT ?1, ?2
WHERE EXISTS (SELECT 1 FROM answers WHERE key = ?1) OR EXISTS (SELECT 1 FROM errors WHERE key = ?1)
"""
"""Keeps prompts whose answer or error was copied."""


def _models(store: Store) -> Iterator[tuple[Any, ...]]:
    for order in ("", "DESC"):
        with suppress(sqlite3.Error):
            yield from store.connection.execute(f"SELECT number, digest, card FROM models ORDER BY number {order}")


def _answers(store: Store) -> Iterator[tuple[Any, ...]]:
    """Sealed columns unchanged; tokens and seconds, which have no seal, from the response."""
    for *sealed, model, stamp in _rows(store, "answers", f"{SEALED_COLUMNS}, model, made"):
        key, kind, response, seal = sealed
        if not is_intact(sealed) or not isinstance(model, int):
            continue
        try:
            usage = response_from_json(kind.decode(), response.decode()).usage.bounded()
        except DECODE_ERRORS:
            continue
        date = stamp if isinstance(stamp, float) else 0.0
        yield key, model, kind.decode(), response.decode(), *usage[:3], date, seal


def _errors(store: Store) -> Iterator[tuple[Any, ...]]:
    kinds = (bytes, int, str, str, str, int, float)
    for row in _rows(store, "errors", "key, model, kind, reason, detail, attempts, made"):
        if all(isinstance(value, kind) for value, kind in zip(row, kinds, strict=True)):
            yield row


def _rows(store: Store, table: str, columns: str) -> Iterator[tuple[Any, ...]]:
    """Rows of a table, except on damaged pages. A row may occur more than once."""
    smallest = KEY_PREFIXES * BYTES_PER_RANGE // max(BYTES_PER_RANGE, store.path.stat().st_size)
    ranges = [(0, KEY_PREFIXES)]
    while ranges:
        start, end = ranges.pop()
        values = [start.to_bytes(4, "big"), end.to_bytes(4, "big") if end < KEY_PREFIXES else b"\xff" * 64]
        try:
            yield from store.connection.execute(
                f"SELECT {columns} FROM {table} WHERE key >= ? AND key < ? ORDER BY key", values
            )
        except sqlite3.Error:
            if end - start > max(1, smallest):
                middle = (start + end) // 2
                ranges += [(start, middle), (middle, end)]
