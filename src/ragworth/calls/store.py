"""A call store: a SQLite file that survives crashes, kills and power cuts.

Answers are committed as they arrive and synced to disk. Errors are stored separately, with their reason, and retried.
Many processes may read; one at a time writes.

An answer is used only if a model can have given it: whenever it is read, the code that checks a model's replies checks
it. And it is read only from tables with our schema: a file may come from anybody, and a view or trigger in it would run
with every statement.
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

from ragworth.calls.executors.checks import check_outcome
from ragworth.calls.schema import prepare_file
from ragworth.calls.serialization import (
    DECODE_ERRORS,
    REQUEST_KINDS,
    card_from_row,
    card_to_json,
    model_digest,
    request_from_json,
    request_to_json,
    response_from_json,
    response_to_json,
)
from ragworth.core.errors import StoreError, quote_short
from ragworth.core.files import private_file, private_folder
from ragworth.llm.contract import Card, Failure, Request, Response

MAX_REQUEST_SIZE = 1 << 28
"""Maximum bytes of a stored request, decompressed."""


def read_answer(kind: object, text: Any, request: Request | None) -> Response | Failure:
    """Return a stored answer, or the failure ``malformed`` if no model can have given it to this request."""
    try:
        response = response_from_json(str(kind), text)
    except DECODE_ERRORS:
        return Failure("malformed", f"it can't be read as an answer of the kind {quote_short(kind)}")
    return check_outcome(request, response)


class StoreEntry(NamedTuple):
    """A stored call: ``text`` is its answer as JSON; ``packed`` is its request, None if prompts weren't stored.

    The file may be damaged, so all but the key and the model may be anything.
    """

    key: bytes
    model: Card | None
    kind: object
    text: object
    made: object
    packed: Any

    def answer(self) -> Response | Failure:
        """The answer, checked against the request if that was stored and can be read."""
        try:
            request = self.request()
        except ValueError:
            request = None
        return read_answer(self.kind, self.text, request)

    def request(self) -> Request | None:
        """The request. Raises ValueError if it can't be read."""
        if self.packed is None:
            return None
        try:
            unpacking = zlib.decompressobj()
            text = unpacking.decompress(self.packed, MAX_REQUEST_SIZE)
            if not unpacking.eof:
                raise ValueError("it is truncated, or too large")
            return request_from_json(text.decode())
        except DECODE_ERRORS as error:
            raise ValueError(f"its prompt can't be read ({error})") from error


LOCK_TIMEOUT = 30
"""Seconds to wait for other users of the file."""

KEYS_PER_LOOKUP = 4096
"""Keys looked up at a time."""

UNKNOWN_TIME = "unknown"


