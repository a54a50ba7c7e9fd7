"""Read CSV and TSV with a header: fast if the file is plain, exact if not, reporting bad rows by line.

Fields stay text except in numeric columns. A row is bad if it has the wrong number of fields, isn't UTF-8, lacks an
id, or has something else in a numeric column. Only a search of an agent that found nothing has no passage.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from ragworth.core.errors import BadLine, FormatError, format_count, format_names, quote_short
from ragworth.data import Judgments
from ragworth.data.coercion import ID_ALIASES, find_id_column, header_hint
from ragworth.formats.columns import NUMBER
from ragworth.formats.files import (
    PathOrStr,
    bad_lines_error,
    check_bad_lines,
    last_line_end,
    normalize_newlines,
    read_chunks,
)

NUMBER_COLUMNS = {"score", "rank", "value", "rating", "tokens", "repeat"}
"""Columns of numbers; empty cells are allowed."""

WIDE_COLUMNS = {name for names in Judgments.wide.values() for name in names}
"""Also numeric if there is no ``value`` column; beside one, a label may be a word."""


UNNAMED = "Unnamed: 0"
"""What pandas calls a column whose header is empty: the index of a data frame."""

SEPARATOR_LINE = re.compile(rb'\A"?sep=[;,\t]"?\r?\n')
"""What Excel writes above the header to name the separator."""

NOT_UTF8 = "not UTF-8 text"
UNFINISHED = "unexpected end of data"
"""Python's message about a quote that is never closed."""
Ints = np.typing.NDArray[np.int64]


class CsvRows(NamedTuple):
    """All fields as text (null if empty), the line of each row, and the bad lines."""

    frame: pl.DataFrame
    line: Ints
    bad: list[BadLine]


def read_csv(
    path: PathOrStr, *, required: set[str], words: Collection[str] = (), skip_bad_lines: bool = False
) -> tuple[pl.DataFrame, list[BadLine]]:
    """Read a file to a frame, with the skipped rows. The header determines the separator.

    ``required`` names columns, besides ids, that must not be empty if present; ``words`` names columns that stay text
    although they usually contain numbers.
    """
    data, numbers = _without_empty_lines(b"".join(read_chunks(path)))
    names, separator = _read_header(path, data)
    rows = _parse_fast(data, names, separator) or _parse_by_row(path, data, names, separator)
    frame, bad = _convert_numbers(rows if numbers is None else _renumber(rows, numbers), required, words)
    if bad and not (skip_bad_lines and frame.height):
        raise encoding_error(path, bad) or bad_lines_error(path, bad, f"{format_names(names)}, as in the header")
    if not frame.height:
        raise FormatError("no rows: the file is empty", file=str(path), expected="a header line and rows")
    return frame, bad


def encoding_error(path: PathOrStr, bad: list[BadLine]) -> FormatError | None:
    """The error for a file with another encoding; None if something else is wrong with a line."""
    if not bad or not all(each.found.startswith(NOT_UTF8) for each in bad):
        return None
    return bad_lines_error(path, bad, "UTF-8").copy(
        remedy=f"save it as UTF-8, such as: iconv -f windows-1252 -t utf-8 {Path(path).name} > utf8.csv"
    )


def read_text_csv(path: PathOrStr, data: bytes | None = None) -> CsvRows:
    """Read a file, or its first rows, with all fields as text."""
    data = b"".join(read_chunks(path)) if data is None else data
    if first := SEPARATOR_LINE.match(data):
        rows = read_text_csv(path, data[first.end() :])
        return CsvRows(rows.frame, rows.line + 1, [BadLine(each.line + 1, each.found) for each in rows.bad])
    data, numbers = _without_empty_lines(data)
    names, separator = _read_header(path, data)
    rows = _parse_fast(data, names, separator) or _parse_by_row(path, data, names, separator)
    return rows if numbers is None else _renumber(rows, numbers)


def rows_end(data: bytes) -> int:
    """The end of the last whole row in the beginning of a file, whose cells may have several lines; 0 if none ends."""
    data = data[: last_line_end(data)]
    if first := SEPARATOR_LINE.match(data):
        end = rows_end(data[first.end() :])
        return end and first.end() + end
    text = io.StringIO(data.decode("utf-8", "surrogateescape"), newline="")
    ends: list[int] = []
    before = csv.field_size_limit(len(data) + 1)
    try:
        ends += (text.tell() for _ in csv.reader(text, delimiter=_find_separator(data), strict=True))
    except csv.Error as error:
        if UNFINISHED not in str(error):
            return len(data)  # the reader says what is wrong
    finally:
        csv.field_size_limit(before)
    if len(ends) < 2:  # a header, at most
        return 0
    return len(text.getvalue()[: ends[-1]].encode("utf-8", "surrogateescape"))


def _find_separator(data: bytes) -> str:
    """The sign that is most frequent in the first line."""
    header = data.partition(b"\n")[0]
    return max("\t,;", key=lambda sign: header.count(sign.encode()))


