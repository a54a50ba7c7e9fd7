"""Large tables in little memory: text that is the same in every row is held once.

A column of text takes 16 bytes a row even if all rows say ``ok``. Polars holds a literal once, however long the column
is, but only while the whole column is that literal. So a large table is cut where its system, metric or aspect changes,
and within each part such columns become literals. Put together again, the parts are the same table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import IO

import numpy as np
import numpy.typing as npt
import polars as pl

MIN_ROWS_TO_SPLIT = 1_000_000
"""Tables with at least so many rows are cut into parts."""

MAX_PARTS = 256
"""A table that would fall into more parts stays whole."""

BLOCK_ROWS = 1 << 19
"""Rows compared at a time."""


def split_frame(frame: pl.DataFrame, by: Sequence[str]) -> list[pl.DataFrame]:
    """The parts of a large frame, each with one value in every column of ``by``; a small frame is its only part."""
    if frame.height < MIN_ROWS_TO_SPLIT:
        return [frame]
    bounds = _bounds(frame, by)
    parts = [_with_literals(frame.slice(low, high - low)) for low, high in pairwise(bounds)]
    return _share_equal_columns(parts, "query")


def join_frames(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """The parts as one frame again. Only the columns that :func:`split_frame` made literals are copied."""
    return parts[0] if len(parts) == 1 else pl.concat(parts)


def slices(parts: Sequence[pl.DataFrame], rows: int) -> Iterator[pl.DataFrame]:
    """All rows, ``rows`` at a time, as if the parts were one frame; only what is at hand is copied."""
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


def write_parquet(parts: Sequence[pl.DataFrame], stream: IO[bytes]) -> None:
    """Write the parts as one table, without putting them together in memory first."""
    if len(parts) == 1:
        parts[0].write_parquet(stream)
    else:
        pl.concat([part.lazy() for part in parts]).sink_parquet(stream)


def filter_rows(part: pl.DataFrame, column: str, values: Collection[str]) -> pl.DataFrame:
    """The rows that have one of these values; the same frame where all have."""
    found = set(part.select(pl.col(column).unique()).to_series())
    return part if found <= set(values) else part.filter(pl.col(column).is_in(list(values)))


def with_constant_text(frame: pl.DataFrame, name: str, value: str) -> pl.DataFrame:
    """The frame with a column that has the same text in every row, held once."""
    return frame.with_columns(pl.lit(value, pl.String).alias(name))


def _bounds(frame: pl.DataFrame, by: Sequence[str]) -> list[int]:
    """Where parts begin, and the end; the ends of the whole where there would be too many."""
    whole = [0, frame.height]
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
    """The part with literals in place of columns of text that never change."""
    same = [name for name, kind in part.schema.items() if kind == pl.String and _is_constant(part, name)]
    return part.with_columns(pl.lit(_value(part, 0, name), pl.String).alias(name) for name in same)


def _is_constant(part: pl.DataFrame, name: str) -> bool:
    first = _value(part, 0, name)
    if first is None or _value(part, -1, name) != first:
        return False
    return all(
        bool((piece[name] == first).all(ignore_nulls=False)) for piece in part.select(name).iter_slices(BLOCK_ROWS)
    )


def _value(part: pl.DataFrame, row: int, name: str) -> str | None:
    """One value. ``part[row, name]`` would write out a literal column in full first."""
    value: str | None = part.select(name).slice(row, 1).item()
    return value


def _share_equal_columns(parts: list[pl.DataFrame], name: str) -> list[pl.DataFrame]:
    """Parts whose columns called ``name`` are equal share the first one's."""
    if len(parts) < 2 or name not in parts[0].columns:
        return parts
    first = parts[0][name]
    if not all(part.height == len(first) and part[name].equals(first, null_equal=True) for part in parts):
        return parts
    own = first.gather(np.arange(len(first)))  # a slice would hold on to the memory of the whole column
    return [part.with_columns(own) for part in parts]
