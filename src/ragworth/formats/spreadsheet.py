"""Write CSV and TSV, optionally made safe for spreadsheets.

A spreadsheet runs a cell that begins with ``=``, ``+``, ``-`` or ``@`` as a formula, and cells come from untrusted
files and models. ``RAGWORTH_SAFE_CSV=1`` (``ragworth --safe-csv``) puts an apostrophe before such cells. It is off by
default, because it changes ids, and ragworth couldn't read its own files back.
"""

from __future__ import annotations

import io
import os
import re
from typing import Literal

import polars as pl

from ragworth.core.errors import InputError, quote_short

SAFE_CSV_VARIABLE = "RAGWORTH_SAFE_CSV"

FORMULA = r"^[=+\-@\t\r\n＝＋－＠]"
NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def write_csv(
    frame: pl.DataFrame, *, separator: str = ",", quote: Literal["necessary", "non_numeric"] = "necessary"
) -> bytes:
    """Write a frame as CSV with a header. Cells with a carriage return are always quoted."""
    if is_safe_csv():
        frame = escape_formulas(frame)
    # Polars leaves a lone carriage return unquoted, which readers take for a line end.
    odd = any(bool(c.str.contains("\r", literal=True).any()) for c in frame if c.dtype == pl.String)
    stream = io.BytesIO()
    frame.write_csv(stream, separator=separator, quote_style="non_numeric" if odd else quote)
    return stream.getvalue()


def is_safe_csv() -> bool:
    """Whether to make cells safe for spreadsheets."""
    text = os.environ.get(SAFE_CSV_VARIABLE, "").strip().lower()
    if text not in ("", "0", "1", "true", "false", "yes", "no"):
        raise InputError(f"the environment variable {SAFE_CSV_VARIABLE} is {quote_short(text, 40)}", expected="0 or 1")
    return text in ("1", "true", "yes")


def escape_formulas(frame: pl.DataFrame) -> pl.DataFrame:
    """Put an apostrophe before texts that a spreadsheet would run. Numbers, also in text columns, stay numbers."""
    columns = []
    for column in frame:
        texts = column.cast(pl.String) if column.dtype in (pl.Categorical, pl.Enum) else column
        if texts.dtype == pl.String:
            risky = texts.str.contains(FORMULA) & ~texts.str.contains(NUMBER)
            texts = pl.select(pl.when(risky).then(pl.lit("'") + texts).otherwise(texts)).to_series().alias(column.name)
        columns.append(texts.alias(f"'{column.name}" if re.match(FORMULA, column.name) else column.name))
    return pl.DataFrame(columns)
