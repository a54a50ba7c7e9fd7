"""Create files and folders that only their owner can read.

Stores, results and caches contain questions, passages and answers, so they are created with modes 0600 and 0700. A
stricter umask still applies, and existing files never become readable to more people. On Windows, where modes have no
effect, files inherit the folder's permissions.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

FILE_MODE, FOLDER_MODE = 0o600, 0o700
FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
"""For a new file: an existing file or link is an error."""


def private_folder(path: str | Path) -> None:
    """Create a folder and its missing parents for the owner only. Existing folders keep their mode."""
    path = Path(path)
    try:
        path.mkdir(mode=FOLDER_MODE)
    except FileNotFoundError:
        private_folder(path.parent)
        path.mkdir(mode=FOLDER_MODE, exist_ok=True)
    except OSError:
        if not path.is_dir():
            raise


def private_file(path: str | Path) -> None:
    """Create an empty file for the owner only; an existing one stays as it is.

    SQLite opens it afterwards, and gives its log and shared memory the same mode.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, FLAGS, FILE_MODE))


def make_private(folder: Path) -> None:
    """Remove permissions for others from a folder that was just created, and from everything in it."""
    for path in (folder, *folder.rglob("*")):
        if os.name == "posix" and not path.is_symlink():
            path.chmod(stat.S_IMODE(path.stat().st_mode) & FOLDER_MODE)
