"""Folders of the user's settings and caches, and the caches of workspaces.

ragworth deletes old entries in the cache of a workspace, so it contains nothing else. It is marked by a
``CACHEDIR.TAG``, which backup programs also recognize. A non-empty folder without one isn't a cache.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from ragworth.core.errors import FormatError, InputError, quote_short
from ragworth.core.files import write_output

TAG = "CACHEDIR.TAG"
TAG_TEXT = """Signature: 8a477f597d28d172789f06886806bc55
# This folder is a cache of ragworth. It may be deleted at any time.
"""


def settings_folder() -> Path:
    """``RAGWORTH_CONFIG``, or the system's folder for user settings."""
    if named := os.environ.get("RAGWORTH_CONFIG"):
        return Path(named).expanduser().absolute()
    if os.name == "nt" and (roaming := os.environ.get("APPDATA")):
        return Path(roaming) / "ragworth"
    base = Path(os.environ.get("XDG_CONFIG_HOME") or "")
    return (base if base.is_absolute() else Path.home() / ".config") / "ragworth"


def cache_folder() -> Path:
    """Folder for files that can be rebuilt: ``RAGWORTH_CACHE``, or the user's cache folder."""
    if named := os.environ.get("RAGWORTH_CACHE"):
        return Path(named).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "ragworth"


def check_cache(folder: Path) -> None:
    """Reject a folder with other contents as the cache of a workspace."""
    if not folder.is_dir() or ((folder / TAG).is_file() and not (folder / "ragworth.toml").exists()):
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
    """Create and mark the cache of a workspace. If it can't be written to, that only costs time."""
    with suppress(OSError, FormatError):
        if not (folder / TAG).exists():
            write_output(folder / TAG, TAG_TEXT.encode())
