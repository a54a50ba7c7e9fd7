"""Cache expensive artifacts in a folder, under the hash of everything they depend on.

Each artifact is a folder of files with a list of their digests, which gets its name when it is
complete. Damaged ones are rebuilt. If the cache can't be written to, that only costs time.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from ragworth.core.files import open_folder
from ragworth.core.nested_text import parse_json

T = TypeVar("T")

FILE_LIST = "files.json"
"""The list of a folder's files: name → size and SHA-256."""

HASHED_ROWS = 1 << 16
"""Rows hashed at a time."""


def digest(facts: Mapping[str, Any]) -> str:
    """Name of an artifact that depends on these facts."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]


def table_fingerprint(frame: pl.DataFrame) -> str:
    """Digest of a text table: its values in order, however it is chunked."""
    digest_so_far = hashlib.sha256()
    for part in frame.iter_slices(HASHED_ROWS):
        for column in part.iter_columns():
            digest_so_far.update(column.str.len_bytes().to_numpy().astype("<u4").tobytes())
            digest_so_far.update("".join(column.str.join("")).encode())
    return digest_so_far.hexdigest()


def load_or_build(
    folder: Path | None,
    name: str,
    *,
    make: Callable[[], T],
    save: Callable[[T, Path], None],
    load: Callable[[Path], T],
) -> T:
    """Load an artifact by name, or build and store it if it is missing or damaged."""
    if folder is None:
        return make()
    place = folder / name
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):  # any result of damage
        if is_intact(place):
            return load(place)
    built = make()
    with suppress(OSError), open_folder(place) as part:
        save(built, part)
        files = {path.name: (path.stat().st_size, _hash(path)) for path in sorted(part.iterdir())}
        (part / FILE_LIST).write_text(json.dumps(files), encoding="utf-8")
    return built


def is_intact(place: Path) -> bool:
    """Whether all files of a folder exist, as they were written."""
    files = parse_json((place / FILE_LIST).read_bytes())
    return all(
        (place / name).stat().st_size == size and _hash(place / name) == sha256
        for name, (size, sha256) in files.items()
    )


def _hash(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
