"""Read Parquet files, and name the file in errors."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl

from ragworth.core.errors import FormatError


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
