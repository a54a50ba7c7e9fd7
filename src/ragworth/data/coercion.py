"""Convert data frames, Arrow tables and dicts to Polars columns under our names.

Conversion is lenient about names and containers and strict about meaning: it renames ``qid`` and ``docno``, casts
whole-number ids to text, and rejects anything it would have to guess.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ragworth.core.errors import FormatError, MissingExtraError, TableError, format_names, quote_short, with_article

HASH_SEED = 2026
"""Seed of hashes of rows and ids; any number works."""

Frame = pl.DataFrame
Data = Any
"""A Polars, pandas or Arrow table, a dict of columns, a list of dicts, or, for runs and judgments, a nested dict
``{query: {passage: number}}``.
"""

ID_ALIASES: dict[str, tuple[str, ...]] = {
    "system": ("system_id", "run_id", "system", "run"),
    "query": ("query_id", "qid", "q_id", "query-id", "topic_id", "query"),
    "passage": ("passage_id", "doc_id", "docno", "docid", "corpus-id", "passage"),
    "subquestion": ("subquestion_id", "sub_question_id", "subtopic", "subquestion", "question_id"),
}
"""Accepted names of id columns, in order of preference. Names ending in ``id`` come first, because a frame with both
``qid`` and ``query`` has the text in the latter.
"""


def to_frame(data: Data, *, source: str = "", nested: tuple[str, str, str] | None = None) -> Frame:
    """Convert ``data`` to a Polars frame. ``nested`` names the three columns of a nested dict."""
    if isinstance(data, pl.LazyFrame):
        return data.collect()
    if isinstance(data, pl.DataFrame):
        return data
    if hasattr(data, "to_polars"):  # a dataset of Hugging Face
        return pl.DataFrame(data.to_polars())
    try:
        if isinstance(data, Mapping):
            return _from_dict(data, nested)
        if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
            return _from_rows(data)
        if package_of(data) == "pandas":
            return _from_pandas(data)
        if hasattr(data, "__arrow_c_stream__"):
            return pl.DataFrame(data)
        raise TypeError("a Polars, pandas or Arrow table, a dict of columns, or a list of dicts is needed")
    except (*POLARS_ERRORS, TypeError, ValueError, OverflowError) as error:
        raise TableError(
            f"can't make a table of this {_type_name(data)}: {str(error).partition(chr(10))[0][:200]}",
            expected="columns of equal length, one type each",
            file=source,
        ) from error


POLARS_ERRORS = (pl.exceptions.PolarsError, pl.exceptions.PanicException)
"""Errors that Polars raises on data it can't store; a panic is not an ``Exception``."""


def package_of(data: object) -> str:
    """The package that defines the type of ``data``."""
    return type(data).__module__.partition(".")[0]


def _type_name(data: object) -> str:
    return type(data).__name__


def _from_dict(data: Mapping[Any, Any], nested: tuple[str, str, str] | None) -> Frame:
    """Convert a dict of columns, or a nested dict to three columns."""
    if data and all(isinstance(value, Mapping) for value in data.values()):
        if nested is None:
            raise TypeError("it is a dict of dicts")
        rows = [(outer, inner, value) for outer, items in data.items() for inner, value in items.items()]
        return pl.DataFrame([_to_series(name, [row[i] for row in rows]) for i, name in enumerate(nested)])
    return pl.DataFrame([_to_series(name, values) for name, values in data.items()])


def _from_rows(data: Sequence[Any]) -> Frame:
    """Convert a list of dicts or named tuples; all rows, not just the first few, determine a column's type."""
    data = [row._asdict() if isinstance(row, tuple) and hasattr(row, "_asdict") else row for row in data]
    if not all(isinstance(row, Mapping) for row in data):
        raise TypeError("the rows are not dicts")
    names = dict.fromkeys(name for row in data for name in row)
    return pl.DataFrame([_to_series(name, [row.get(name) for row in data]) for name in names])


def _to_series(name: object, values: Any) -> pl.Series:
    """Make one column. Mixed ints and floats become floats; mixed text and ints become text (ids)."""
    if not isinstance(name, str):
        raise TypeError(f"a column is named {name!r}")
    if hasattr(values, "to_polars"):
        raise TypeError(f"it has several tables; give one of them: data[{name!r}]")
    if not isinstance(values, (list, tuple, range)):
        if isinstance(values, (str, bytes)) or not hasattr(values, "__len__"):
            raise TypeError(f"column {name!r} is {_type_name(values)}, not a list")
        column = pl.Series(name, values)
        return column if column.dtype != pl.Object else _to_series(name, list(values))  # NumPy's arrays of objects
    try:
        kind = _common_type({type(value) for value in values if value is not None})
        if kind == pl.String:
            values = [None if value is None else str(value) for value in values]
        elif kind == pl.Float64:
            values = [None if value is None else float(value) for value in values]
        return pl.Series(name, values, dtype=kind)
    except (*POLARS_ERRORS, TypeError, ValueError, OverflowError) as error:
        raise TypeError(f"column {name!r}: {str(error).partition(chr(10))[0]}") from error


