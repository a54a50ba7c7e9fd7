"""The tables of rewriting, and reading them from files: JSONL, CSV, TSV or Parquet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Any

import polars as pl

from ragworth.core.errors import InputError, format_list, quote_short
from ragworth.core.nested_text import describe_problem
from ragworth.data import OK
from ragworth.judging.ask import read_rows

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

OPTIONAL: Mapping[str, Any] = {"reason": None, "value": None, "swapped": False, "source": "", "context": ""}
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
    from pydantic import ValidationError

    known = {name for row in rows for name in row}
    if lacking := [name for name in schema if name not in known and name not in OPTIONAL]:
        raise InputError(f"no column {format_list(lacking)}", file=source, expected=", ".join(schema))
    row_type = _row_type(tuple(schema.items()))
    checked = []
    for number, row in enumerate(rows, 1):
        try:
            checked.append(row_type.model_validate(row).model_dump())
        except ValidationError as error:
            problem = describe_problem(error.errors(include_url=False)[0])
            raise InputError(f"row {number}: {problem.text}", file=source) from None
    frame = pl.DataFrame(checked, schema=dict(schema))
    if not several:
        _check_keys(frame, schema, source)
    if schema is LABELS:
        _check_values(frame, source)
    return frame


@cache
def _row_type(columns: tuple[tuple[str, Any], ...]) -> Any:
    """The type of a row. CSV files have texts only, with empty ones for missing values."""
    from pydantic import BeforeValidator, ConfigDict, Field, create_model

    types: Mapping[Any, Any] = {pl.String: str, pl.Float64: float, pl.Boolean: bool}
    own = {
        "query": Annotated[str, Field(pattern=r"\S")],
        "reason": str | None,
        "value": Annotated[float | None, BeforeValidator(lambda value: None if value == "" else value)],
    }
    fields: dict[str, Any] = {name: (own.get(name, types[kind]), OPTIONAL.get(name, ...)) for name, kind in columns}
    return create_model("Row", __config__=ConfigDict(coerce_numbers_to_str=True, allow_inf_nan=False), **fields)


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
