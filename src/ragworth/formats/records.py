"""Take rows out of what Python programs hold: lists, data frames, datasets and objects of other libraries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, NamedTuple

from ragworth.core.errors import TableError, format_names, with_article
from ragworth.data.coercion import to_frame
from ragworth.formats.contract import HEAD_ROWS
from ragworth.formats.logs.values import as_row, plain_value

HOLDERS = ("samples", "test_cases", "goldens", "examples")
"""Attributes of other libraries' datasets that hold the rows: ragas, deepeval, LlamaIndex."""


class MemoryRows(NamedTuple):
    """Rows in memory, the first of them as dicts, and the whole if it is one dict."""

    values: list[Any]
    first: tuple[dict[str, Any], ...]
    document: Any = None
    cells: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(str(key) for row in self.first for key in row))


def read_rows(data: Any, source: str = "") -> MemoryRows:
    """Return the rows of any container that we know."""
    if type(data).__module__.partition(".")[0] == "pandas" and hasattr(data, "columns"):
        if not data.columns.is_unique:
            twice = sorted(set(map(str, data.columns[data.columns.duplicated()])))
            raise TableError(f"columns occur twice: {format_names(twice)}", remedy="name each column once", file=source)
        named = [name for name in data.index.names if name is not None]
        if named and len(named) == len(data.index.names) and not set(named) & set(data.columns):
            data = data.reset_index()
        if not len(data):
            raise TableError("the data frame has no rows", expected="a row for each answer", file=source)
        return _make_rows(
            [{str(key): plain_value(each) for key, each in row.items()} for row in data.to_dict("records")], cells=True
        )
    if hasattr(type(data), "columns") or hasattr(data, "__arrow_c_stream__") or hasattr(data, "collect"):
        return _make_rows(to_frame(data, source=source).to_dicts(), cells=True)
    if isinstance(data, Mapping):
        if data and all(hasattr(each, "columns") or hasattr(each, "column_names") for each in data.values()):
            data = {str(name): read_rows(each, source).values for name, each in data.items()}
        return _read_dict(data)
    held = next((rows for name in HOLDERS if isinstance(rows := getattr(data, name, None), list) and rows), None)
    if held is None and callable(getattr(data, "to_list", None)):
        held = data.to_list()
    if held is None and isinstance(data, Iterable) and not isinstance(data, str | bytes):
        held = list(data)
    if held is None:
        raise TableError(
            f"cannot read records from {with_article(type(data).__name__)}",
            expected="a list of dicts, a data frame, or a dataset of ragas or deepeval",
            remedy="to read a file, use ragworth.load(path)" if isinstance(data, str) else "",
            file=source,
        )
    if not held:
        raise TableError("the list is empty", expected="a list of dicts, one for each answer", file=source)
    return _make_rows(held)


def _read_dict(data: Mapping[str, Any]) -> MemoryRows:
    """Columns of equal length, or one document."""
    lists = [value for value in data.values() if isinstance(value, list | tuple)]
    rows = all(isinstance(row, Mapping) for each in lists for row in each)  # of systems, perhaps
    if len(lists) == len(data) > 1 and len({len(each) for each in lists}) == 1 and not rows:
        names = list(data)
        return _make_rows([dict(zip(names, row, strict=True)) for row in zip(*lists, strict=True)])
    return _make_rows([dict(data)])._replace(document=dict(data))


def _make_rows(values: list[Any], *, cells: bool = False) -> MemoryRows:
    first = (as_row(value) for value in islice(values, HEAD_ROWS))
    return MemoryRows(values, tuple(dict(row) for row in first if row is not None), cells=cells)