def _common_type(kinds: set[type]) -> type[pl.DataType] | None:
    """The type of a column with values of these types; None if Polars finds it."""
    if kinds and not kinds & {bool} and kinds not in ({str}, {float}):
        if all(issubclass(kind, Integral) for kind in kinds):
            return pl.Int64
        if all(issubclass(kind, Real) for kind in kinds):
            return pl.Float64
        if all(issubclass(kind, (str, Integral)) for kind in kinds):
            return pl.String
    if len(kinds) > 1 or kinds == {object}:
        return pl.Object  # an error later, if the column is one of ours
    return None


def _from_pandas(data: Any) -> Frame:
    """Convert a data frame, with the columns that are its index (``set_index``)."""
    if not hasattr(data, "columns"):
        raise TypeError(f"it is a {_type_name(data)}, not a data frame")
    try:
        named = [at for at, name in enumerate(data.index.names) if name is not None and name not in data.columns]
        return pl.from_pandas(data.reset_index(level=named) if named else data)
    except ImportError as error:
        raise MissingExtraError("pyarrow", "pandas", "reading a pandas data frame") from error
    except Exception as error:  # pyarrow's errors, which can't be named without importing it
        if type(error).__module__.partition(".")[0] != "pyarrow":
            raise
        raise TypeError(str(error)) from error


def read_parquet(source: str | os.PathLike[str] | bytes, *, name: str = "", rows: int | None = None) -> Frame:
    """Read a file, or the bytes of one; ``rows`` limits the rows. ``name`` is for errors."""
    try:
        return pl.read_parquet(source if isinstance(source, bytes) else Path(source), n_rows=rows, glob=False)
    except (*POLARS_ERRORS, OSError) as error:
        reason = str(error).partition("\n")[0][:120]
        raise FormatError(
            f"can't be read as Parquet ({reason})",
            file=name or ("" if isinstance(source, bytes) else str(source)),
            expected="a Parquet file",
            remedy="write or download the file again",
        ) from error


def write_parquet(frame: Frame, target: IO[bytes] | str | Path) -> None:
    """Write a frame as Parquet. A full disk is an ``OSError``."""
    try:
        frame.write_parquet(target)
    except pl.exceptions.ComputeError as error:
        reason = re.search(r"([^:]+) \(os error (\d+)\)", str(error))
        if reason is None:
            raise
        raise OSError(int(reason[2]), reason[1].strip()) from error


def refuse_rows(
    wrong: pl.Series, problem: Callable[[int], str], *, expected: str, remedy: str = "", source: str = ""
) -> None:
    """Raise an error about the first row that is marked as ``wrong``; ``problem`` describes it."""
    rows = wrong.arg_true()
    if len(rows):
        row = int(rows[0])
        raise TableError(f"row {row + 1}: {problem(row)}", expected=expected, remedy=remedy, file=source)


def duplicate_rows(frame: Frame, columns: Sequence[str]) -> npt.NDArray[np.int64]:
    """Indices of rows that repeat the ``columns`` of an earlier row; only rows with equal hashes are compared."""
    keys = frame.select(columns)
    hashes = keys.hash_rows(HASH_SEED).to_numpy()
    ordered = np.sort(hashes)
    rows = np.flatnonzero(np.isin(hashes, ordered[1:][ordered[1:] == ordered[:-1]]))
    first = keys[rows].select(pl.struct(pl.all()).is_first_distinct()).to_series().to_numpy()
    return np.asarray(rows[~first])


def refuse_duplicates(
    frame: Frame, key: Sequence[str], source: str, *, remedy: str = "remove the duplicates", noun: str = "row"
) -> None:
    """Raise an error about the first row with the same ``key`` as an earlier one."""
    duplicates = duplicate_rows(frame, key)
    if len(duplicates):
        row = frame.row(int(duplicates[0]), named=True)
        raise TableError(
            f"row {duplicates[0] + 1}: second {noun} for " + ", ".join(f"{k} {quote_short(row[k], 40)}" for k in key),
            expected=f"one {noun} for each ({', '.join(key)})",
            remedy=remedy,
            file=source,
        )


