"""Check whether a path stays inside a folder after following all symbolic links."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

SQLITE_SUFFIXES = ("", "-wal", "-shm", "-journal", ".lock")
"""Suffixes of the files that SQLite and a call store put beside a file."""


def is_inside(path: str | Path, folder: str | Path) -> bool:
    """Whether ``path``, which need not exist, is in the folder or is the folder. False for a loop of links."""
    try:
        return Path(path).resolve().is_relative_to(Path(folder).resolve())
    except (OSError, RuntimeError):
        return False


def paths_outside(path: Path, folder: Path) -> Iterator[Path]:
    """Yield places outside ``folder`` that writing to ``path`` could reach: the path itself, and links below it.

    For a file, this includes the files that SQLite puts beside it.
    """
    for ending in SQLITE_SUFFIXES if not path.is_dir() else ("",):
        beside = path.with_name(path.name + ending) if ending else path
        if not is_inside(beside, folder):
            yield beside
            return
    for root, folders, files in os.walk(path):
        for name in (*folders, *files):
            each = Path(root, name)
            if each.is_symlink() and not is_inside(each, folder):
                yield each
