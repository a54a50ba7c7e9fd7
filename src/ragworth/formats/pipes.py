"""Keep what comes through a pipe, so that it can be read more than once: to tell its format, or the lines of errors."""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
from functools import cache
from pathlib import Path
from threading import Lock

STDIN = "-"
"""The path of what is piped in."""

OPEN_FILE = re.compile(r"/dev/(stdin|fd/\d+)|/proc/(self|\d+)/fd/\d+")
"""Paths of files that the process has open. Through a named pipe, the next reader gets something else."""

_lock = Lock()
_copies: dict[tuple[int, int], Path] = {}


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """A folder for copies, removed at the end of the process."""
    return tempfile.TemporaryDirectory(prefix="ragworth-")


def seekable_path(path: str | Path) -> Path:
    """The path itself; for what is piped in, a copy of it."""
    piped = str(path) == STDIN
    try:
        facts = os.fstat(0) if piped else os.stat(path)  # noqa: PTH116
    except (OSError, ValueError):
        return Path(path)  # opening it says what is wrong
    if not piped and not (stat.S_ISFIFO(facts.st_mode) and OPEN_FILE.fullmatch(str(path))):
        return Path(path)
    with _lock:
        key = facts.st_dev, facts.st_ino
        if key not in _copies:
            copy = Path(_folder().name) / str(len(_copies))
            with open(0 if piped else path, "rb", closefd=not piped) as source, copy.open("wb") as target:
                shutil.copyfileobj(source, target)
            _copies[key] = copy
        return _copies[key]


def can_read_again(path: str | Path) -> bool:
    """Whether a file isn't a named pipe or a device."""
    return seekable_path(path).is_file()
