"""A lock, so that only one evaluation of a workspace runs at a time."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from ragworth.core.errors import FormatError, InputError
from ragworth.core.private import private_file, private_folder
from ragworth.workspace.config import Workspace

POLL_SECONDS = 0.05
"""Seconds between attempts to get the lock."""


@contextmanager
def workspace_lock(space: Workspace, wait: float = 0.0) -> Iterator[None]:
    """Hold the lock of a workspace; wait for another evaluation, or refuse to start.

    The lock is SQLite's, so that it ends with the process that has it, however that ends.
    """
    path = space.path(space.cache) / "evaluating.lock"
    try:
        private_folder(path.parent)
        private_file(path)
        lock = sqlite3.connect(path, timeout=0, isolation_level=None)
    except (OSError, sqlite3.Error) as error:
        raise FormatError(f"it cannot be written to: {error}", file=str(path.parent)) from error
    with closing(lock):
        _acquire(lock, path, space, wait)
        yield


def _acquire(lock: sqlite3.Connection, path: Path, space: Workspace, wait: float) -> None:
    until = time.monotonic() + wait
    while True:
        try:
            lock.execute("BEGIN EXCLUSIVE")
            return
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_BUSY:
                raise FormatError(f"it cannot be written to: {error}", file=str(path)) from error
            if time.monotonic() >= until:
                raise InputError(
                    "another process is evaluating this workspace",
                    file=str(space.file),
                    remedy="wait for it (--wait SECONDS)",
                ) from error
            time.sleep(POLL_SECONDS)
