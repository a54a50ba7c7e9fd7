"""Recognize errors that mean the machine ran out of memory, threads or files."""

from __future__ import annotations

import errno
import re
from typing import Literal

Shortage = Literal["memory", "threads", "files"]

MEMORY_PATTERN = re.compile(
    r"out of memory|(can't|cannot|could not|failed to|unable to) allocate|bad_alloc|memory allocation|"
    r"failed to map segment|Polars binary is missing",  # raised when Polars' library can't be loaded
    re.IGNORECASE,
)
THREADS_PATTERN = re.compile(
    r"can't start new thread|thread ?pool|failed to spawn thread|pthread_create", re.IGNORECASE
)
ERRNO_SHORTAGES: dict[int | None, Shortage] = {errno.ENOMEM: "memory", errno.EAGAIN: "threads", errno.EMFILE: "files"}

MAX_CAUSES = 8
"""How many causes of an error to examine."""


def find_shortage(error: BaseException) -> Shortage | None:
    """Return what the machine ran out of, according to an error or one of its causes."""
    found: BaseException | None = error
    for _ in range(MAX_CAUSES):
        if found is None:
            return None
        if (short := _shortage_of(found)) is not None:
            return short
        found = found.__cause__ or found.__context__
    return None


def _shortage_of(error: BaseException) -> Shortage | None:
    if isinstance(error, MemoryError):
        return "memory"
    if isinstance(error, OSError) and error.errno in ERRNO_SHORTAGES:
        return ERRNO_SHORTAGES[error.errno]
    # RuntimeError of threading and torch, ImportError of the loader, errors and panics of Polars.
    text = str(error)[:2000]
    return "threads" if THREADS_PATTERN.search(text) else "memory" if MEMORY_PATTERN.search(text) else None
