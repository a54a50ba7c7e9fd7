"""Files and folders that only their owner can read.

Stores, results and caches hold questions, passages and answers, so they are created with the modes 0600 and 0700. A
stricter umask still counts, and what exists already is never made readable for more people. On Windows, where modes
mean nothing, files get what the folder gives them.
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
"""Mode of a file that the user named; their umask decides."""

FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
"""For a new file: one that exists is an error, and so is a link."""

PART_NAME = re.compile(r"\..*\.[0-9a-f]{8}\.part", re.DOTALL)
"""Names of files that are being written, or were when their process was killed."""


class PartFile(NamedTuple):
    """A new file that takes the place of another one when it is whole."""

    path: Path
    stream: IO[bytes]


def private_folder(path: str | Path) -> None:
    """Create a folder and its missing parents, each for the owner alone. Folders that exist keep their mode."""
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
    """Create an empty file for the owner alone; one that exists stays as it is.

    SQLite opens it afterwards, and gives its log and its shared memory the same mode.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, FLAGS, FILE_MODE))


def open_part_file(path: Path, *, private: bool) -> PartFile:
    """A new file in the same folder, under a name that nobody else has.

    ``private``: for the owner alone. A file that it will replace is a limit: its mode is kept, and a private file gets
    no permission that the old one lacked.
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
    """Take permissions for others away from a folder that was just created, and from all that is in it."""
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
