"""A small table as HTML, for notebooks. Everything in it is escaped: names and texts come from files nobody vetted."""

from __future__ import annotations

from html import escape

import polars as pl

from ragworth.core.errors import format_cell

MAX_ROWS = 50
"""Rows of a table that a notebook shows."""


def html_table(frame: pl.DataFrame, caption: str = "") -> str:
    """The first rows of a frame. Numbers have four decimals; a missing value is a dash."""
    right = [kind.is_numeric() for kind in frame.dtypes]
    head = "".join(_cell("th", name, numeric) for name, numeric in zip(frame.columns, right, strict=True))
    body = "".join(
        f"<tr>{''.join(_cell('td', value, numeric) for value, numeric in zip(row, right, strict=True))}</tr>"
        for row in frame.head(MAX_ROWS).iter_rows()
    )
    cut = f": the first {MAX_ROWS:,} of {frame.height:,} rows" if frame.height > MAX_ROWS else ""
    title = f"<caption>{_text(caption + cut)}</caption>" if caption or cut else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(element: str, value: object, numeric: bool) -> str:
    return f'<{element} style="text-align:{"right" if numeric else "left"}">{_text(value)}</{element}>'


def _text(value: object) -> str:
    return escape(format_cell(value))
