"""Keeping Rust's panic messages off the terminal."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock

SETTLE_SECONDS = 0.1
"""Seconds without a word after which a failed read is taken to have ended in all threads."""

MAX_SETTLE_SECONDS = 2.0
"""Seconds to wait for that."""

_lock = Lock()


@contextmanager
def quiet_stderr() -> Iterator[None]:
    """Hold back what is written to standard error, and drop it if reading fails.

    Rust prints a panic to file descriptor 2 before Python sees an exception, and Polars has no switch for that. A
    panic in one thread may come with an ordinary error from another, and some time after it: so every failure drops
    what was held back, and waits until no thread writes any more. After success it is printed.
    """
    with _lock, tempfile.TemporaryFile() as held:
        _flush()
        try:
            terminal = os.dup(2)
        except OSError:  # standard error is closed: there is nothing to keep clean
            yield
            return
        failed = True
        try:
            os.dup2(held.fileno(), 2)
            yield
            failed = False
        except BaseException:  # a panic of Polars is no Exception
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
