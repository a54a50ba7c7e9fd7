"""Long work in blocks that are kept as they come, so that what was killed goes on where it was.

Each block is a file of arrays, written under another name and moved into place, and its name holds a checksum: a
block that is there is whole, or it is made again. Two processes that make the same blocks do each other no harm.
"""

from __future__ import annotations

import io
import shutil
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ragworth.retrieval.artifact_cache import DAY
from ragworth.storage.private import open_part_file, private_folder

BLOCK_SIZE = 128
"""Texts of a block: what is lost at most when a process is killed."""

BLOCKS_SUFFIX = ".blocks"
"""How the names of folders end that hold blocks."""

MAX_AGE = 30 * DAY
"""Seconds for which blocks are kept that nobody goes on with."""

Arrays: TypeAlias = Mapping[str, npt.NDArray[Any]]

ProgressCallback: TypeAlias = Callable[[str, int, int], None]
"""Somebody who is told of what, how much is done, and of how much."""


def block_ranges(total: int) -> list[range]:
    """The blocks that so many things are in."""
    return [range(low, min(low + BLOCK_SIZE, total)) for low in range(0, total, BLOCK_SIZE)]


class CachedBlocks:
    """Blocks in their order, of which those that lie in files are read one at a time, as often as one likes."""

    def __init__(self, parts: Sequence[Path | Arrays]) -> None:
        self.parts = parts

    def __iter__(self) -> Iterator[Arrays]:
        for part in self.parts:
            yield _read_block(part) if isinstance(part, Path) else part


def build_blocks(folder: Path, total: int, make: Callable[[range], Arrays]) -> CachedBlocks:
    """All blocks of a total; those that are not in the folder are made and put there.

    What cannot be written is held in memory: that costs time and room, nothing else.
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
        made = make(block)
        parts.append(made)
        with suppress(OSError):
            parts[-1] = _write_block(folder, block, made)
    return CachedBlocks(parts)


def _sweep(folder: Path) -> None:
    """Remove the blocks of other work that nobody has gone on with for long: its texts, or its model, have changed."""
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
    part, file = open_part_file(path, private=True)
    with file:
        file.write(content)
    part.replace(path)
    return path


def _read_block(path: Path) -> Arrays:
    with np.load(path, allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}
