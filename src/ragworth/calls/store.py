"""A call store: a SQLite file that survives crashes, kills and power cuts.

Answers are committed as they arrive and synced to disk; failures aren't stored. Many processes may read; one at a time
writes.

A file may come from anybody. An answer is used only if a model can have given it (`ragworth.calls.checks`), and it is
read only from tables with our schema, because a view or trigger would run with every statement.
"""

from __future__ import annotations

import os
import socket
import sqlite3
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from ragworth.calls.checks import read_stored_response
from ragworth.calls.serialization import (
    DECODE_ERRORS,
    REQUEST_KINDS,
    card_from_json,
    card_to_json,
    model_digest,
    request_from_json,
    request_to_json,
    response_to_json,
)
from ragworth.core.errors import StoreError
from ragworth.core.files import private_file, private_folder
from ragworth.llm.contract import Card, Failure, Request, Response

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
    CREATE TABLE writer (
        process INTEGER NOT NULL,
        host TEXT NOT NULL,
        since REAL NOT NULL
    )
"""
STATEMENTS = [" ".join(statement.split()) for statement in SCHEMA.split(";")]
"""The tables of a store. A file with others was written by another program, or another version of ragworth."""

LOCK_TIMEOUT = 30
"""Seconds to wait for other users of the file."""

KEYS_PER_LOOKUP = 4096
"""Keys looked up at a time."""

MAX_REQUEST_SIZE = 1 << 28
"""Maximum bytes of a stored request, decompressed."""

UNKNOWN = "unknown"


class StoredCall(NamedTuple):
    """A stored call: ``text`` is its answer as JSON, ``packed`` its request.

    The file may be damaged, so all but the key and the model may be anything.
    """

    key: bytes
    model: Card | None
    kind: object
    text: Any
    made: object
    packed: Any

    def request(self) -> Request:
        """Return the request. Raises ValueError if it can't be read."""
        try:
            unpacking = zlib.decompressobj()
            text = unpacking.decompress(self.packed, MAX_REQUEST_SIZE)
            if not unpacking.eof:
                raise ValueError("it is truncated, or too large")
            return request_from_json(text.decode())
        except DECODE_ERRORS as error:
            raise ValueError(f"its prompt can't be read ({error})") from error

    def response(self) -> Response | Failure:
        """Return the answer, checked against the request if that can be read."""
        try:
            request = self.request()
        except ValueError:
            request = None
        return read_stored_response(self.kind, self.text, request)


