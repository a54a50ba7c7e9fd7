"""Cache folders of a workspace. ragworth deletes old entries in them, so they contain nothing else.

A cache is marked by a ``CACHEDIR.TAG``, which backup programs also recognize. A non-empty folder without one isn't a
cache.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from ragworth.core.errors import FormatError, InputError, quote_short
from ragworth.core.output import write_output
from ragworth.core.private import private_folder

TAG = "CACHEDIR.TAG"
TAG_TEXT = """Signature: 8a477f597d28d172789f06886806bc55
# This folder is a cache of ragworth. It may be deleted at any time.
"""


def check_cache(folder: Path) -> None:
    """Reject a folder with other contents."""
    if not folder.is_dir() or _is_cache(folder):
        return
    others = sorted(each.name for each in folder.iterdir())
    if others:
        raise InputError(
            f"this folder is not a cache: it contains other files, such as {quote_short(others[0])}",
            file=str(folder),
            expected="an empty folder, or a cache of ragworth",
            remedy='name another one under [paths], such as cache = ".ragworth", or with --cache DIR',
        )


def mark_cache(folder: Path) -> None:
    """Create and mark a cache. If it can't be written to, that only costs time."""
    with suppress(OSError, FormatError):
        private_folder(folder)
        if not (folder / TAG).exists():
            write_output(folder / TAG, TAG_TEXT.encode())


def _is_cache(folder: Path) -> bool:
    if (folder / "ragworth.toml").exists():
        return False
    return (folder / TAG).is_file()