def find_id_column(frame: Frame, name: str) -> str | None:
    """Find the column of ``frame`` that holds the id called ``name``."""
    return next((alias for alias in ID_ALIASES[name] if alias in frame.columns), None)


def header_hint(fields: Sequence[str]) -> str:
    """Advice on a line of query, passage and rank without a header, as in runs of MS MARCO; empty for others."""
    if len(fields) != 3 or not re.fullmatch(r"-?\d+", fields[2]):
        return ""
    return (
        "if these are query, passage and rank, put a header in front: "
        "(printf 'query\\tpassage\\trank\\n'; cat FILE) > NEW.tsv; for labels, write relevance instead of rank"
    )


def id_column(frame: Frame, name: str, *, table: str, source: str) -> pl.Series:
    """Return the ids called ``name`` as text, with none missing or empty."""
    column = find_id_column(frame, name)
    if column is None:
        raise TableError(
            f"{with_article(table)} table needs {with_article(repr(name))} column; this one has "
            f"{format_names(frame.columns) or 'no columns'}",
            expected=" or ".join(ID_ALIASES[name]),
            remedy=header_hint(frame.columns) or "rename the column (to read a TREC file, pass trec:PATH)",
            file=source,
        )
    return text_ids(frame[column], source=source).alias(name)


def text_ids(ids: pl.Series, *, source: str) -> pl.Series:
    """Cast ``ids`` to text. Floats, missing and empty ids are errors."""
    if not (ids.dtype.is_integer() or _is_text(ids)):
        remedy = "cast the ids to text first (pandas turns a whole-number column with gaps into floats)"
        raise _type_error(ids, "ids", "text or whole numbers", remedy, source)
    text = ids if ids.dtype == pl.String else ids.cast(pl.String)
    refuse_rows(
        text.is_null() | (text == ""),
        lambda row: f"the {ids.name!r} id is {'missing' if text[row] is None else 'empty'}",
        expected="an id in every row",
        source=source,
    )
    return text


def to_text(column: pl.Series, *, source: str, nullable: bool = False) -> pl.Series:
    """Return a column of texts. Other values are errors, and so are missing texts, unless it is ``nullable``."""
    if not _is_text(column):
        remedy = f".explode({column.name!r}) gives each text a row" if column.dtype == pl.List else "cast it to text"
        raise _type_error(column, "texts", "text", remedy, source)
    if not nullable:
        refuse_rows(
            column.is_null(),
            lambda row: f"column {column.name!r} has no text",
            expected="text in every row",
            remedy="fill the column, or drop the row",
            source=source,
        )
    if column.dtype == pl.String:
        return column
    empty = column.null_count() == len(column)
    return pl.Series(column.name, [None] * len(column), pl.String) if empty else column.cast(pl.String)


def _is_text(column: pl.Series) -> bool:
    """Return whether a column holds text, or nothing."""
    return column.dtype in (pl.String, pl.Categorical, pl.Enum) or column.null_count() == len(column)


def to_numbers(column: pl.Series, *, source: str, kind: pl.DataType | type[pl.DataType] = pl.Float64) -> pl.Series:
    """Convert ``column`` to numbers. Text that isn't a number is an error; missing values stay missing."""
    if column.dtype == kind:
        return column
    if not (column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null)):
        remedy = "convert the column; leave a missing value null and give the reason in 'status'"
        raise _type_error(column, "numbers", "numbers", remedy, source)
    cast = column.cast(kind, strict=False)
    to_whole = column.dtype.is_float() and kind != pl.Float64
    if cast.null_count() == column.null_count() and not to_whole:
        return cast
    lost = column.is_not_null() & (cast.is_null() | (cast.cast(pl.Float64) != column if to_whole else False))
    refuse_rows(
        lost,
        lambda row: f"{column.name!r} is {column[row]}",
        expected="numbers" if kind == pl.Float64 else "whole numbers",
        source=source,
    )
    return cast


def _type_error(column: pl.Series, what: str, expected: str, remedy: str, source: str) -> TableError:
    values = column.drop_nulls().head(1).to_list()
    such = "".join(f", such as {quote_short(v) if isinstance(v, str) else str(v)[:80]}" for v in values)
    return TableError(
        f"column {column.name!r} holds {column.dtype} values where {what} belong{such}",
        expected=expected,
        remedy=remedy,
        file=source,
    )