class Store:
    """A call store in a file, created if missing."""

    def __init__(self, path: str | Path, *, create: bool = True) -> None:
        self.path = Path(path).expanduser().resolve()  # one store, whatever path leads to it
        if not create and not (self.path.is_file() and self.path.stat().st_size):
            raise StoreError("no such store", file=str(path), remedy="check the path")
        if self.path.is_dir():
            raise StoreError("this is a folder", file=str(path), expected="a file for the store")
        try:
            private_folder(self.path.parent)
            private_file(self.path)
            # check_same_thread: a job may be iterated in another thread than the one that opened the store.
            self._db = sqlite3.connect(self.path, timeout=LOCK_TIMEOUT, isolation_level=None, check_same_thread=False)
        except (sqlite3.Error, OSError) as error:
            raise StoreError(
                f"it can't be opened: {error}", file=str(path), remedy="name a file in a folder that can be written to"
            ) from error
        self._db.text_factory = lambda data: data.decode("utf-8", "replace")
        self._models: dict[bytes, int] = {}
        """Numbers of the models whose cards this object has written."""
        try:
            with self._translate_errors():
                self._prepare_file()
        except StoreError:
            self._db.close()
            raise

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Reword SQLite's errors about a damaged or foreign file."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError, zlib.error) as error:
            remedy = "check the file and its folder, or use another store"
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
                remedy = "make room on its disk if it is full, or use another store; answers so far are kept"
            elif code == sqlite3.SQLITE_CORRUPT:
                remedy = "use a copy from before the damage, or another store"
            raise StoreError(
                f"it can't be used as a call store: {error}",
                file=str(self.path),
                expected="a file that ragworth wrote (calls.sqlite), or a new one",
                remedy=remedy,
            ) from error

    def _prepare_file(self) -> None:
        """Check the file, or create the tables in an empty one.

        Switching to write-ahead logging, and the last user closing the file, make SQLite refuse at once instead of
        after its timeout, so this tries again.
        """
        until = time.monotonic() + LOCK_TIMEOUT
        while True:
            try:
                if self._has_no_tables():
                    self._create_tables()
                self._check_tables()
                self._db.execute("PRAGMA trusted_schema = OFF")
                self._db.execute("PRAGMA synchronous = FULL")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise
                time.sleep(0.02)

    def _has_no_tables(self) -> bool:
        return not self._db.execute("SELECT 1 FROM sqlite_master").fetchone()

    def _create_tables(self) -> None:
        """Create all tables atomically, unless another process has done so meanwhile."""
        self._db.execute("PRAGMA journal_mode = WAL")
        with self._transaction("EXCLUSIVE"):
            for statement in STATEMENTS if self._has_no_tables() else ():
                self._db.execute(statement)

    def _check_tables(self) -> None:
        rows = self._db.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
        foreign = [f"it has the {kind} {name!r}" for kind, name, _ in rows if kind in ("view", "trigger")]
        if foreign or not {" ".join(str(sql).split()) for _, _, sql in rows} >= set(STATEMENTS):
            raise StoreError(
                f"its tables are not those of a call store{': ' if foreign else ''}{', '.join(foreign)}",
                file=str(self.path),
                expected="a store that this version of ragworth wrote, and no other program changed",
                remedy="use an earlier copy, or another store",
            )

    @contextmanager
    def writing(self, wait: float = 0.0) -> Iterator[None]:
        """Hold the write lock, waiting for the current holder or raising an error that names it.

        It is SQLite's lock on a file beside the store, so it ends with its process, however that ends.
        """
        with self._translate_errors(), closing(self._lock(wait)):
            with self._transaction():
                self._db.execute("DELETE FROM writer")
                holder = (os.getpid(), socket.gethostname(), time.time())
                self._db.execute("INSERT INTO writer VALUES (?, ?, ?)", holder)
            try:
                yield
            finally:
                with suppress(sqlite3.Error):
                    self._db.execute("DELETE FROM writer")

    def _lock(self, wait: float) -> sqlite3.Connection:
        """Acquire the lock in short steps, so that an interrupt is noticed."""
        with suppress(OSError):  # SQLite reports the problem
            private_file(f"{self.path}.lock")
        lock = sqlite3.connect(f"{self.path}.lock", timeout=0, isolation_level=None)
        until = time.monotonic() + wait
        while True:
            try:
                lock.execute("BEGIN EXCLUSIVE")
                return lock
            except sqlite3.OperationalError as error:
                busy = error.sqlite_errorcode == sqlite3.SQLITE_BUSY
                if busy and time.monotonic() < until:
                    time.sleep(0.05)
                    continue
                lock.close()
                if not busy:
                    raise
                holder = self._db.execute("SELECT process, host, since FROM writer").fetchone()
                raise StoreError(
                    "another process is writing to it"
                    + (f" (process {holder[0]} on {holder[1]}, since {format_time(holder[2])})" if holder else ""),
                    file=str(self.path),
                    remedy="wait for it (--wait SECONDS), or name another store",
                ) from error

    @contextmanager
    def _transaction(self, kind: str = "IMMEDIATE") -> Iterator[None]:
        self._db.execute(f"BEGIN {kind}")
        try:
            yield
        except BaseException:
            self._models.clear()
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def query(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Run a reading statement."""
        with self._translate_errors():
            return self._db.execute(statement, values).fetchall()

    def look_up(self, keys: Sequence[bytes]) -> Iterator[tuple[bytes, str]]:
        """Yield key and JSON of existing answers, in no particular order. The JSON may be damaged."""
        for start in range(0, len(keys), KEYS_PER_LOOKUP):
            part = keys[start : start + KEYS_PER_LOOKUP]
            marks = ",".join("?" * len(part))
            yield from self.query(f"SELECT key, response FROM answers WHERE key IN ({marks})", part)

    def calls(self) -> Iterator[StoredCall]:
        """Yield all answers with their prompts."""
        cards = self.cards()
        with self._translate_errors():
            rows = self._db.execute(
                "SELECT CAST(key AS BLOB), model, CAST(kind AS TEXT), CAST(response AS TEXT), made, request "
                "FROM answers LEFT JOIN requests USING (key) ORDER BY key"
            )
            for key, model, kind, text, made, packed in rows:
                yield StoredCall(key or b"", cards.get(model), kind or "", text or "", made, packed)

    def cards(self) -> dict[int, Card | None]:
        """Return the models by number; None if the card is damaged."""
        rows = self.query("SELECT number, digest, card FROM models")
        return {number: card_from_json(digest, text) for number, digest, text in rows}

    def card_of(self, partial: Card) -> Card | None:
        """Return the model last used with the same backend, name, revision and endpoint."""
        names = ("backend", "name", "revision", "endpoint")
        rows = self.query(
            "SELECT digest, card FROM models LEFT JOIN answers ON model = number GROUP BY number "
            "ORDER BY max(made) DESC, number DESC"
        )
        for card in (card_from_json(digest, text) for digest, text in rows):
            if card is not None and all(getattr(card, name) == getattr(partial, name) for name in names):
                return replace(card, cuts=partial.cuts)
        return None

    def commit(self, card: Card, answers: Iterable[tuple[bytes, Request, Response]]) -> None:
        """Store answers; all are on disk when this returns."""
        now = time.time()
        rows, requests = [], []
        for key, request, response in answers:
            text = response_to_json(response)
            rows.append((key, REQUEST_KINDS[type(request)], text, *response.usage.bounded()[:3], now))
            requests.append((key, zlib.compress(request_to_json(request).encode(), 1)))
        with self._translate_errors(), self._transaction():
            model = self._model_number(card)
            self._db.executemany(f"INSERT OR REPLACE INTO answers VALUES (?, {model}, ?, ?, ?, ?, ?, ?)", rows)
            self._db.executemany("INSERT OR REPLACE INTO requests VALUES (?, ?)", requests)

    def _model_number(self, card: Card) -> int:
        """Return the number of a model, whose card is written the first time: it may be new, or damaged."""
        digest = model_digest(card)
        if digest not in self._models:
            update = "ON CONFLICT (digest) DO UPDATE SET card = excluded.card"
            row = (digest, card_to_json(card))
            self._db.execute(f"INSERT INTO models (digest, card) VALUES (?, ?) {update}", row)
            (number,) = self._db.execute("SELECT number FROM models WHERE digest = ?", row[:1]).fetchone()
            self._models[digest] = number
        return self._models[digest]


def format_time(moment: object, form: str = "%Y-%m-%d %H:%M:%S", *, utc: bool = False) -> str:
    """Format a timestamp in local time, or in UTC; ``unknown`` if it is invalid: clocks may be wrong."""
    if not isinstance(moment, int | float):
        return UNKNOWN
    try:
        return time.strftime(form, (time.gmtime if utc else time.localtime)(moment))
    except (ValueError, OverflowError, OSError):  # NaN, or a year outside the calendar
        return UNKNOWN
