"""Read outcomes from Parquet, CSV or TSV: long (system, query, aspect, value), or one column per aspect."""

from __future__ import annotations

import polars as pl

from ragworth.errors import FormatError, format_count, format_names
from ragworth.formats.csv import UNNAMED
from ragworth.formats.files import PathOrStr
from ragworth.formats.frames import read_table
from ragworth.tables import Outcomes
from ragworth.tables.coercion import ID_ALIASES

INDEXES = {UNNAMED, "__index_level_0__"}
"""Names of columns that number the rows of a pandas data frame."""

IDS = {name for kind in ("system", "query") for name in ID_ALIASES[kind]}


def read(path: PathOrStr, *, skip_bad_lines: bool = False) -> Outcomes:
    """Read the outcomes of a file. Empty cells are not outcomes, and are noted."""
    frame, notes = read_table(path, skip_bad_lines=skip_bad_lines)
    if "aspect" in frame.columns:
        return Outcomes(frame, source=str(path), notes=notes)
    numbers = numeric_columns(frame)
    if not numbers:
        raise FormatError(
            f"no column of numbers among {format_names(frame.columns)}",
            file=str(path),
            expected="system, query, aspect, value; or one column per aspect",
        )
    keys = [name for name in frame.columns if name in IDS]
    wide = frame.select(keys).with_columns(numbers)
    names = [column.name for column in numbers]
    long = wide.unpivot(names, index=keys, variable_name="aspect", value_name="value")
    empty = [
        f"{path}: {format_count(column.null_count(), 'empty cell')} in {column.name!r}: no outcome"
        for column in numbers
        if column.null_count()
    ]
    return Outcomes(long.drop_nulls("value"), source=str(path), notes=(*notes, *empty))


def numeric_columns(frame: pl.DataFrame) -> list[pl.Series]:
    """Return the numeric columns, parsing text columns of CSV files."""
    columns = [_as_numbers(frame[name]) for name in frame.columns if name not in IDS | INDEXES]
    return [column for column in columns if column is not None]


def _as_numbers(column: pl.Series) -> pl.Series | None:
    if column.dtype != pl.String:
        return column.cast(pl.Float64) if column.dtype.is_numeric() else None
    numbers = column.cast(pl.Float64, strict=False)
    return numbers if numbers.null_count() == column.null_count() < len(column) else None