class Store:
    """A call store in a file, created if missing.

    ``keep_requests``: also store the prompts, compressed, so that calls can be shown and checked.
    """

    def __init__(self, path: str | Path, *, keep_requests: bool = True, create: bool = True) -> None:
        self.path = Path(path).expanduser().resolve()  # one store, whatever path leads to it
        self.keep_requests = keep_requests
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
        self._db.text_factory = _text
        self._models: dict[bytes, int] = {}
        try:
            with self._translate_errors():
                self._prepare_in_turn()
        except StoreError:
            self._db.close()
            raise

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

    def _prepare_in_turn(self) -> None:
        """Prepare the file, waiting for others that do the same.

        Switching to write-ahead logging, and the last user closing the file, make SQLite refuse at once instead of
        after its timeout.
        """
        last = time.monotonic() + LOCK_TIMEOUT
        while True:
            try:
                return prepare_file(self._db, str(self.path))
            except sqlite3.OperationalError as error:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > last:
                    raise
                time.sleep(0.02)

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

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
                raise StoreError(
                    f"another process is writing to it{self._describe_holder()}",
                    file=str(self.path),
                    remedy="wait for it (--wait SECONDS), or name another store",
                ) from error

    def _describe_holder(self) -> str:
        row = self._db.execute("SELECT process, host, since FROM writer").fetchone()
        return (
            "" if row is None else f" (process {row[0]} on {row[1]}, since {format_time(row[2], '%Y-%m-%d %H:%M:%S')})"
        )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._models.clear()
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def look_up(self, keys: Sequence[bytes]) -> Iterator[tuple[bytes, str]]:
        """Yield key and JSON of existing answers, in no particular order. The JSON may be damaged."""
        for start in range(0, len(keys), KEYS_PER_LOOKUP):
            part = keys[start : start + KEYS_PER_LOOKUP]
            marks = ",".join("?" * len(part))
            yield from self.query(f"SELECT key, response FROM answers WHERE key IN ({marks})", part)

    def commit(self, card: Card, done: Iterable[tuple[bytes, Request, Response | Failure]]) -> None:
        """Store answers and errors; all are on disk when this returns."""
        now = time.time()
        answers, errors, requests = [], [], []
        for key, request, outcome in done:
            kind = REQUEST_KINDS[type(request)]
            if isinstance(outcome, Failure):
                # A lone surrogate, which SQLite can't store, is escaped.
                detail = outcome.detail.encode("utf-8", "backslashreplace").decode()
                errors.append((key, kind, outcome.reason, detail, now))
            else:
                answers.append((key, kind, response_to_json(outcome), *outcome.usage.bounded()[:3], now))
            if self.keep_requests:
                requests.append((key, zlib.compress(request_to_json(request).encode(), 1)))
        with self._translate_errors(), self._transaction():
            model = self._model(card)
            run = self._db.executemany
            run(f"INSERT OR REPLACE INTO answers VALUES (?, {model}, ?, ?, ?, ?, ?, ?)", answers)
            run("DELETE FROM errors WHERE key = ?", [row[:1] for row in answers])
            run(
                f"INSERT INTO errors VALUES (?, {model}, ?, ?, ?, 1, ?) ON CONFLICT (key) DO UPDATE SET "
                "reason = excluded.reason, detail = excluded.detail, attempts = attempts + 1, made = excluded.made",
                errors,
            )
            run("INSERT OR REPLACE INTO requests VALUES (?, ?)", requests)

    def insert(self, entries: Iterable[tuple[StoreEntry, Response]]) -> int:
        """Add the answers of another store unless they are there, and return how many were added."""
        added = 0
        with self._translate_errors(), self._transaction():
            run = self._db.execute
            for entry, answer in entries:
                assert entry.model is not None
                created = entry.made if isinstance(entry.made, float) else 0.0
                row = (
                    entry.key,
                    self._model(entry.model),
                    entry.kind,
                    response_to_json(answer),
                    *answer.usage[:3],
                    created,
                )
                added += run("INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row).rowcount
                run("DELETE FROM errors WHERE key = ?", row[:1])
                if self.keep_requests and entry.packed is not None:
                    run("INSERT OR IGNORE INTO requests VALUES (?, ?)", (entry.key, entry.packed))
        return added

    def _model(self, card: Card) -> int:
        """Number of a model, added to the store if new."""
        digest = model_digest(card)
        if digest not in self._models:
            text = card_to_json(card)
            self._db.execute("INSERT OR IGNORE INTO models (digest, card) VALUES (?, ?)", (digest, text))
            number, kept = self._db.execute("SELECT number, card FROM models WHERE digest = ?", (digest,)).fetchone()
            if card_from_row(digest, kept) is None:  # damaged, so replace it
                self._db.execute("UPDATE models SET card = ? WHERE number = ?", (text, number))
            self._models[digest] = number
        return self._models[digest]

    def card_of(self, partial: Card) -> Card | None:
        """The model last used with the same backend, name, revision and endpoint."""
        last = "(SELECT max(made) FROM answers WHERE answers.model = models.number)"
        rows = self.query(f"SELECT digest, card FROM models ORDER BY {last} DESC, number DESC")
        for card in (card_from_row(digest, text) for digest, text in rows):
            if card is not None and all(
                getattr(card, name) == getattr(partial, name) for name in ("backend", "name", "revision", "endpoint")
            ):
                return replace(card, cuts=partial.cuts)
        return None

    def cards(self) -> dict[int, Card | None]:
        """Models by number; None if the card is damaged."""
        rows = self.query("SELECT number, digest, card FROM models")
        return {number: card_from_row(digest, text) for number, digest, text in rows}

    def query(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Run a reading statement."""
        with self._translate_errors():
            return self._db.execute(statement, values).fetchall()

    def change(self, statements: Iterable[tuple[str, Sequence[object]]]) -> None:
        """Apply changes atomically, then free unused space in the file."""
        with self._translate_errors():
            with self._transaction():
                for statement, values in statements:
                    self._db.execute(statement, values)
            self._db.execute("VACUUM")

    def entries(self) -> Iterator[StoreEntry]:
        """Yield all answers, with their prompts if stored."""
        cards = self.cards()
        with self._translate_errors():
            rows = self._db.execute(
                "SELECT CAST(key AS BLOB), model, CAST(kind AS TEXT), CAST(response AS TEXT), made, request "
                "FROM answers LEFT JOIN requests USING (key) ORDER BY key"
            )
            for key, model, kind, text, made, packed in rows:
                yield StoreEntry(key or b"", cards.get(model), kind or "", text or "", made, packed)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def format_time(moment: object, form: str, *, utc: bool = False) -> str:
    """Format a timestamp in local time, or in UTC; ``unknown`` if it is invalid: clocks may be wrong."""
    if not isinstance(moment, int | float):
        return UNKNOWN_TIME
    try:
        return time.strftime(form, (time.gmtime if utc else time.localtime)(moment))
    except (ValueError, OverflowError, OSError):  # NaN, or a year outside the calendar
        return UNKNOWN_TIME
