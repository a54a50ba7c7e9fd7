"""Cache scores of pairs of a query and a passage as they are computed, so that a killed process can resume.

Each line has the hash of a pair, its score and a checksum; partial or changed lines are ignored. There is one file per
model and settings, in the cache folder, which may be deleted at any time.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ragworth.core.files import private_file, private_folder

BLOCK_SIZE = 256
"""Pairs scored between writes."""


class TextPair(NamedTuple):
    """The texts of a query and a passage."""

    query: str
    passage: str

    @property
    def key(self) -> str:
        digest = hashlib.sha256(f"{len(self.query)} {self.query}{self.passage}".encode("utf-8", "surrogatepass"))
        return digest.hexdigest()[:32]


def cached_scores(
    folder: Path | None,
    name: str,
    pairs: Sequence[TextPair],
    score: Callable[[Sequence[TextPair]], Sequence[float]],
    progress: Callable[[int, int], None] | None = None,
) -> list[float]:
    """Score each pair, calling ``score`` in blocks for distinct pairs that aren't cached.

    Scores that aren't finite are returned but not cached.

    ``progress``: receives the number of pairs scored and the total after each block.
    """
    path = folder / f"{name}.scores" if folder is not None else None
    known = _read_scores(path) if path is not None else {}
    missing = list(dict.fromkeys(pair for pair in pairs if pair.key not in known))
    # Pairs of similar length together: padding costs as much as text.
    missing.sort(key=lambda pair: len(pair.query) + len(pair.passage))
    for start in range(0, len(missing), BLOCK_SIZE):
        block = missing[start : start + BLOCK_SIZE]
        found = {pair.key: value for pair, value in zip(block, score(block), strict=True)}
        known |= found
        if path is not None:
            _append_scores(path, {key: value for key, value in found.items() if math.isfinite(value)})
        if progress is not None:
            progress(start + len(block), len(missing))
    return [known[pair.key] for pair in pairs]


def _read_scores(path: Path) -> dict[str, float]:
    found: dict[str, float] = {}
    with suppress(OSError):
        for line in path.read_text(encoding="ascii", errors="replace").splitlines():
            key, _, value = line.partition(" ")
            value, _, end = value.partition(" ")
            with suppress(ValueError):
                if len(key) == 32 and end == _checksum(key, value) and math.isfinite(float(value)):
                    found[key] = float(value)
    return found


def _append_scores(path: Path, found: dict[str, float]) -> None:
    """Append lines; if the cache can't be written to, that only costs time."""
    with suppress(OSError):
        private_folder(path.parent)
        private_file(path)
        with path.open("a", encoding="ascii") as stream:
            lines = (f"{key} {value!r} {_checksum(key, repr(value))}\n" for key, value in found.items())
            stream.write("\n" + "".join(lines))


def _checksum(key: str, value: str) -> str:
    """The end of a line."""
    return hashlib.sha256(f"{key} {value}".encode()).hexdigest()[:8]
