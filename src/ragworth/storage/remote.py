"""Files in object stores: ``s3://bucket/path``, ``gs://bucket/path``, ``az://container/path``.

Credentials and endpoints come from the environment, as for the providers' own tools (``AWS_ACCESS_KEY_ID``,
``AWS_ENDPOINT_URL``, ``GOOGLE_APPLICATION_CREDENTIALS``, …); ragworth has no setting for them and writes none down.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from ragworth.errors import InputError

URL = re.compile(r"(?:s3|gs|az)://[^/\s]+(?:/.*)?")
CHUNK = 16 << 20
PATIENCE = timedelta(seconds=30)
"""How long a request is tried again when the server fails."""


def is_url(text: str | Path) -> bool:
    return isinstance(text, str) and URL.fullmatch(text) is not None


class RemoteFile(NamedTuple):
    """A file of a folder. ``version`` is its entity tag, which changes with its content."""

    name: str
    size: int
    version: str


@dataclass(frozen=True)
class RemotePath:
    """A file or folder in an object store. Problems are `OSError`, as with files on this machine."""

    url: str

    def __post_init__(self) -> None:
        if not is_url(self.url) or any(part in (".", "..") for part in self.url.split("/")):
            raise InputError(f"{self.url!r} is no address", expected="s3://BUCKET/PATH, gs://… or az://…")

    def __str__(self) -> str:
        return self.url

    def __truediv__(self, name: str) -> RemotePath:
        return RemotePath(f"{self.url.rstrip('/')}/{name}")

    @property
    def name(self) -> str:
        return self.url.rstrip("/").rpartition("/")[2]

    @property
    def stem(self) -> str:
        return Path(self.name).stem

    @property
    def parent(self) -> RemotePath:
        return RemotePath(self.url.rstrip("/").rpartition("/")[0])

    @property
    def _key(self) -> str:
        """The path in the bucket."""
        return self.url.split("://", 1)[1].partition("/")[2].strip("/")

    @cached_property
    def _store(self) -> Any:
        """The bucket, and in it the folder."""
        obstore = _require_obstore(self.url)
        scheme, rest = self.url.split("://", 1)
        kind = {"s3": obstore.store.S3Store, "gs": obstore.store.GCSStore, "az": obstore.store.AzureStore}[scheme]
        # A store on this machine or in a private network may have no certificate; its user names it so.
        plain = os.environ.get("AWS_ENDPOINT_URL", os.environ.get("AWS_ENDPOINT", "")).startswith("http://")
        with _as_os_error(self.url):
            return kind(
                rest.partition("/")[0],
                prefix=self._key or None,
                client_options={"allow_http": plain},
                retry_config={"retry_timeout": PATIENCE},
            )

    def is_file(self) -> bool:
        if not self._key:
            return False  # a bucket
        try:
            self.version()
        except FileNotFoundError:
            return False
        return True

    def version(self) -> RemoteFile:
        """Size and version of a file."""
        obstore = _require_obstore(self.url)
        with _as_os_error(self.url):
            found = obstore.head(self.parent._store, self.name)
        return RemoteFile(self.name, found["size"], found["e_tag"] or str(found["last_modified"]))

    def read_bytes(self) -> bytes:
        obstore = _require_obstore(self.url)
        with _as_os_error(self.url):
            return bytes(obstore.get(self.parent._store, self.name).bytes())

    def write_bytes(self, data: bytes) -> None:
        """Write a file: it is there whole or not at all."""
        obstore = _require_obstore(self.url)
        with _as_os_error(self.url):
            obstore.put(self.parent._store, self.name, data)

    def files(self, pattern: str = "*") -> list[RemoteFile]:
        """All files below a folder whose path matches, in the order of their names."""
        obstore = _require_obstore(self.url)
        found: list[RemoteFile] = []
        with _as_os_error(self.url):
            for batch in obstore.list(self._store):
                for one in batch:
                    version = one["e_tag"] or str(one["last_modified"])
                    found.append(RemoteFile(one["path"], one["size"], version))
        # Tools that show buckets as folders mark these by empty files.
        folders = {parent.as_posix() for one in found for parent in PurePosixPath(one.name).parents}
        real = [one for one in found if one.name and (one.size or one.name not in folders)]
        return sorted(one for one in real if fnmatch.fnmatchcase(one.name, pattern))

    def download(self, target: Path) -> None:
        """Copy a file to this machine, a part at a time."""
        obstore = _require_obstore(self.url)
        with _as_os_error(self.url), target.open("wb") as file:
            for part in obstore.get(self.parent._store, self.name).stream(min_chunk_size=CHUNK):
                file.write(part)

    def upload(self, source: Path) -> None:
        """Copy a file from this machine."""
        obstore = _require_obstore(self.url)
        with _as_os_error(self.url):
            obstore.put(self.parent._store, self.name, source)


def _require_obstore(url: str) -> Any:
    try:
        import obstore
        import obstore.store
    except ImportError as error:
        raise InputError(
            "object stores need the package obstore", file=url, remedy="pip install 'ragworth[remote]'"
        ) from error
    return obstore


@contextmanager
def _as_os_error(url: str) -> Iterator[None]:
    from obstore.exceptions import BaseError, NotFoundError

    try:
        yield
    except (NotFoundError, FileNotFoundError) as error:
        raise FileNotFoundError(f"{url}: there is no such file, or no such bucket") from error
    except (BaseError, ValueError) as error:
        raise OSError(f"{url}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    """What happened, without the library's account of its own state."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)[:300]
