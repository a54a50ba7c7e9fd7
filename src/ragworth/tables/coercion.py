"""What people hand over (data frames, Arrow, dicts) as Polars columns under our names.

A door is forgiving about names and containers and strict about meaning: it renames ``qid`` and
``docno``, casts whole-number ids to text, and refuses what would have to be guessed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import polars as pl

from ragworth.errors import MissingExtraError, TableError, format_names, quote_short, with_article

Frame = pl.DataFrame
Data = Any
"""A Polars, pandas or Arrow table, a dict of columns, a list of dicts, or for runs and judgments a
nested dict ``{query: {passage: number}}``."""

ID_ALIASES: dict[str, tuple[str, ...]] = {
    "system": ("system_id", "run_id", "system", "run"),
    "query": ("query_id", "qid", "query-id", "topic_id", "query"),
    "passage": ("passage_id", "doc_id", "docno", "docid", "corpus-id", "passage"),
    "subquestion": ("subquestion_id", "sub_question_id", "subtopic", "subquestion", "question_id"),
}
"""Column names understood as ids, in order of preference. Names that end in an id come first, because
a frame with both ``qid`` and ``query`` holds the text in the second."""


def to_frame(data: Data, *, source: str = "", nested: tuple[str, str, str] | None = None) -> Frame:
    """``data`` as a Polars frame; ``nested`` names the three columns of a nested dict."""
    if isinstance(data, pl.LazyFrame):
        return data.collect()
    if isinstance(data, pl.DataFrame):
        return data
    try:
        if isinstance(data, Mapping):
            return _from_dict(data, nested)
        if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
            return _from_rows(data)
        if type(data).__module__.partition(".")[0] == "pandas":
            return _from_pandas(data)
        if hasattr(data, "__arrow_c_stream__"):
            return pl.DataFrame(data)
    except (*POLARS_ERRORS, TypeError, ValueError, OverflowError) as error:
        what = (
            "read this pandas data frame"
            if "pandas" in type(data).__module__
            else f"make a table of this {_type_name(data)}"
        )
        raise TableError(
            f"cannot {what}: {str(error).partition(chr(10))[0][:200]}",
            expected="columns of equal length, one type each",
            file=source,
        ) from error
    raise TableError(
        f"cannot make a table of {_type_name(data)}",
        expected="a Polars, pandas or Arrow table, a dict of columns, or a list of dicts",
        file=source,
    )


POLARS_ERRORS = (pl.exceptions.PolarsError, pl.exceptions.PanicException)
"""What Polars raises over data it cannot hold; a panic is no ``Exception``."""


def _type_name(data: object) -> str:
    return type(data).__name__


def _from_dict(data: Mapping[Any, Any], nested: tuple[str, str, str] | None) -> Frame:
    """A dict of columns, or a nested dict as three columns."""
    if data and all(isinstance(value, Mapping) for value in data.values()):
        if nested is None:
            raise TypeError("a dict of dicts was given")
        rows = [(outer, inner, value) for outer, items in data.items() for inner, value in items.items()]
        return pl.DataFrame([_to_series(name, [row[i] for row in rows]) for i, name in enumerate(nested)])
    return pl.DataFrame([_to_series(name, values) for name, values in data.items()])


def _from_rows(data: Sequence[Any]) -> Frame:
    """A list of dicts. All rows decide what a column holds, not the first few."""
    if not all(isinstance(row, Mapping) for row in data):
        raise TypeError("rows that are no dicts")
    names = dict.fromkeys(name for row in data for name in row)
    return pl.DataFrame([_to_series(name, [row.get(name) for row in data]) for name in names])


def _to_series(name: object, values: Any) -> pl.Series:
    """One column. Whole and other numbers together are numbers; text and whole numbers together are text (ids)."""
    if not isinstance(name, str):
        raise TypeError(f"a column called {name!r}")
    if not isinstance(values, (list, tuple, range)):
        if isinstance(values, (str, bytes)) or not hasattr(values, "__len__"):
            raise TypeError(f"column {name!r} is {_type_name(values)}, not a list")
        return pl.Series(name, values)
    kinds = {type(value) for value in values if value is not None}
    try:
        if len(kinds) < 2 and not any(issubclass(kind, Integral) for kind in kinds - {bool}):
            return pl.Series(name, values) if kinds != {object} else pl.Series(name, values, dtype=pl.Object)
        if bool not in kinds and all(issubclass(kind, Integral) for kind in kinds):
            return pl.Series(name, values, dtype=pl.Int64)
        if bool not in kinds and all(issubclass(kind, Real) for kind in kinds):
            return pl.Series(name, [None if value is None else float(value) for value in values], dtype=pl.Float64)
        if bool not in kinds and all(issubclass(kind, (str, Integral)) for kind in kinds):
            return pl.Series(name, [None if value is None else str(value) for value in values], dtype=pl.String)
    except (*POLARS_ERRORS, TypeError, ValueError, OverflowError) as error:
        raise TypeError(f"column {name!r}: {str(error).partition(chr(10))[0]}") from error
    return pl.Series(name, values, dtype=pl.Object)  # refused if it turns out to be a column of ours


def _from_pandas(data: Any) -> Frame:
    if not hasattr(data, "columns"):
        raise TypeError(f"a {_type_name(data)} where a data frame belongs")
    try:
        return pl.from_pandas(data)
    except ImportError as error:
        raise MissingExtraError("pyarrow", "pandas", "reading a pandas data frame") from error
    except Exception as error:  # pyarrow's errors, which cannot be named without importing it
        if type(error).__module__.partition(".")[0] != "pyarrow":
            raise
        raise TypeError(str(error)) from error


def find_id_column(frame: Frame, name: str) -> str | None:
    """The column of ``frame`` that holds the id called ``name``."""
    return next((alias for alias in ID_ALIASES[name] if alias in frame.columns), None)


def id_column(frame: Frame, name: str, *, table: str, source: str) -> pl.Series:
    """The ids called ``name``, as text: none missing, none empty."""
    column = find_id_column(frame, name)
    if column is None:
        raise TableError(
            f"{with_article(table)} table needs {with_article(repr(name))} column; this one has "
            f"{format_names(frame.columns)}",
            expected=" or ".join(ID_ALIASES[name]),
            remedy="rename the column (a TREC file is read as trec:PATH)",
            file=source,
        )
    return text_ids(frame[column], source=source).alias(name)


def text_ids(ids: pl.Series, *, source: str) -> pl.Series:
    """``ids`` cast to text; floats, missing and empty ids are errors."""
    kind = ids.dtype
    if not (kind.is_integer() or kind in (pl.String, pl.Categorical, pl.Enum) or (kind == pl.Null and not len(ids))):
        raise TableError(
            f"column {ids.name!r} holds {kind} values where ids belong"
            + (f", such as {ids.drop_nulls().head(1).to_list()[0]!r}" if ids.null_count() < len(ids) else ""),
            expected="text or whole numbers",
            remedy="cast the ids to text before (pandas turns whole numbers with a gap into floats)",
            file=source,
        )
    text = ids if kind == pl.String else ids.cast(pl.String)
    if text.null_count():
        row = text.is_null().arg_true()[0] + 1
        raise TableError(f"row {row}: the {ids.name!r} id is missing", expected="an id in every row", file=source)
    empty = (text.str.len_bytes() == 0).arg_true()
    if len(empty):
        raise TableError(
            f"row {empty[0] + 1}: the {ids.name!r} id is empty", expected="an id in every row", file=source
        )
    return text


def to_numbers(column: pl.Series, *, source: str, kind: pl.DataType | type[pl.DataType] = pl.Float64) -> pl.Series:
    """``column`` as numbers; text that is no number is an error, missing stays missing."""
    if column.dtype == kind:
        return column
    if not (column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null)):
        raise TableError(
            f"column {column.name!r} holds {column.dtype} values, such as "
            f"{quote_short(column.drop_nulls().head(1).to_list()[0] if len(column.drop_nulls()) else '')}",
            expected="numbers",
            remedy="convert the column; a value that could not be had is null with a 'status' saying why",
            file=source,
        )
    cast = column.cast(kind, strict=False)
    lost = (cast.is_null() & column.is_not_null()).arg_true()
    if column.dtype.is_float() and kind != pl.Float64:
        lost = (cast.is_null() & column.is_not_null() | (cast.cast(pl.Float64) != column)).arg_true()
    if len(lost):
        whole = kind != pl.Float64
        raise TableError(
            f"row {lost[0] + 1}: {column.name!r} is {column[int(lost[0])]}",
            expected="whole numbers" if whole else "numbers",
            file=source,
        )
    return cast
