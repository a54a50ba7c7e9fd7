"""Find duplicate rows with little memory.

Comparing whole rows takes more than a hundred bytes per row. Instead, each row is reduced to a 64-bit hash, and only
rows with equal hashes are compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

HASH_SEED = 2026
"""Seed of the hash; any number works."""

HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""An odd number with many bits set; makes a row's hash depend on the column order."""

BLOCK_ROWS = 1 << 19
"""Rows hashed per block."""


def duplicate_rows(table: pl.DataFrame | Sequence[pl.DataFrame], columns: Sequence[str]) -> npt.NDArray[np.int64]:
    """Indices of rows that repeat the ``columns`` of an earlier row, in a frame or across the parts of a table."""
    parts = [table] if isinstance(table, pl.DataFrame) else table
    hashes = np.concatenate([_hashes(part, columns) for part in parts])
    ordered = np.sort(hashes)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if not len(twice):
        return np.empty(0, dtype=np.int64)
    rows = np.flatnonzero(np.isin(hashes, twice))
    chosen = pl.concat(list(_chosen(parts, columns, rows)))
    first = chosen.select(pl.struct(pl.all()).is_first_distinct()).to_series().to_numpy()
    return np.asarray(rows[~first], dtype=np.int64)


def _chosen(
    parts: Sequence[pl.DataFrame], columns: Sequence[str], rows: npt.NDArray[np.int64]
) -> Iterator[pl.DataFrame]:
    """Select rows of the parts by their index in the whole table."""
    low = 0
    for part in parts:
        begin, end = np.searchsorted(rows, [low, low + part.height])
        yield part.select(columns)[rows[begin:end] - low]
        low += part.height


def _hashes(frame: pl.DataFrame, columns: Sequence[str]) -> npt.NDArray[np.uint64]:
    hashes = np.zeros(frame.height, dtype=np.uint64)
    chosen = frame.select(columns)
    for low in range(0, frame.height, BLOCK_ROWS):
        for column in chosen.slice(low, BLOCK_ROWS):
            part = hashes[low : low + BLOCK_ROWS]
            np.multiply(part, HASH_FACTOR, out=part)
            np.bitwise_xor(part, column.hash(HASH_SEED).to_numpy(), out=part)
    return hashes
