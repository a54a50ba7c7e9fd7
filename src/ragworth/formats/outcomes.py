"""Read outcomes from Parquet, CSV or TSV: long (system, query, aspect, value), or one column per aspect.

Grades may be words such as correct; a column called label has people's.
"""

from __future__ import annotations

import polars as pl

from ragworth.errors import FormatError, format_count, format_names
from ragworth.formats.csv import UNNAMED
from ragworth.formats.files import PathOrStr
from ragworth.formats.frames import read_table
from ragworth.formats.grade_words import grade_numbers, unknown_words
from ragworth.tables import Outcomes
from ragworth.tables.coercion import ID_ALIASES

INDEXES = {UNNAMED, "__index_level_0__"}
"""Names of columns that number the rows of a pandas data frame."""

WORD_COLUMNS = ("value", "label")
"""Columns that may have grades in words."""

LABEL_COLUMNS = ("label", "human_label", "annotation")
"""Names of columns that have people's grades."""

GRADE_COLUMNS = {*WORD_COLUMNS, *LABEL_COLUMNS, "human", "grade", "verdict", "correct", "correctness"}
"""Names of columns whose words may be grades; others have comments."""

IDS = {name for kind in ("system", "query") for name in ID_ALIASES[kind]}


def read(path: PathOrStr, *, skip_bad_lines: bool = False) -> Outcomes:
    """Read the outcomes of a file. Empty cells are not outcomes, and are noted."""
    frame, notes = read_table(path, words=WORD_COLUMNS, skip_bad_lines=skip_bad_lines)
    if any(name in frame.columns and _as_numbers(frame[name]) is None for name in WORD_COLUMNS):
        frame, notes = read_table(path, skip_bad_lines=skip_bad_lines)  # says which lines are wrong
    if "aspect" in frame.columns:
        words = _as_numbers(frame["value"]) if "value" in frame.columns else None
        return Outcomes(frame if words is None else frame.with_columns(words), source=str(path), notes=notes)
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
    """Return the columns of numbers, parsing text columns of CSV files and grades in words."""
    columns = [_as_numbers(frame[name]) for name in frame.columns if name not in IDS | INDEXES]
    found = [column for column in columns if column is not None]
    if "human" in frame.columns:
        return found
    return [column.alias("human") if column.name.lower() in LABEL_COLUMNS else column for column in found]


def _as_numbers(column: pl.Series) -> pl.Series | None:
    if column.dtype != pl.String:
        return column.cast(pl.Float64) if column.dtype.is_numeric() else None
    numbers = column.cast(pl.Float64, strict=False)
    if numbers.null_count() == column.null_count() < len(column):
        return numbers
    words = column.fill_null("").to_list()
    if column.name.lower() not in GRADE_COLUMNS or unknown_words(words) or not any(word.strip() for word in words):
        return None
    return pl.Series(column.name, grade_numbers(words), dtype=pl.Float64)
