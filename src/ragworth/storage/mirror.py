"""Copies of remote files and folders on this machine: brought up to date before a command, sent back after it.

What a command writes into the copy of a folder, or beside that of a file, is uploaded when it ends, except stores and
caches: these stay on this machine, where the next command finds them. A file that changed on both sides is an error.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from ragworth.errors import InputError, format_count, format_list
from ragworth.nested_text import parse_json
from ragworth.storage.file_record import RECORD_NAME
from ragworth.storage.output import write_output
from ragworth.storage.private import private_folder
from ragworth.storage.remote import RemotePath

KEPT_HERE = (".sqlite", ".sqlite-wal", ".sqlite-shm")
"""Endings of files that belong to stores."""


class SyncedFile(NamedTuple):
    """A file as it was when both sides were equal: its version there, and size and time here."""

    version: str
    size: int
    time: int


def mirrors_folder() -> Path:
    """``RAGWORTH_MIRRORS``, or a folder among the user's caches."""
    if named := os.environ.get("RAGWORTH_MIRRORS"):
        return Path(named).expanduser().absolute()
    base = Path(os.environ.get("XDG_CACHE_HOME") or "")
    return (base if base.is_absolute() else Path.home() / ".cache") / "ragworth" / "mirrors"


@dataclass(frozen=True)
class Mirror:
    """The copy of a remote folder, or of a single file."""

    remote: RemotePath

    @cached_property
    def home(self) -> Path:
        digest = hashlib.sha256(self.remote.url.rstrip("/").encode()).hexdigest()[:16]
        return mirrors_folder() / digest

    @property
    def path(self) -> Path:
        """The file or folder on this machine."""
        return self.home / self.remote.name

    @property
    def _record(self) -> Path:
        return self.home / "synced.json"

    def _synced(self) -> dict[str, SyncedFile]:
        try:
            facts_by_name = parse_json(self._record.read_text(encoding="utf-8"))
            return {str(name): SyncedFile(*facts) for name, facts in facts_by_name.items()}
        except FileNotFoundError:
            return {}
        except (ValueError, TypeError, AttributeError) as error:
            raise InputError(f"it can't be read: {error}", file=str(self._record), remedy="remove it") from error

    def _remember(self, synced: dict[str, SyncedFile]) -> None:
        write_output(self._record, json.dumps(synced).encode(), durable=True)

    def fetch(self) -> Path:
        """Bring the copy up to date, and return where it is."""
        try:
            files = self.remote.files()
            single = not files
            if single and self.remote.is_file():
                files = [self.remote.version()]
        except OSError as error:
            raise InputError(str(error), remedy="check the address and the credentials in the environment") from error
        if not files:
            raise InputError("there is no such file or folder", file=self.remote.url, remedy="check the address")
        private_folder(self.home)
        synced = self._synced()
        for name in [name for name in synced if not single and name not in {file.name for file in files}]:
            self._remove(name, synced)
        for file in files:
            target = self.path if single else self.path / _inside(file.name, self.remote)
            known = synced.get(file.name)
            if known is not None and known.version == file.version and target.exists():
                continue
            if target.exists() and (known is None or _state(target) != known[1:]):
                raise self._conflict(file.name, target)
            self._download(self.remote if single else self.remote / file.name, target)
            synced[file.name] = SyncedFile(file.version, *_state(target))
            self._remember(synced)
        return self.path

    def _remove(self, name: str, synced: dict[str, SyncedFile]) -> None:
        """Remove the copy of a file that is no longer in the store."""
        target = self.path / _inside(name, self.remote)
        if target.exists() and _state(target) != synced[name][1:]:
            raise self._conflict(name, target)
        target.unlink(missing_ok=True)
        del synced[name]
        self._remember(synced)

    def _conflict(self, name: str, target: Path) -> InputError:
        return InputError(
            "this file changed in the object store, and its copy here changed too",
            file=f"{self._remote_root}/{name}",
            remedy=f"keep one of them: remove {target}, or upload it yourself",
        )

    def _download(self, remote: RemotePath, target: Path) -> None:
        private_folder(target.parent)
        part = target.with_name(f".{target.name[:40]}.{secrets.token_hex(4)}.part")
        try:
            remote.download(part)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise InputError(str(error), remedy="run the command again") from error
        part.replace(target)

    @property
    def _root(self) -> Path:
        """Where commands write: in the copy of a folder, or beside that of a file."""
        return self.path if self.path.is_dir() else self.home

    @property
    def _remote_root(self) -> RemotePath:
        return self.remote if self.path.is_dir() else self.remote.parent

    def send(self) -> int:
        """Upload what is new or changed here; returns how many files."""
        synced = self._synced()
        changed = [name for name in self._written() if synced.get(name, ("",))[1:] != _state(self._root / name)]
        try:
            for name in changed:
                target = self._remote_root / name
                known = synced[name].version if name in synced else None
                if (target.version().version if target.is_file() else None) != known:
                    raise self._conflict(name, self._root / name)
                target.upload(self._root / name)
                synced[name] = SyncedFile(target.version().version, *_state(self._root / name))
                self._remember(synced)
        except OSError as error:
            raise InputError(
                f"results could not be uploaded: {error}",
                remedy=f"they are in {self._root}; the same command uploads them",
            ) from error
        return len(changed)

    def _written(self) -> list[str]:
        """Files that belong in the store, by name; the one that says what the others are comes last."""
        files = (path.relative_to(self._root).as_posix() for path in self._root.rglob("*") if path.is_file())
        mine = [name for name in files if not _stays_here(name) and self._root / name not in (self._record, self.path)]
        return sorted(mine, key=lambda name: (name.endswith("manifest.json"), name))


def fetch(url: str) -> Path:
    """Copy a file or folder from an object store (``s3://…``, ``gs://…``, ``az://…``) to this machine.

    Returns the path of the copy. A copy that is up to date is not fetched again.
    """
    return Mirror(RemotePath(url)).fetch()


def _state(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns


def _stays_here(name: str) -> bool:
    path = PurePosixPath(name)
    hidden = any(part.startswith(".") for part in path.parts) and path.name != RECORD_NAME
    return hidden or name.endswith(KEPT_HERE)


def _inside(name: str, remote: RemotePath) -> PurePosixPath:
    """A path in the copy; a name that leads out of it is an error."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name:
        raise InputError(f"the name {name!r} can't be a file's on this machine", file=remote.url)
    return path


def upload_output(path: Path, remote: RemotePath) -> str:
    """Upload a file or a folder that a command wrote, and say so."""
    files = [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file())
    try:
        for each in files:
            target = remote if path.is_file() else remote / each.relative_to(path).as_posix()
            target.upload(each)
    except OSError as error:
        raise InputError(f"the output could not be uploaded: {error}", remedy=f"it is in {path}") from error
    names = format_list([each.name for each in files], 3)
    return f"{format_count(len(files), 'file')} uploaded to {remote} ({names})"
