"""Create files and folders that only their owner can read.

Stores, results and caches contain questions, passages and answers, so they are created with modes 0600 and 0700. A
stricter umask still applies, and existing files never become readable to more people. On Windows, where modes have no
effect, files inherit the folder's permissions.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple

FILE_MODE, FOLDER_MODE = 0o600, 0o700
PUBLIC_MODE = 0o666
"""Mode of a file that the user named, subject to their umask."""

FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
"""For a new file: an existing file or link is an error."""

PART_NAME = re.compile(r"\..*\.[0-9a-f]{8}\.part", re.DOTALL)
"""Names of partial files, being written or left by a killed process."""


class PartFile(NamedTuple):
    """A new file that replaces another one when complete."""

    path: Path
    stream: IO[bytes]


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


def open_part_file(path: Path, *, private: bool) -> PartFile:
    """Open a new file with a unique name in the same folder.

    ``private``: for the owner only. The mode of the file to be replaced is a limit: it is copied, and a private file
    gets no permission that the old one lacked.
    """
    while True:
        part = path.with_name(f".{path.name[:40]}.{secrets.token_hex(4)}.part")
        with suppress(FileExistsError):
            descriptor = os.open(part, FLAGS, FILE_MODE if private else PUBLIC_MODE)
            break
    stream = os.fdopen(descriptor, "wb")
    _copy_mode(stream, path, private=private)
    return PartFile(part, stream)


def make_private(folder: Path) -> None:
    """Remove permissions for others from a folder that was just created, and from everything in it."""
    for path in (folder, *folder.rglob("*")):
        if os.name == "posix" and not path.is_symlink():
            path.chmod(stat.S_IMODE(path.stat().st_mode) & FOLDER_MODE)


def _copy_mode(stream: IO[bytes], old: Path, *, private: bool) -> None:
    if os.name != "posix":
        return
    with suppress(OSError):
        there = old.lstat().st_mode
        if stat.S_ISREG(there):
            mine = stat.S_IMODE(os.fstat(stream.fileno()).st_mode)
            os.fchmod(stream.fileno(), mine & there if private else stat.S_IMODE(there))
