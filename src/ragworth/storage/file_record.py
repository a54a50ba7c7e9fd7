"""Record which files of a folder ragworth wrote, so that only those are replaced or deleted.

A hidden file in the folder lists the name and SHA-256 of each. A file counts as ragworth's if both match. The digest is
recorded before the file is written, beside that of the file it replaces, so a process killed in between leaves
nothing that the next one takes for somebody else's.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO

from ragworth.errors import FormatError, InputError, format_count
from ragworth.nested_text import parse_json
from ragworth.storage.containment import is_inside, outside_error
from ragworth.storage.output import PART_NAME, open_output, write_output
from ragworth.storage.private import private_folder

RECORD_NAME = ".ragworth-files.json"
FORMAT = 1
DAY = 24 * 60 * 60
MAX_LISTED = 12
"""Maximum number of files listed in an error."""

WriteFile = Callable[[IO[bytes]], object]
"""Writes the content of a file, so that a large one needn't fit in memory."""


class FileRecord:
    """The files of a folder that ragworth wrote. ``remedy`` ends the error about a file in the way."""

    def __init__(self, folder: str | Path, remedy: str = "move it away") -> None:
        self.folder = Path(folder)
        self.remedy = remedy
        self._digests = _read_record(self.folder / RECORD_NAME)

    @property
    def names(self) -> set[str]:
        """Files that ragworth wrote, whether or not they still exist."""
        return set(self._digests)

    def foreign(self, names: Iterable[str]) -> list[str]:
        """Those of ``names`` that exist but weren't written by ragworth."""
        return [name for name in names if self._taken(name) and not self._is_ours(name)]

    def refuse_foreign(self, names: Iterable[str]) -> None:
        """Raise an error if some of ``names`` exist but weren't written by ragworth."""
        if taken := self.foreign(names):
            it, was = ("it", "it was") if len(taken) == 1 else ("them", "they were")
            raise InputError(
                f"{format_count(len(taken), 'file')} in the way: ragworth did not write {it}, or {was} changed since",
                more=(*taken[:MAX_LISTED], *(["…"] if len(taken) > MAX_LISTED else [])),
                file=str(self.folder),
                remedy=self.remedy,
            )

    def write(self, name: str, data: bytes | WriteFile, *, adopt: bool = False) -> str:
        """Write a file atomically, readable only by its owner, and return its digest.

        ``adopt``: the user named the file, so replace it whoever wrote it.
        """
        if not adopt:
            self.refuse_foreign([name])
        path = self.folder / name
        self._make(path.parent)
        with open_output(path, inside=self.folder) as part:
            part.stream.write(data) if isinstance(data, bytes) else data(part.stream)
            part.stream.flush()
            digest = _digest(part.path)
            self._digests[name] = (*self._digests.get(name, ())[-1:], digest)
            self.save()
        self._digests[name] = (digest,)
        return digest

    def remove(self, names: Iterable[str]) -> None:
        """Delete files that ragworth wrote and nobody has changed since."""
        for name in names:
            if self._is_ours(name):
                (self.folder / name).unlink(missing_ok=True)

    def finish(self) -> None:
        """Forget deleted files, and remove partial files left by killed processes at least a day ago."""
        self._digests = {name: each for name, each in self._digests.items() if (self.folder / name).is_file()}
        self.save()
        for folder in {(self.folder / name).parent for name in (RECORD_NAME, *self._digests)}:
            _sweep(folder)

    def save(self) -> None:
        files = {name: list(each) for name, each in sorted(self._digests.items())}
        text = json.dumps({"format": FORMAT, "files": files}, indent=1) + "\n"
        write_output(self.folder / RECORD_NAME, text.encode())

    def _make(self, folder: Path) -> None:
        if not is_inside(folder, self.folder):
            raise outside_error(folder)
        try:
            private_folder(folder)
        except OSError as error:
            raise FormatError(f"can't be created: {error.strerror or error}", file=str(folder)) from error

    def _taken(self, name: str) -> bool:
        path = self.folder / name
        return path.exists() or path.is_symlink()

    def _is_ours(self, name: str) -> bool:
        """Whether a file is as ragworth wrote it, and has no links to or from it."""
        path = self.folder / name
        above = [each for each in path.parents if each != self.folder and each.is_relative_to(self.folder)]
        if any(each.is_symlink() for each in (path, *above)) or not path.is_file():
            return False
        with suppress(OSError):
            return _digest(path) in self._digests.get(name, ())
        return False


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _read_record(path: Path) -> dict[str, tuple[str, ...]]:
    """Read a record; a missing or damaged one counts as empty, so that nothing is replaced or deleted."""
    try:
        record = parse_json(path.read_text(encoding="utf-8"))
        files = record["files"] if record["format"] == FORMAT else {}
        return {name: tuple(each) for name, each in files.items() if _is_plain_name(name) and isinstance(each, list)}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _is_plain_name(name: str) -> bool:
    """Whether a name stays in its folder on any system."""
    return not any(part in ("", ".", "..") or set(part) & set("\\:\0") for part in name.split("/"))


def _sweep(folder: Path) -> None:
    for path in folder.glob(".*.part"):
        with suppress(OSError):
            if PART_NAME.fullmatch(path.name) and path.lstat().st_mtime < time.time() - DAY:
                path.unlink()
