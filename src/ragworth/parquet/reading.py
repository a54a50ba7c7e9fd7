"""Read a Parquet file to a frame, or explain what is wrong with it."""

from __future__ import annotations

import mmap
import os
from functools import lru_cache
from pathlib import Path

import polars as pl

from ragworth.errors import FormatError
from ragworth.limits import max_ratio
from ragworth.parquet.layout import ParquetLayout, check_layout
from ragworth.parquet.quiet import quiet_stderr
from ragworth.parquet.thrift import DamagedError
from ragworth.parquet.trial import try_reading

MIN_MEMORY_LIMIT = 2 << 30
"""Bytes of memory that any file may take, however small it is."""

REWRITE_HINT = "write or download the file again"


def read_parquet(source: str | Path | bytes, *, name: str = "", rows: int | None = None) -> pl.DataFrame:
    """Read a file, or the bytes of one; ``rows`` limits the rows. ``name`` is for errors."""
    name = name or ("" if isinstance(source, bytes) else str(source))
    try:
        layout = check_layout(memoryview(source)) if isinstance(source, bytes) else _check_file(source)
        _check_size(layout, len(source) if isinstance(source, bytes) else Path(source).stat().st_size, name)
        if not layout.plain:
            try_reading(source, layout.size)
        with quiet_stderr():
            frame = pl.read_parquet(source, n_rows=rows, glob=False)
    except DamagedError as error:
        raise _unreadable_error(str(error), name) from error
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise _unreadable_error(str(error).partition("\n")[0][:120], name) from error
    wanted = layout.rows if rows is None else min(rows, layout.rows)
    if frame.height != wanted:
        raise _unreadable_error(f"{frame.height} rows instead of {wanted}", name)
    return frame


def _unreadable_error(found: str, name: str) -> FormatError:
    return FormatError(f"can't be read as Parquet ({found})", file=name, expected="a Parquet file", remedy=REWRITE_HINT)


def _check_file(path: str | Path) -> ParquetLayout:
    """The layout of a file, which is checked once even if its first rows are read before the rest."""
    about = Path(path).stat()
    return _check_version(str(path), (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns))


@lru_cache(maxsize=8)
def _check_version(path: str, version: tuple[int, ...]) -> ParquetLayout:
    with Path(path).open("rb") as stream:
        if not os.fstat(stream.fileno()).st_size:
            raise DamagedError("it is empty")
        # Not closed here: the frames of an error still refer to it, and it is closed with them.
        return check_layout(memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)))


def _check_size(layout: ParquetLayout, size: int, name: str) -> None:
    """Reject a small file that would fill the memory."""
    limit = max(MIN_MEMORY_LIMIT, max_ratio() * size)
    if layout.size > limit:
        raise FormatError(
            f"this file of {size:,} bytes may take {layout.size:,} bytes of memory, more than {limit:,}",
            file=name,
            remedy="if you trust it, set the environment variable RAGWORTH_MAX_RATIO to a larger number "
            f"(at least {-(-layout.size // size):,})",
        )
