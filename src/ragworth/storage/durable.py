"""Write files that are there whole or not at all, also after a kill or a power cut."""

from __future__ import annotations

import os
from pathlib import Path

from ragworth.storage.private import open_part_file


def write_durably(path: Path, data: bytes) -> None:
    """Write a private file under another name, sync it to disk, then give it its name."""
    part = open_part_file(path, private=True)
    with part.stream as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    rename_durably(part.path, path)


def rename_durably(part: Path, path: Path) -> None:
    """Give a synced file its name, and sync the folder where the system can do that."""
    part.replace(path)
    if os.name == "posix":
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
