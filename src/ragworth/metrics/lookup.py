"""Find the few judged passages among millions of shown ones.

Both sides are reduced to 64-bit keys. A small bit table, indexed by the top of the key, discards nearly all rows at
once. The rest is searched in the sorted keys, and strings are compared before a match counts, so a key collision
can't change a number.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ragworth.data import ranking
from ragworth.metrics.blocks import Ints

MAX_TABLE_BITS = 25
"""Size of the bit table at most, as a power of two, in bytes."""


class LookupMatches(NamedTuple):
    """Matches: indices of the rows searched for, and the table row of each."""

    asked: Ints
    row: Ints


class PassageLookup:
    """A table of distinct (query number, passage id)."""

    def __init__(self, numbers: npt.NDArray[np.signedinteger], passages: pl.Series) -> None:
        self._numbers = numbers
        self._passages = passages
        keys = np.empty(len(numbers), dtype=np.uint64)
        bits = int(np.clip(np.ceil(np.log2(64 * max(len(keys), 1))), 12, MAX_TABLE_BITS))
        self._shift = np.uint64(64 - bits)
        self._maybe = np.zeros(1 << bits, dtype=bool)
        for low in range(0, len(keys), ranking.BLOCK_ROWS):  # for all at once, it would take several times the memory
            some = slice(low, low + ranking.BLOCK_ROWS)
            keys[some] = ranking.passage_keys(passages[some], numbers[some])
            self._maybe[keys[some] >> self._shift] = True
        self._order = np.argsort(keys).astype(np.uint32)
        self._keys = keys[self._order]
        self._repeats = _longest_run(self._keys)

    def find(self, numbers: Ints, passages: pl.Series, sizes: Ints | None = None) -> LookupMatches:
        """Find which of the given rows are in the table; ``sizes`` says how many rows have each number."""
        keys = ranking.passage_keys(passages, numbers, sizes)
        asked = np.flatnonzero(self._maybe[keys >> self._shift])
        keys = keys[asked]
        mine = numbers[asked if sizes is None else np.searchsorted(np.cumsum(sizes), asked, side="right")]
        order = np.argsort(keys)  # in ascending order, keys are found several times as fast
        at = np.empty(len(keys), dtype=np.int64)
        at[order] = np.searchsorted(self._keys, keys[order])
        found: list[LookupMatches] = []
        for step in range(self._repeats):
            near = at + step
            inside = np.flatnonzero(near < len(self._keys))
            equal = inside[self._keys[near[inside]] == keys[inside]]
            rows, candidates = self._order[near[equal]], asked[equal]
            same = (self._numbers[rows] == mine[equal]) & (
                _gather(self._passages, rows) == passages.gather(candidates)
            ).to_numpy()
            found.append(LookupMatches(candidates[same], rows[same].astype(np.int64)))
        if not found:
            return LookupMatches(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
        return LookupMatches(np.concatenate([f.asked for f in found]), np.concatenate([f.row for f in found]))


def _gather(column: pl.Series, rows: npt.NDArray[np.integer]) -> pl.Series:
    """Take rows of a column chunk by chunk; if it has many chunks, Polars would copy all of it."""
    bounds = np.cumsum([0, *column.chunk_lengths()])
    if len(bounds) == 2:
        return column.gather(rows)
    order = np.argsort(rows)
    ordered = rows[order].astype(np.int64)
    pieces = [
        column.slice(low, high - low).gather(ordered[first:last] - low)
        for (low, high), (first, last) in zip(
            pairwise(bounds.tolist()), pairwise(np.searchsorted(ordered, bounds).tolist()), strict=True
        )
    ]
    back = np.empty(len(rows), dtype=np.int64)
    back[order] = np.arange(len(rows))
    return pl.concat(pieces).gather(back)


def _longest_run(keys: ranking.Keys) -> int:
    """How often a key occurs in sorted keys: 1, unless different pairs collide."""
    again = keys[1:] == keys[:-1]
    longest = min(len(keys), 1)
    while again.any():
        longest += 1
        again = again[1:] & again[:-1]
    return longest
