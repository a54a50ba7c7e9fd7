"""Do long work in blocks that are stored as they finish, so that a killed process can resume.

Each block is a file of arrays, written under another name and moved into place, and its name contains a checksum: a
damaged block is computed again. Two processes may compute the same blocks safely.
"""

from __future__ import annotations

import io
import shutil
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from ragworth.core.errors import FormatError
from ragworth.core.files import private_folder, write_output
from ragworth.retrieval.artifact_cache import load_or_build

BLOCK_SIZE = 128
"""Texts per block: the most that is lost when a process is killed."""

BLOCKS_SUFFIX = ".blocks"
"""Suffix of folders that contain blocks."""

MAX_AGE = 30 * 24 * 60 * 60
"""Seconds after which abandoned blocks are removed."""

Arrays: TypeAlias = Mapping[str, npt.NDArray[Any]]

T = TypeVar("T")

ProgressCallback: TypeAlias = Callable[[str, int, int], None]
"""Receives the progress: the amount done, and the total."""


def block_ranges(total: int) -> list[range]:
    """The blocks of so many items."""
    return [range(low, min(low + BLOCK_SIZE, total)) for low in range(0, total, BLOCK_SIZE)]


class CachedBlocks:
    """Blocks in order, read from their files one at a time; can be iterated repeatedly."""

    def __init__(self, parts: Sequence[Path | Arrays]) -> None:
        self.parts = parts

    def __iter__(self) -> Iterator[Arrays]:
        for part in self.parts:
            yield _read_block(part) if isinstance(part, Path) else part


def load_or_build_in_blocks(
    cache: Path | None,
    name: str,
    total: int,
    make: Callable[[range], Arrays],
    *,
    join: Callable[[Iterable[Arrays]], T],
    save: Callable[[T, Path], None],
    load: Callable[[Path], T],
) -> T:
    """Load an artifact by name, or build it from blocks, resuming earlier work; without a cache, only build it."""
    if cache is None:
        return join(map(make, block_ranges(total)))
    beside = cache / f"{name}{BLOCKS_SUFFIX}"

    def artifact(blocks: Callable[[], Iterable[Arrays]]) -> T:
        return load_or_build(cache, name, make=lambda: join(blocks()), save=save, load=load)

    try:
        found = artifact(lambda: build_blocks(beside, total, make))
    except OSError:  # another process has built it meanwhile, and removed the blocks
        found = artifact(lambda: map(make, block_ranges(total)))
    if (cache / name).is_dir():
        shutil.rmtree(beside, ignore_errors=True)
    return found


def with_progress(
    make: Callable[[range], Arrays], progress: ProgressCallback | None, what: str, total: int
) -> Callable[[range], Arrays]:
    """The same, reporting the progress."""
    if progress is None:
        return make

    def make_and_report(block: range) -> Arrays:
        if not block.start:
            progress(what, 0, total)  # the first block takes as long as any
        arrays = make(block)
        progress(what, block.stop, total)
        return arrays

    return make_and_report


def build_blocks(folder: Path, total: int, make: Callable[[range], Arrays]) -> CachedBlocks:
    """Return all blocks, computing and storing those missing in the folder.

    Blocks that can't be written stay in memory, which only costs time and memory.
    """
    there: dict[str, Path] = {}
    with suppress(OSError):
        private_folder(folder)
        _sweep(folder)
        there = {path.stem.rpartition("-")[0]: path for path in folder.glob("*.npz")}
    parts: list[Path | Arrays] = []
    for block in block_ranges(total):
        path = there.get(_block_name(block))
        if path is not None and _is_intact(path):
            parts.append(path)
            continue
        arrays = make(block)
        parts.append(arrays)
        with suppress(FormatError):
            parts[-1] = _write_block(folder, block, arrays)
    return CachedBlocks(parts)


def _sweep(folder: Path) -> None:
    """Remove abandoned blocks of other work, whose texts or model have changed."""
    for other in folder.parent.glob(f"*{BLOCKS_SUFFIX}"):
        with suppress(OSError):
            if other != folder and other.stat().st_mtime < time.time() - MAX_AGE:
                shutil.rmtree(other, ignore_errors=True)


def _is_intact(path: Path) -> bool:
    with suppress(OSError):
        return path.stem.rpartition("-")[2] == f"{zlib.crc32(path.read_bytes()):08x}"
    return False


def _block_name(block: range) -> str:
    return f"{block.start:08}-{block.stop:08}"


def _write_block(folder: Path, block: range, arrays: Arrays) -> Path:
    stream = io.BytesIO()
    np.savez(stream, allow_pickle=False, **arrays)
    content = stream.getvalue()
    path = folder / f"{_block_name(block)}-{zlib.crc32(content):08x}.npz"
    write_output(path, content)
    return path


def _read_block(path: Path) -> Arrays:
    with np.load(path, allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}
