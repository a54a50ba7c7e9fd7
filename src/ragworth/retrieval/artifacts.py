"""Cache expensive artifacts in a folder, under the hash of everything they depend on.

Each artifact is a folder of files with a list of their digests, which gets its name when it is complete. Damaged ones
are rebuilt. If the cache can't be written to, that only costs time. Reading executes nothing, and the folder may be
deleted at any time.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from ragworth.core.files import open_folder
from ragworth.core.nested_text import parse_json

T = TypeVar("T")

Arrays: TypeAlias = Mapping[str, npt.NDArray[Any]]

FILE_LIST = "files.json"
"""The list of a folder's files: name → size and SHA-256."""

HASHED_ROWS = 1 << 16
"""Rows hashed at a time."""

BLOCK_SIZE = 256
"""Texts computed between writes: the most that is lost when a process is killed."""


DAMAGE = (OSError, ValueError, KeyError, TypeError, AttributeError)
"""Errors of reading a damaged artifact."""


def digest(facts: Mapping[str, Any]) -> str:
    """Return the name of an artifact that depends on these facts."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]


def table_fingerprint(frame: pl.DataFrame) -> str:
    """Return the digest of a text table: its values in order, however it is chunked."""
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
    with suppress(*DAMAGE):
        if is_intact(place):
            return load(place)
    built = make()
    _store(place, lambda part: save(built, part))
    return built


def _store(place: Path, save: Callable[[Path], None]) -> None:
    with suppress(OSError), open_folder(place) as part:
        save(part)
        files = {path.name: (path.stat().st_size, _hash(path)) for path in sorted(part.iterdir())}
        (part / FILE_LIST).write_text(json.dumps(files), encoding="utf-8")


def store_arrays(folder: Path, name: str, arrays: Arrays) -> None:
    """Store arrays as one of the artifacts that `all_arrays` reads."""
    _store(folder / name, lambda part: _save_arrays(arrays, part))


def all_arrays(folder: Path) -> Iterator[Arrays]:
    """Load all artifacts of a folder except damaged ones."""
    for place in sorted(folder.iterdir()) if folder.is_dir() else ():
        with suppress(*DAMAGE):
            if is_intact(place):
                yield _load_arrays(place)


def load_or_build_arrays(
    folder: Path | None,
    name: str,
    total: int,
    make: Callable[[range], Arrays],
    progress: Callable[[int, int], None] | None = None,
) -> Arrays:
    """Load the arrays of so many texts, at least one, or build them in blocks, each an artifact until all are there.

    A killed process loses one block. Arrays of the cache are memory-mapped. ``progress`` receives the number of texts
    done and the total.
    """
    blocks = folder / f"{name}.blocks" if folder is not None else None

    def build() -> Arrays:
        parts = []
        for start in range(0, total, BLOCK_SIZE):
            if progress is not None:
                progress(start, total)
            block = range(start, min(start + BLOCK_SIZE, total))
            built = load_or_build(blocks, f"{start:09}", make=lambda: make(block), save=_save_arrays, load=_load_arrays)  # noqa: B023 (called at once)
            parts.append(built)
        if progress is not None:
            progress(total, total)
        return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}

    arrays = load_or_build(folder, name, make=build, save=_save_arrays, load=_load_arrays)
    if folder is not None and (folder / name).is_dir():
        shutil.rmtree(folder / f"{name}.blocks", ignore_errors=True)
    return arrays


def _save_arrays(arrays: Arrays, folder: Path) -> None:
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array, allow_pickle=False)


def _load_arrays(folder: Path) -> Arrays:
    return {path.stem: np.load(path, mmap_mode="r", allow_pickle=False) for path in folder.glob("*.npy")}


def is_intact(place: Path) -> bool:
    """Return whether all files of a folder exist, as they were written."""
    files = parse_json((place / FILE_LIST).read_bytes())
    return all(
        (place / name).stat().st_size == size and _hash(place / name) == sha256
        for name, (size, sha256) in files.items()
    )


def _hash(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
