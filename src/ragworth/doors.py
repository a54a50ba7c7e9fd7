"""What people hand over (data frames, Arrow, dicts) as Polars columns under our names.

A door is forgiving about names and containers and strict about meaning: it renames ``qid`` and
``docno``, casts whole-number ids to text, and refuses what would have to be guessed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from ragworth.errors import MissingExtraError, TableError, quoted, shown

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
    if isinstance(data, Mapping) and data and all(isinstance(v, Mapping) for v in data.values()):
        if nested is None:
            raise TableError("a dict of dicts was given", expected="a dict of columns", file=source)
        rows = [(outer, inner, value) for outer, items in data.items() for inner, value in items.items()]
        return _build({name: [row[i] for row in rows] for i, name in enumerate(nested)}, source)
    if isinstance(data, Mapping):
        return _build(dict(data), source)
    if type(data).__module__.partition(".")[0] == "pandas":
        return _from_pandas(data, source)
    if hasattr(data, "__arrow_c_stream__") or (isinstance(data, Sequence) and not isinstance(data, str)):
        return _build(data, source)
    raise TableError(
        f"cannot make a table of {type(data).__name__}",
        expected="a Polars, pandas or Arrow table, a dict of columns, or a list of dicts",
        file=source,
    )


def _build(data: Any, source: str) -> Frame:
    try:
        return pl.DataFrame(data, strict=False) if isinstance(data, (dict, list, tuple)) else pl.DataFrame(data)
    except (pl.exceptions.PolarsError, TypeError, ValueError, OverflowError) as error:
        raise TableError(
            f"cannot make a table of this {type(data).__name__}: {str(error).splitlines()[0]}",
            expected="columns of equal length, one type each",
            file=source,
        ) from error


def _from_pandas(data: Any, source: str) -> Frame:
    try:
        return pl.from_pandas(data)
    except ImportError as error:
        raise MissingExtraError("pyarrow", "pandas", "reading a pandas data frame") from error
    except (pl.exceptions.PolarsError, TypeError, ValueError) as error:
        raise TableError(
            f"cannot read this pandas data frame: {str(error).splitlines()[0]}",
            expected="columns of one type each",
            file=source,
        ) from error
    except Exception as error:  # pyarrow's errors, which cannot be named without importing it
        if type(error).__module__.partition(".")[0] != "pyarrow":
            raise
        raise TableError(
            f"cannot read this pandas data frame: {str(error).splitlines()[0]}",
            expected="columns of one type each (ids all text or all whole numbers)",
            file=source,
        ) from error


def find_id(frame: Frame, name: str) -> str | None:
    """The column of ``frame`` that holds the id called ``name``."""
    return next((alias for alias in ID_ALIASES[name] if alias in frame.columns), None)


def id_column(frame: Frame, name: str, *, table: str, source: str) -> pl.Series:
    """The ids called ``name``, as text: none missing, none empty."""
    column = find_id(frame, name)
    if column is None:
        raise TableError(
            f"a {table} table needs a {name!r} column; this one has {shown(frame.columns)}",
            expected=" or ".join(ID_ALIASES[name]),
            remedy="rename the column",
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


def numbers(column: pl.Series, *, source: str, kind: pl.DataType | type[pl.DataType] = pl.Float64) -> pl.Series:
    """``column`` as numbers; text that is no number is an error, missing stays missing."""
    if column.dtype == kind:
        return column
    if not (column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null)):
        raise TableError(
            f"column {column.name!r} holds {column.dtype} values, such as "
            f"{quoted(column.drop_nulls().head(1).to_list()[0] if len(column.drop_nulls()) else '')}",
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