def _without_empty_lines(data: bytes) -> tuple[bytes, Ints | None]:
    """Drop empty lines, and return the number of each remaining line.

    In a file with quotes, an empty line may be part of a cell, so the file stays unchanged.
    """
    if b'"' in data:
        return data, None
    data = normalize_newlines(data)
    if data and not data.endswith(b"\n"):
        data += b"\n"
    if b"\n\n" not in data or data.startswith(b"\n"):
        return data, None
    end = np.frombuffer(data, dtype=np.uint8) == ord("\n")
    starts = np.flatnonzero(~end[1:] & end[:-1]) + 1
    numbers = np.concatenate([[1], 1 + np.cumsum(np.add.reduceat(end, [0, *starts], dtype=np.int64))[:-1]])
    return re.sub(rb"\n\n+", b"\n", data), numbers


def _renumber(rows: CsvRows, numbers: Ints) -> CsvRows:
    """Replace line numbers with those of the original file."""
    bad = [BadLine(int(numbers[each.line - 1]), each.found) for each in rows.bad]
    return CsvRows(rows.frame, numbers[rows.line - 1], bad)


def _read_header(path: PathOrStr, data: bytes) -> tuple[list[str], str]:
    header = data.partition(b"\n")[0].rstrip(b"\r")
    if not header.strip():
        raise FormatError("no rows: the file is empty", file=str(path), expected="a header line and rows")
    separator = _find_separator(header)
    try:
        names = [name.strip() for name in next(csv.reader([header.decode("utf-8")], delimiter=separator, strict=True))]
    except (UnicodeDecodeError, csv.Error) as error:
        remedy = "save it as UTF-8, or convert it: iconv -f WINDOWS-1252 -t UTF-8 FILE > NEW"
        found = "the header is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else f"the header: {error}"
        raise FormatError(
            found,
            file=str(path),
            line=1,
            expected="column names",
            remedy=remedy if isinstance(error, UnicodeDecodeError) else "",
        ) from error
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
            if not row:
                continue
            if len(row) != len(names):
                found = f"{format_count(len(row), 'field')} instead of {len(names)} in"
                bad.append(BadLine(line, f"{found} {quote_short(separator.join(row), 60)}"))
            elif not _is_text(row):
                bad.append(BadLine(line, f"{NOT_UTF8}: {quote_short(separator.join(row), 60)}"))
            else:
                rows.append([cell or None for cell in row])
                lines.append(line)
            check_bad_lines(path, bad)
    except csv.Error as error:
        raise FormatError(
            f"cannot be read as CSV: {_explain_error(error)}",
            file=str(path),
            line=max(start + 1, 1),
            expected="quotes around a whole cell, and doubled inside",
            remedy="fix the quotes of this row",
        ) from error
    finally:
        csv.field_size_limit(before)
    frame = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")
    return CsvRows(frame, np.array(lines, dtype=np.int64), bad)


def _explain_error(error: csv.Error) -> str:
    """Say what is wrong with the quotes; Python's messages say what its parser expected."""
    if UNFINISHED in str(error):
        return "a quote is opened but never closed"
    return "there is text after a closing quote" if "expected after" in str(error) else str(error)


def _is_text(row: list[str]) -> bool:
    """Whether no cell contains a lone surrogate, which stands for bytes that aren't UTF-8."""
    return all(cell.isascii() or not any("\ud800" <= sign <= "\udfff" for sign in cell) for cell in row)


def _searches(frame: pl.DataFrame) -> pl.Series:
    """Which rows have a hop of an agent and neither rank nor score: without a passage, the search found nothing."""
    if "hop" not in frame.columns:
        return pl.repeat(False, frame.height, eager=True)
    found = frame["hop"].is_not_null()
    for name in ("rank", "score"):
        if name in frame.columns:
            found &= frame[name].is_null()
    return found


def _convert_numbers(rows: CsvRows, required: set[str], words: Collection[str]) -> tuple[pl.DataFrame, list[BadLine]]:
    """Convert numeric columns, dropping rows that lack an id or a required number."""
    problems: dict[int, str] = {}
    columns: list[pl.Series] = []
    needed = required | {alias for name in ID_ALIASES if (alias := find_id_column(rows.frame, name))}
    passage = find_id_column(rows.frame, "passage")
    numbers = (NUMBER_COLUMNS if "value" in rows.frame.columns else NUMBER_COLUMNS | WIDE_COLUMNS) - set(words)
    for column in rows.frame:
        name = column.name
        if name in numbers:
            numeric = column.cast(pl.Float64, strict=False)
            well_written = column.str.contains(f"^(?i:{NUMBER.pattern.decode()})$").fill_null(True)
            for row in (~well_written | numeric.is_nan().fill_null(False)).arg_true():
                problems.setdefault(row, f"the {name} is not a number ({quote_short(column[row], 24)})")
            columns.append(numeric)
        else:
            columns.append(column)
        if name in needed:
            missing = column.is_null() & ~_searches(rows.frame) if name == passage else column.is_null()
            for row in missing.arg_true():
                problems.setdefault(row, f"the {name} is missing")
    frame = pl.DataFrame(columns)
    if not problems:
        return frame, rows.bad
    keep = np.ones(frame.height, dtype=bool)
    keep[list(problems)] = False
    bad = [*rows.bad, *(BadLine(int(rows.line[row]), found) for row, found in problems.items())]
    return frame.filter(pl.Series(keep)), sorted(bad, key=lambda b: b.line)
