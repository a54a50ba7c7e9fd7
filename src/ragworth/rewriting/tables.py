"""The tables of rewriting, and reading them from files: JSONL, CSV, TSV or Parquet."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from ragworth.errors import InputError, format_list, quote_short
from ragworth.prompt_table import read_rows
from ragworth.tables import OK

CANDIDATES: Mapping[str, Any] = {
    "query": pl.String,
    "candidate": pl.String,
    "text": pl.String,
    "source": pl.String,
}
"""Rewrites of turns. ``candidate`` names a rewrite among those of its query; ``source`` says where it comes from."""

LABELS: Mapping[str, Any] = {
    "query": pl.String,
    "candidate": pl.String,
    "text": pl.String,
    "context": pl.String,
    "utility": pl.String,
    "value": pl.Float64,
    "status": pl.String,
    "reason": pl.String,
    "source": pl.String,
}
"""What a rewrite is worth. ``context`` is the key of the passages it retrieves: equal keys, equal passages and order.

There is a value exactly when ``status`` is ``ok``.
"""

PAIRS: Mapping[str, Any] = {
    "query": pl.String,
    "chosen": pl.String,
    "rejected": pl.String,
    "gap": pl.Float64,
    "swapped": pl.Boolean,
}
"""Preferences between two rewrites of a turn. ``gap`` is the utility of the chosen one less that of the rejected one:
negative if the control swapped them."""

PREFERENCES: Mapping[str, Any] = {name: PAIRS[name] for name in ("query", "chosen", "rejected")}
"""What training reads of pairs, wherever they come from."""

REWRITES: Mapping[str, Any] = {"query": pl.String, "text": pl.String}
"""One rewrite for each turn."""

OPTIONAL: Mapping[str, Any] = {"reason": None, "swapped": False, "source": "", "context": ""}
"""Columns that a file may lack, with the value that they have then."""


def read_rewriting_table(path: str, schema: Mapping[str, Any], *, several: bool = False) -> pl.DataFrame:
    """Read a table with these columns; other columns are ignored, and bad rows are reported by their number.

    ``several``: rows may have the same key.
    """
    rows = read_rows(path)
    if not rows:
        raise InputError("there are no rows", file=path, expected=f"rows with {', '.join(schema)}")
    return check_rewriting_table(rows, schema, path, several=several)


def check_rewriting_table(
    rows: Sequence[Mapping[str, Any]], schema: Mapping[str, Any], source: str = "", *, several: bool = False
) -> pl.DataFrame:
    """Rows as a frame with exactly these columns."""
    known = {name for row in rows for name in row}
    if lacking := [name for name in schema if name not in known and name not in OPTIONAL and name != "value"]:
        raise InputError(f"no column {format_list(lacking)}", file=source, expected=", ".join(schema))
    columns: dict[str, list[Any]] = {name: [] for name in schema}
    for number, row in enumerate(rows, 1):
        for name, kind in schema.items():
            try:
                columns[name].append(_value(row.get(name, OPTIONAL.get(name)), name, kind))
            except ValueError as error:
                raise InputError(f"row {number}: {error}", file=source) from error
    frame = pl.DataFrame(columns, schema=dict(schema))
    if not several:
        _check_keys(frame, schema, source)
    if schema is LABELS:
        _check_values(frame, source)
    return frame


def _value(value: Any, name: str, kind: Any) -> Any:
    """A cell of the right type. CSV files have texts only, with empty ones for missing values."""
    if value is None or (value == "" and kind is not pl.String):
        if name in ("value", "reason"):
            return None
        raise ValueError(f"{name} is missing")
    if kind is pl.Float64:
        return _number(value, name)
    if kind is pl.Boolean:
        if value in (True, False):
            return bool(value)
        known = {"true": True, "false": False}
        if str(value).casefold() not in known:
            raise ValueError(f"{name} is {quote_short(value)}, expected true or false")
        return known[str(value).casefold()]
    if isinstance(value, bool | list | dict):
        raise ValueError(f"{name} is {quote_short(value)}, expected a text")
    text = str(value)
    if name == "query" and not text.strip():
        raise ValueError("query is empty")
    return text


def _number(value: Any, name: str) -> float:
    try:
        found = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} is {quote_short(value)}, expected a number") from None
    if not math.isfinite(found):
        raise ValueError(f"{name} is {found}, expected a finite number")
    return found


def _check_keys(frame: pl.DataFrame, schema: Mapping[str, Any], source: str) -> None:
    """Refuse rows with the same key."""
    keys = ["query", *(name for name in ("candidate", "utility") if name in schema)]
    again = frame.select(keys).is_duplicated()
    if again.any():
        row = frame.filter(again).row(0, named=True)
        words = ", ".join(f"{key} {quote_short(row[key], 24)}" for key in keys)
        raise InputError(f"{words} occurs twice", file=source, expected=f"each {' and '.join(keys)} once")


def _check_values(frame: pl.DataFrame, source: str) -> None:
    """Refuse labels whose value and status disagree."""
    wrong = frame.with_row_index("row").filter((pl.col("status") == OK) != pl.col("value").is_not_null())
    if wrong.height:
        raise InputError(
            f"row {wrong['row'][0] + 1}: the status is {wrong['status'][0]!r} and the value {wrong['value'][0]}",
            file=source,
            expected="a value exactly where the status is ok",
        )
