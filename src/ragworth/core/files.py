"""Write files and folders that are there whole or not at all, for the owner only, and never outside of their folder.

Stores, results and caches contain questions, passages and answers, so they are created with modes 0600 and 0700. A
stricter umask still applies, and existing files never become readable to more people. On Windows, where modes have no
effect, files inherit the folder's permissions.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NamedTuple

from ragworth.core.errors import MAX_PATH_LENGTH, FormatError, InputError, quote_short

FILE_MODE, FOLDER_MODE = 0o600, 0o700
PUBLIC_MODE = 0o666
"""Mode of a file that the user named, subject to their umask."""
FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
"""For a new file: an existing file or link is an error."""

PART_NAME = re.compile(r"\..*\.[0-9a-f]{8}\.part", re.DOTALL)
"""Names of partial files and folders, being written or left by a killed process."""
ABANDONED = 24 * 60 * 60
"""Seconds after which a partial folder is left by a killed process."""

LINK_REMEDY = "replace the link by a folder of its own"
SQLITE_SUFFIXES = ("", "-wal", "-shm", "-journal", ".lock")
"""Suffixes of the files that SQLite and a call store put beside a file."""


class PartFile(NamedTuple):
    """A new file that replaces another one when complete."""

    path: Path
    stream: IO[bytes]


@contextmanager
def open_output(path: Path, *, private: bool = True, inside: Path | None = None) -> Iterator[PartFile]:
    """Open a new file beside ``path`` that gets its name when the block ends without an error.

    Parameters
    ----------
    private: for the owner only. The mode of the file to be replaced is a limit: it is copied, and a private file gets
        no permission that the old one lacked. A device or a pipe is no private file: it is written to, not replaced.
    inside: the folder that ragworth writes to. A link in it that leads outside is an error.
    """
    part = None
    try:
        _check_inside(path, inside)
        if not private and _is_device(path):
            with path.open("wb") as stream:
                yield PartFile(path, stream)
            return
        part = _open_part(path, private=private)
        with part.stream as stream:
            yield part
        part.path.replace(path)
    except (OSError, ValueError) as error:
        if isinstance(error, ValueError) and "null byte" not in str(error):
            raise
        reason = error.strerror if isinstance(error, OSError) else "invalid file name"
        raise FormatError(f"cannot be written: {reason or error}", file=str(path)) from error
    finally:
        if part is not None:
            with suppress(OSError):
                part.path.unlink(missing_ok=True)


def write_output(path: Path, data: bytes, *, inside: Path | None = None) -> None:
    """Write a private file, in a folder that is made if it is missing."""
    _check_inside(path, inside)
    with suppress(OSError):  # opening the file raises the error that names it
        private_folder(path.parent)
    with open_output(path, inside=inside) as part:
        part.stream.write(data)


@contextmanager
def open_folder(path: Path) -> Iterator[Path]:
    """Make a private folder beside ``path`` that gets its name when the block ends without an error.

    It replaces an older folder, unless another process has put one there meanwhile.
    """
    private_folder(path.parent)
    _remove_abandoned(path.parent)
    part, old = _part_path(path), _part_path(path)
    part.mkdir(mode=FOLDER_MODE)
    try:
        yield part
        _make_private(part)
        with suppress(FileNotFoundError):
            path.rename(old)
        try:
            part.rename(path)
        except OSError:
            if not path.is_dir():
                raise
    finally:
        shutil.rmtree(part, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


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


def is_inside(path: str | Path, folder: str | Path) -> bool:
    """Return whether ``path``, which need not exist, is in the folder or is the folder. False for a loop of links."""
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


def _check_inside(path: Path, folder: Path | None) -> None:
    if folder is not None and not is_inside(path.parent, folder):
        raise outside_error(path.parent)


def _is_device(path: Path) -> bool:
    """Return whether a path is a device, a pipe, or an open file such as ``/dev/stdout``."""
    if path.absolute().parent.as_posix() in ("/dev", "/dev/fd"):
        return True
    with suppress(OSError, ValueError):
        mode = path.stat().st_mode
        return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
    return False


def _part_path(path: Path) -> Path:
    return path.with_name(f".{path.name[:40]}.{secrets.token_hex(4)}.part")


def _open_part(path: Path, *, private: bool) -> PartFile:
    while True:
        part = _part_path(path)
        with suppress(FileExistsError):
            descriptor = os.open(part, FLAGS, FILE_MODE if private else PUBLIC_MODE)
            break
    stream = os.fdopen(descriptor, "wb")
    _copy_mode(stream, path, private=private)
    return PartFile(part, stream)


def _copy_mode(stream: IO[bytes], old: Path, *, private: bool) -> None:
    if os.name != "posix":
        return
    with suppress(OSError):
        old_mode = old.lstat().st_mode
        if stat.S_ISREG(old_mode):
            own_mode = stat.S_IMODE(os.fstat(stream.fileno()).st_mode)
            os.fchmod(stream.fileno(), own_mode & old_mode if private else stat.S_IMODE(old_mode))


def _make_private(folder: Path) -> None:
    """Remove permissions for others from a folder that was just created, and from everything in it."""
    for path in (folder, *folder.rglob("*")):
        if os.name == "posix" and not path.is_symlink():
            path.chmod(stat.S_IMODE(path.stat().st_mode) & FOLDER_MODE)


def _remove_abandoned(folder: Path) -> None:
    for part in folder.iterdir():
        with suppress(OSError):
            if PART_NAME.fullmatch(part.name) and part.is_dir() and part.stat().st_mtime < time.time() - ABANDONED:
                shutil.rmtree(part, ignore_errors=True)
