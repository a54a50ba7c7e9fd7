"""Suppress Rust's panic messages on the terminal."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock

SETTLE_SECONDS = 0.1
"""Seconds of silence after which a failed read counts as ended in all threads."""

MAX_SETTLE_SECONDS = 2.0
"""Maximum seconds to wait for that."""

_lock = Lock()


@contextmanager
def quiet_stderr() -> Iterator[None]:
    """Buffer standard error, and drop it if reading fails.

    Rust prints a panic to file descriptor 2 before Python sees an exception, and Polars can't turn that off. A panic in
    one thread may come with an ordinary error from another, and some time after it, so every failure drops the buffer
    and waits until no thread writes any more. After success the buffer is printed.
    """
    with _lock, tempfile.TemporaryFile() as held:
        _flush()
        try:
            terminal = os.dup(2)
        except OSError:  # standard error is closed, so there is nothing to suppress
            yield
            return
        failed = True
        try:
            os.dup2(held.fileno(), 2)
            yield
            failed = False
        except BaseException:  # a Polars panic is not an Exception
            _settle(held.fileno())
            raise
        finally:
            _flush()
            os.dup2(terminal, 2)
            os.close(terminal)
            held.seek(0)
            if not failed and (text := held.read()):
                with suppress(OSError):
                    os.write(2, text)


def _settle(file: int) -> None:
    end, size = time.monotonic() + MAX_SETTLE_SECONDS, -1
    while time.monotonic() < end and (now := os.fstat(file).st_size) != size:
        size = now
        time.sleep(SETTLE_SECONDS)


def _flush() -> None:
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.flush()
