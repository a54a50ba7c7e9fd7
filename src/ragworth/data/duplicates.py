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
    hashes = np.empty(frame.height, dtype=np.uint64)
    chosen = frame[list(columns)]
    for low in range(0, frame.height, BLOCK_ROWS):
        hashes[low : low + BLOCK_ROWS] = chosen.slice(low, BLOCK_ROWS).hash_rows(HASH_SEED).to_numpy()
    return hashes
