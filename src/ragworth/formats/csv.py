"""Read CSV and TSV with a header: fast if the file is plain, exact if not, reporting bad rows by line; and write them.

A row is bad if it has the wrong number of fields or isn't UTF-8.

A spreadsheet runs a cell that begins with ``=``, ``+``, ``-`` or ``@`` as a formula, and cells come from untrusted
files and models. ``RAGWORTH_SAFE_CSV=1`` (``ragworth --safe-csv``) puts an apostrophe before such cells. It is off by
default, because it changes ids, and ragworth couldn't read its own files back.
"""

from __future__ import annotations

import csv
import io
import os
import re
from typing import Literal, NamedTuple

import numpy as np
import polars as pl

from ragworth.core.errors import BadLine, FormatError, InputError, format_count, format_names, quote_short
from ragworth.data.coercion import header_hint
from ragworth.formats.files import (
    NOT_UTF8,
    PathOrStr,
    bad_lines_error,
    empty_file_error,
    last_line_end,
    normalize_newlines,
    read_chunks,
)

UNNAMED = "Unnamed: 0"
"""What pandas calls a column whose header is empty: the index of a data frame."""

SAFE_CSV_VARIABLE = "RAGWORTH_SAFE_CSV"
FORMULA = r"^[=+\-@\t\r\n＝＋－＠]"
PLAIN_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"

Ints = np.typing.NDArray[np.int64]


class CsvRows(NamedTuple):
    """All fields as text (null if empty), the line of each row, and the bad lines."""

    frame: pl.DataFrame
    line: Ints
    bad: list[BadLine]


def read_text_csv(path: PathOrStr, data: bytes | None = None) -> CsvRows:
    """Read a file, or its first rows, with all fields as text. The header determines the separator."""
    data = b"".join(read_chunks(path)) if data is None else data
    if b'"' not in data:  # otherwise, line ends may be part of a cell
        data = normalize_newlines(data).rstrip(b"\n") + b"\n"
    names, separator = _read_header(path, data)
    return _parse_fast(data, names, separator) or _parse_by_row(path, data, names, separator)


def rows_end(data: bytes) -> int:
    """The end of the last whole row after the header in the beginning of a file; 0 if none ends.

    A cell may have several lines: a row ends where as many quotes were opened as closed.
    """
    end = last_line_end(data)
    while end and data.count(b'"', 0, end) % 2:
        end = last_line_end(data[: end - 1])
    return end if end > data.find(b"\n") + 1 else 0


def _read_header(path: PathOrStr, data: bytes) -> tuple[list[str], str]:
    """The names of the columns, and the separator: the sign that is most frequent in the header."""
    header = data.partition(b"\n")[0].rstrip(b"\r")
    if not header.strip():
        raise empty_file_error(path, "a header line and rows")
    separator = max("\t,;", key=lambda sign: header.count(sign.encode()))
    try:
        names = [name.strip() for name in next(csv.reader([header.decode("utf-8")], delimiter=separator, strict=True))]
    except UnicodeDecodeError as error:
        raise bad_lines_error(path, [BadLine(1, f"the header is {NOT_UTF8}")], "column names") from error
    except csv.Error as error:
        raise FormatError(f"the header: {error}", file=str(path), line=1, expected="column names") from error
    if len(names) > 1:
        # pandas writes its index without a name, and spreadsheets write empty columns
        names = [name or f"Unnamed: {number}" for number, name in enumerate(names)]
    if len(set(names)) < len(names) or "" in names:
        raise FormatError(
            f"a column occurs twice, or has an empty name: {format_names(names)}",
            file=str(path),
            line=1,
            expected="a header with each column once",
            remedy=header_hint(names)
            or "give each column a name of its own, or let the tool that wrote the file export JSON; "
            f"if this is a TREC file without a header, write trec:{path}",
        )
    return names, separator


def _parse_fast(data: bytes, names: list[str], separator: str) -> CsvRows | None:
    """Parse with Polars, if no field is quoted or empty and every row has as many fields as the header."""
    if b'"' in data or b"\r" in data or b"\0" in data or not data.endswith(b"\n"):
        return None
    signs = np.frombuffer(data, dtype=np.uint8)
    ends, marks = signs == 10, signs == ord(separator)
    if int(marks.sum()) != int(ends.sum()) * (len(names) - 1) or bool((ends[1:] & ends[:-1]).any()):
        return None
    schema = dict.fromkeys(names, pl.String)
    try:
        # Raises if a row has more fields than the header; by the total count, none has fewer either.
        frame = pl.read_csv(io.BytesIO(data), separator=separator, quote_char=None, schema=schema)
    except pl.exceptions.PolarsError:
        return None
    if any(column.null_count() for column in frame):
        return None
    return CsvRows(frame, np.arange(2, frame.height + 2), [])


def _parse_by_row(path: PathOrStr, data: bytes, names: list[str], separator: str) -> CsvRows:
    """Parse row by row with Python's csv module, keeping line numbers."""
    text = io.StringIO(data.decode("utf-8", "surrogateescape"), newline="")
    reader = csv.reader(text, delimiter=separator, strict=True)
    before = csv.field_size_limit(len(data) + 1)
    rows: list[list[str | None]] = []
    lines: list[int] = []
    bad: list[BadLine] = []
    start = 0
    try:
        next(reader)
        start = reader.line_num
        for row in reader:
            line, start = start + 1, reader.line_num
            if len(row) == len(names) and _is_text(row):
                rows.append([cell or None for cell in row])
                lines.append(line)
            elif row:
                fields = f"{format_count(len(row), 'field')} instead of {len(names)} in "
                problem = fields if len(row) != len(names) else f"{NOT_UTF8}: "
                bad.append(BadLine(line, f"{problem}{quote_short(separator.join(row), 60)}"))
    except csv.Error as error:
        raise FormatError(
            f"cannot be read as CSV: {error}",
            file=str(path),
            line=start + 1,
            expected="quotes around a whole cell, and doubled inside",
            remedy="fix the quotes of this row",
        ) from error
    finally:
        csv.field_size_limit(before)
    frame = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")
    return CsvRows(frame, np.array(lines, dtype=np.int64), bad)


def _is_text(row: list[str]) -> bool:
    """Tell whether no cell contains a lone surrogate, which stands for bytes that aren't UTF-8."""
    return all(cell.isascii() or not any("\ud800" <= sign <= "\udfff" for sign in cell) for cell in row)


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
    """Tell whether to make cells safe for spreadsheets."""
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
            risky = texts.str.contains(FORMULA) & ~texts.str.contains(PLAIN_NUMBER)
            texts = pl.select(pl.when(risky).then(pl.lit("'") + texts).otherwise(texts)).to_series().alias(column.name)
        columns.append(texts.alias(f"'{column.name}" if re.match(FORMULA, column.name) else column.name))
    return pl.DataFrame(columns)
