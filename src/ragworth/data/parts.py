"""Keep large tables small in memory by storing repeated text once.

A text column takes 16 bytes per row even if every row says ``ok``. Polars stores a literal once, however long the
column, but only while the whole column is that literal. So a large table is split where its system, metric or aspect
changes, and constant columns of each part become literals. Concatenating the parts restores the table.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt
import polars as pl

from ragworth.core.errors import FormatError

MIN_ROWS_TO_SPLIT = 1_000_000
"""Tables with at least this many rows are split into parts."""

MAX_PARTS = 256
"""A table that would need more parts stays whole."""

BLOCK_ROWS = 1 << 19
"""Rows compared or hashed at a time."""

HASH_SEED = 2026
"""Seed of the hash; any number works."""


def split_frame(frame: pl.DataFrame, by: Sequence[str]) -> list[pl.DataFrame]:
    """Split a large frame into parts with a single value in each ``by`` column; a small frame is its only part."""
    if frame.height < MIN_ROWS_TO_SPLIT:
        return [frame]
    bounds = _bounds(frame, by)
    parts = [_with_literals(frame.slice(low, high - low)) for low, high in pairwise(bounds)]
    return _share_equal_columns(parts, "query")


def join_frames(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Concatenate the parts. Only the columns that :func:`split_frame` turned into literals are copied."""
    return parts[0] if len(parts) == 1 else pl.concat(parts)


def slices(parts: Sequence[pl.DataFrame], rows: int) -> Iterator[pl.DataFrame]:
    """Iterate over the rows in blocks of ``rows``, as if the parts were one frame; copies only the current block."""
    waiting: list[pl.DataFrame] = []
    for part in parts:
        at = 0
        while at < part.height:
            piece = part.slice(at, rows - sum(each.height for each in waiting))
            waiting, at = [*waiting, piece], at + piece.height
            if sum(each.height for each in waiting) == rows:
                yield join_frames(waiting)
                waiting = []
    if waiting:
        yield join_frames(waiting)


def read_parquet(source: str | os.PathLike[str] | bytes, *, name: str = "", rows: int | None = None) -> pl.DataFrame:
    """Read a file, or the bytes of one; ``rows`` limits the rows. ``name`` is for errors."""
    try:
        return pl.read_parquet(source if isinstance(source, bytes) else Path(source), n_rows=rows, glob=False)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:  # a panic is no `Exception`
        found = str(error).partition("\n")[0][:120]
        raise FormatError(
            f"can't be read as Parquet ({found})",
            file=name or ("" if isinstance(source, bytes) else str(source)),
            expected="a Parquet file",
            remedy="write or download the file again",
        ) from error


def write_parquet(parts: Sequence[pl.DataFrame], target: IO[bytes] | str | Path) -> None:
    """Write the parts as one table without concatenating them in memory. A full disk is an ``OSError``."""
    try:
        if len(parts) == 1:
            parts[0].write_parquet(target)
        else:
            pl.concat([part.lazy() for part in parts]).sink_parquet(target)
    except pl.exceptions.ComputeError as error:
        reason = re.search(r"([^:]+) \(os error (\d+)\)", str(error))
        if reason is None:
            raise
        raise OSError(int(reason[2]), reason[1].strip()) from error


def filter_rows(part: pl.DataFrame, column: str, values: Collection[str]) -> pl.DataFrame:
    """Return the rows with one of these values, or the frame itself if all have one."""
    mine = part.select(pl.col(column).is_in(list(values))).to_series()
    return part if mine.all(ignore_nulls=False) else part.filter(mine)


def distinct_values(part: pl.DataFrame, column: str) -> list[str]:
    """Distinct values of a text column, in order of appearance."""
    if part.height >= MIN_ROWS_TO_SPLIT and (value := only_value(part, column)) is not None:
        return [value]
    return part.select(pl.col(column).unique(maintain_order=True)).to_series().to_list()


def with_constant_text(frame: pl.DataFrame, name: str, value: str) -> pl.DataFrame:
    """Add a column with the same text in every row, stored once."""
    return frame.with_columns(pl.lit(value, pl.String).alias(name))


def _bounds(frame: pl.DataFrame, by: Sequence[str]) -> list[int]:
    """Start rows of the parts, plus the end; just the ends of the frame if there would be too many parts."""
    whole = [0, frame.height]
    by = [name for name in by if only_value(frame, name) is None]
    if not by:
        return whole
    found: list[npt.NDArray[np.int64]] = []
    for low in range(1, frame.height, BLOCK_ROWS):
        block = frame.select(by).slice(low - 1, BLOCK_ROWS + 1)
        changed = np.zeros(block.height - 1, dtype=bool)
        for column in block.rechunk():
            changed |= column.slice(1).ne_missing(column.slice(0, len(column) - 1)).to_numpy()
        found.append(np.flatnonzero(changed) + low)
        if sum(map(len, found)) >= MAX_PARTS:
            return whole
    return [0, *np.concatenate(found).tolist(), frame.height]


def _with_literals(part: pl.DataFrame) -> pl.DataFrame:
    """Replace constant text columns with literals."""
    texts = [name for name, kind in part.schema.items() if kind == pl.String]
    same = {name: value for name in texts if (value := only_value(part, name)) is not None}
    return part.with_columns(pl.lit(value, pl.String).alias(name) for name, value in same.items())


def only_value(frame: pl.DataFrame, name: str) -> str | None:
    """The value that all rows of a text column have, or None. Immediate for a literal."""
    if not frame.height:
        return None
    first = _value(frame, 0, name)
    if first is None or _value(frame, -1, name) != first:
        return None
    # An expression: taking the column itself would materialize a literal.
    same = frame.select((pl.col(name) == first).all(ignore_nulls=False)).item()
    return first if same else None


def _value(part: pl.DataFrame, row: int, name: str) -> str | None:
    """Return one value; ``part[row, name]`` would materialize a literal column."""
    value: str | None = part.select(name).slice(row, 1).item()
    return value


def _share_equal_columns(parts: list[pl.DataFrame], name: str) -> list[pl.DataFrame]:
    """Let parts whose columns called ``name`` are equal share the first one's."""
    if len(parts) < 2 or name not in parts[0].columns:
        return parts
    first = parts[0][name]
    if not all(part.height == len(first) and part[name].equals(first, null_equal=True) for part in parts):
        return parts
    own = first.gather(np.arange(len(first)))  # a slice would keep the whole column in memory
    return [part.with_columns(own) for part in parts]


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
