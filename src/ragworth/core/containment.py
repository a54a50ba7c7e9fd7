"""Check that a path stays inside a folder after following all symbolic links."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ragworth.core.errors import MAX_PATH_LENGTH, InputError, quote_short

LINK_REMEDY = "replace the link by a folder of its own"
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

    For a file, this includes the files that SQLite puts beside it; ``folder`` itself is none, even before it is there.
    """
    for ending in ("",) if path == folder or path.is_dir() else SQLITE_SUFFIXES:
        beside = path.with_name(path.name + ending) if ending else path
        if not is_inside(beside, folder):
            yield beside
            return
    for root, folders, files in os.walk(path):
        for name in (*folders, *files):
            each = Path(root, name)
            if each.is_symlink() and not is_inside(each, folder):
                yield each


def refuse_links(path: Path, folder: Path, remedy: str = LINK_REMEDY) -> None:
    """Refuse to write to a path if it, or a link below it, leads out of a folder."""
    outside = next(paths_outside(path, folder), None)
    if outside is not None:
        raise outside_error(outside, remedy)


def outside_error(path: Path, remedy: str = LINK_REMEDY) -> InputError:
    target = quote_short(str(path.resolve()), MAX_PATH_LENGTH)
    return InputError(f"it leads out of its folder, to {target}", file=str(path), remedy=remedy)
