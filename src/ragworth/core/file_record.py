"""List which files of a folder ragworth wrote, so that only those are replaced or deleted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO

from ragworth.core.errors import FormatError, InputError, format_count
from ragworth.core.files import is_inside, open_output, outside_error, private_folder, write_output
from ragworth.core.nested_text import parse_json

RECORD_NAME = ".ragworth-files.json"
MAX_LISTED = 12
"""Maximum number of files listed in an error."""

WriteFile = Callable[[IO[bytes]], object]
"""Writes the content of a file, so that a large one needn't fit in memory."""


class FileRecord:
    """The files of a folder that ragworth wrote. ``remedy`` ends the error about a file in the way."""

    def __init__(self, folder: str | Path, remedy: str = "move it away") -> None:
        self.folder = Path(folder)
        self.remedy = remedy
        self.names = _read_record(self.folder / RECORD_NAME)
        """Files that ragworth wrote, whether or not they still exist."""

    def refuse_foreign(self, names: Iterable[str]) -> None:
        """Raise an error if some of ``names`` exist but weren't written by ragworth."""
        if taken := [name for name in names if self._is_taken(name) and not self._is_ours(name)]:
            raise InputError(
                f"{format_count(len(taken), 'file')} in the way: ragworth did not write "
                f"{'it' if len(taken) == 1 else 'them'}",
                more=(*taken[:MAX_LISTED], *(["…"] if len(taken) > MAX_LISTED else [])),
                file=str(self.folder),
                remedy=self.remedy,
            )

    def write(self, name: str, data: bytes | WriteFile, *, adopt: bool = False) -> str:
        """Write a file atomically, readable only by its owner, and return its SHA-256.

        It is listed before it gets its name, so a process killed in between leaves nothing that the next one takes for
        somebody else's. ``adopt``: the user named the file, so replace it whoever wrote it.
        """
        if not adopt:
            self.refuse_foreign([name])
        path = self.folder / name
        self._make(path.parent)
        with open_output(path, inside=self.folder) as part:
            part.stream.write(data) if isinstance(data, bytes) else data(part.stream)
            part.stream.flush()
            with part.path.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
            if name not in self.names:
                self.names.add(name)
                self.save()
        return digest

    def remove(self, names: Iterable[str]) -> None:
        """Delete files that ragworth wrote."""
        for name in names:
            if self._is_ours(name):
                (self.folder / name).unlink(missing_ok=True)

    def finish(self) -> None:
        """Forget deleted files."""
        self.names = {name for name in self.names if (self.folder / name).is_file()}
        self.save()

    def save(self) -> None:
        write_output(self.folder / RECORD_NAME, f"{json.dumps(sorted(self.names), indent=1)}\n".encode())

    def _make(self, folder: Path) -> None:
        if not is_inside(folder, self.folder):
            raise outside_error(folder)
        try:
            private_folder(folder)
        except OSError as error:
            raise FormatError(f"can't be created: {error.strerror or error}", file=str(folder)) from error

    def _is_taken(self, name: str) -> bool:
        path = self.folder / name
        return path.exists() or path.is_symlink()

    def _is_ours(self, name: str) -> bool:
        """Return whether ragworth wrote a file, and no link leads to it."""
        path = self.folder / name
        above = [each for each in path.parents if each != self.folder and each.is_relative_to(self.folder)]
        return name in self.names and path.is_file() and not any(each.is_symlink() for each in (path, *above))


def _read_record(path: Path) -> set[str]:
    """Read a record; a missing or damaged one is empty, so that nothing is replaced or deleted."""
    try:
        return {name for name in parse_json(path.read_text(encoding="utf-8")) if _is_plain_name(name)}
    except (OSError, ValueError, TypeError, AttributeError):
        return set()


def _is_plain_name(name: str) -> bool:
    """Return whether a name stays in its folder on any system."""
    return not any(part in ("", ".", "..") or set(part) & set("\\:\0") for part in name.split("/"))
