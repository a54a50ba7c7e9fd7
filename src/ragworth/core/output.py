"""Write files that are there whole or not at all, and never outside of a folder that a link leads out of."""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NamedTuple

from ragworth.core.containment import is_inside, outside_error
from ragworth.core.errors import FormatError
from ragworth.core.private import FILE_MODE, FLAGS, private_folder

PUBLIC_MODE = 0o666
"""Mode of a file that the user named, subject to their umask."""

PART_NAME = re.compile(r"\..*\.[0-9a-f]{8}\.part", re.DOTALL)
"""Names of partial files, being written or left by a killed process."""


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


def _is_device(path: Path) -> bool:
    """Return whether a path is a device, a pipe, or an open file such as ``/dev/stdout``."""
    if path.absolute().parent.as_posix() in ("/dev", "/dev/fd"):
        return True
    with suppress(OSError, ValueError):
        mode = path.stat().st_mode
        return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
    return False


def _check_inside(path: Path, folder: Path | None) -> None:
    if folder is not None and not is_inside(path.parent, folder):
        raise outside_error(path.parent)


def _open_part(path: Path, *, private: bool) -> PartFile:
    while True:
        part = path.with_name(f".{path.name[:40]}.{secrets.token_hex(4)}.part")
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
