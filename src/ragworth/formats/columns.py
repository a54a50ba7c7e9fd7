"""Parse columns separated by spaces or tabs, as in TREC files: fast if they are clean, exact if not.

:func:`_parse_by_line` defines the meaning of a line. The fast path gives a chunk to Polars, but only if the chunk
provably has one separator between fields and the same number of fields on every line, so both paths agree. Bad lines
are left to the slow path, which knows their line numbers.

A line whose first non-blank character is ``#`` is a comment, as in runs read by trec_eval 10. (In qrels, trec_eval
requires the ``#`` in the first column and reads a second comment in a row as data; here one rule holds for all.)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Literal, NamedTuple

import numpy as np
import polars as pl

from ragworth.core.errors import BadLine, FormatError, format_count, quote_short
from ragworth.core.resources import map_threads
from ragworth.formats.files import (
    BOM,
    PathOrStr,
    bad_lines_error,
    check_bad_lines,
    count_lines,
    normalize_newlines,
    numbered_lines,
    read_chunks,
)

NUMBER = re.compile(rb"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf(?:inity)?)", re.IGNORECASE)

BLOCK_BYTES = 1 << 17
"""Bytes examined at a time, few enough to stay in the CPU cache between passes."""

TO_SPACE = bytes.maketrans(b"\t\x0b\x0c", b"   ")

COMMENT = re.compile(rb"[\r\n][ \t\x0b\x0c]*(#[^\r\n]*)")
"""A comment, including the preceding line end."""

SNIFFED_ROWS = 100
"""Rows examined to recognize a file of another kind."""

SAMPLES, SAMPLE_BYTES = 8, 1 << 13
"""Parts of a chunk, and bytes of each, whose last fields are compared."""


class Column(NamedTuple):
    """A column of a layout; columns of kind ``skip`` must be present but aren't read. ``whole`` is a whole number."""

    name: str
    kind: Literal["text", "number", "finite", "whole", "skip"]

    @property
    def type(self) -> type[pl.DataType]:
        return pl.String if self.kind in ("text", "skip") else pl.Float64


class LineLayout(NamedTuple):
    """The exact columns of a line.

    Attributes
    ----------
    mistake: the error for a file of this layout in place of another.
    advice: where to pass such a file instead.
    """

    what: str
    columns: tuple[Column, ...]
    example: str
    mistake: type[FormatError] = FormatError
    advice: str = ""

    @property
    def expected(self) -> str:
        return f"{' '.join(c.name for c in self.columns)}, such as: {self.example}"

    @property
    def schema(self) -> dict[str, type[pl.DataType]]:
        return {c.name: c.type for c in self.columns if c.kind != "skip"}


class ColumnRows(NamedTuple):
    """The rows of a file, its bad lines, notes on comments, and the first two last fields if those differ."""

    frame: pl.DataFrame
    bad: list[BadLine]
    notes: tuple[str, ...] = ()
    last_fields: tuple[str, ...] = ()


def read_columns(
    path: PathOrStr, layout: LineLayout, *, skip_bad_lines: bool = False, unlike: tuple[LineLayout, ...] = ()
) -> ColumnRows:
    """Read a file of columns. A bad line is an error, or skipped and reported.

    ``unlike`` lists layouts that are often mistaken for this one; a file in one of them gets an error that says so.
    """
    frames: list[pl.DataFrame] = []
    bad: list[BadLine] = []
    comments: list[bytes] = []
    last_fields: dict[bytes, None] = {}
    before = 0
    for chunk, fast, every_line in map_threads(partial(_parse_chunk, layout=layout), read_chunks(path)):
        frame, wrong = _parse_by_line(chunk, layout, before, path)[:2] if fast is None else (fast, [])
        comments += COMMENT.findall(b"\n" + chunk) if not every_line and b"#" in chunk else []
        if wrong and not bad and not any(each.height for each in (*frames, frame)):
            _check_kind(path, numbered_lines(chunk, before), layout, unlike)
        bad += wrong
        if bad and not skip_bad_lines:
            raise bad_lines_error(path, bad, layout.expected)
        before += frame.height if every_line else count_lines(chunk)
        frames.append(frame)
        fields = _last_fields(chunk, len(layout.columns))
        while len(last_fields) < 2 and (field := next(fields, None)) is not None:
            last_fields[field] = None
    frame = pl.concat(frames) if frames else pl.DataFrame(schema=layout.schema)
    if not frame.height:
        only = [*(["bad lines"] if bad else []), *(["comments (#)"] if comments else [])]
        raise FormatError(
            f"no rows: the file is empty{' except for ' + ' and '.join(only) if only else ''}",
            file=str(path),
            expected=f"a {layout.what}, a line like: {layout.example}",
        )
    tags = tuple(field.decode("utf-8", "replace") for field in last_fields)
    return ColumnRows(frame, bad, _comment_notes(path, comments, layout), tags if len(tags) > 1 else ())


def _last_fields(chunk: bytes, fields: int) -> Iterator[bytes]:
    """The last fields of rows in evenly spaced parts of a chunk, from its first to its last line."""
    spare = max(len(chunk) - SAMPLE_BYTES, 0)
    for low in sorted({spare * i // (SAMPLES - 1) for i in range(SAMPLES)}):
        start = chunk.find(b"\n", low - 1) + 1 if low else 0
        for line in chunk[start : chunk.find(b"\n", low + SAMPLE_BYTES) + 1 or None].splitlines():
            if is_row(line) and len(row := line.split()) == fields:
                yield row[-1]


def _comment_notes(path: PathOrStr, comments: list[bytes], layout: LineLayout) -> tuple[str, ...]:
    """Warn about comments that may be rows of queries whose ids start with ``#``."""
    # In "# like this", the first word isn't meant as a query.
    rows = [line for line in comments if line[1:2].strip() and isinstance(_parse_row(line.split(), layout), dict)]
    if not rows:
        return ()
    example = quote_short(rows[0].decode("utf-8", "replace"), 40)
    which = f"{format_count(len(rows), 'comment')} that could be rows, such as {example}"
    return (f"{path}: skipped {which}; a line that starts with # is a comment, as in trec_eval 10",)


def is_row(line: bytes) -> bool:
    return not line.lstrip().startswith(b"#") and bool(line.strip())


def _check_kind(
    path: PathOrStr, lines: Iterator[tuple[int, bytes]], layout: LineLayout, unlike: tuple[LineLayout, ...]
) -> None:
    """Raise an error if the first rows of a file all fit another layout. A pipe can't be read twice."""
    first = list(islice(((number, line) for number, line in lines if is_row(line)), SNIFFED_ROWS))
    if first and first[0][1].lstrip().startswith((b"{", b"[")):
        raise FormatError(
            f"this looks like JSON, not a {layout.what}",
            file=str(path),
            line=first[0][0],
            expected=layout.expected,
            remedy="name the format before the path (jsonl:PATH), or let the name end in .json or .jsonl",
        )
    for other in unlike:
        if first and all(isinstance(_parse_row(line.split(), other), dict) for _, line in first):
            raise other.mistake(
                f"{_field_count_problem(len(other.columns), layout)}: this looks like a {other.what}, not a "
                f"{layout.what}",
                file=str(path),
                line=first[0][0],
                expected=layout.expected,
                remedy=other.advice,
            )


class ParsedChunk(NamedTuple):
    """A chunk and its rows; None if it has to be read line by line. ``every_line`` says that all lines are rows."""

    chunk: bytes
    frame: pl.DataFrame | None
    every_line: bool


def _parse_chunk(chunk: bytes, layout: LineLayout) -> ParsedChunk:
    """Parse a chunk with Polars if it can be read that way."""
    clean = _clean_rows(chunk, len(layout.columns))
    frame = _parse_fast(clean, layout) if clean is not None else None
    return ParsedChunk(chunk, frame, frame is not None and clean is not None and clean.every_line)


class CleanRows(NamedTuple):
    """Rows in which one separator is between fields. Unless ``every_line`` is a row, lines were removed."""

    text: bytes
    separator: bytes
    every_line: bool


def _clean_rows(chunk: bytes, fields: int) -> CleanRows | None:
    """The rows of a chunk as Polars can read them, or None if it needs the slow path."""
    text = normalize_newlines(chunk)
    separator = b"\t" if b"\t" in text[: text.find(b"\n")] else b" "
    if _is_clean(text, fields, separator):
        return CleanRows(text, separator, every_line=True)
    text = _normalize(text)
    return CleanRows(text, b" ", every_line=False) if text and _is_clean(text, fields, b" ") else None


def _is_clean(chunk: bytes, fields: int, separator: bytes) -> bool:
    """Whether every line has the right number of fields with one separator between them, and none is a comment."""
    if chunk.startswith(b"#") or (b"#" in chunk and b"\n#" in chunk):
        return False
    data = np.frombuffer(chunk, dtype=np.uint8)
    line = separator * (fields - 1) + b"\n"
    expected = np.frombuffer(line * (BLOCK_BYTES // fields + 2), dtype=np.uint8)
    done = 0  # separators of the unfinished line
    before = True
    for low in range(0, len(data), BLOCK_BYTES):
        piece = data[low : low + BLOCK_BYTES]
        space = piece <= 32
        if (before and space[0]) or bool((space[1:] & space[:-1]).any()):
            return False
        gaps = piece.take(np.flatnonzero(space), mode="clip")
        if not np.array_equal(gaps, expected[done : done + len(gaps)]):
            return False
        done = (done + len(gaps)) % fields
        before = bool(space[-1])
    return before if done == 0 else not before and done == fields - 1


def _normalize(chunk: bytes) -> bytes:
    """Return the same rows with one space between fields and no empty lines or comments; line ends are ``\\n``."""
    chunk = chunk.translate(TO_SPACE)
    while b"  " in chunk:
        chunk = chunk.replace(b"  ", b" ")
    chunk = chunk.replace(b" \n", b"\n").replace(b"\n ", b"\n").strip(b" \n")
    while b"\n\n" in chunk:
        chunk = chunk.replace(b"\n\n", b"\n")
    return re.sub(rb"\n#[^\n]*", b"", b"\n" + chunk)[1:] if b"#" in chunk else chunk


def _parse_fast(rows: CleanRows, layout: LineLayout) -> pl.DataFrame | None:
    """Parse rows with Polars; None if they need the slow path."""
    if rows.text.startswith(BOM):
        return None
    wanted = [i for i, column in enumerate(layout.columns) if column.kind != "skip"]
    full = {c.name if c.kind != "skip" else f"skip{i}": c.type for i, c in enumerate(layout.columns)}
    separator = rows.separator.decode()
    try:
        frame = pl.read_csv(
            rows.text, separator=separator, has_header=False, quote_char=None, schema=full, columns=wanted
        )
    except (pl.exceptions.PolarsError, UnicodeDecodeError):
        return None
    odd = any(_is_odd(frame[column.name], column) for column in layout.columns if column.kind != "skip")
    return None if odd else frame


def _is_odd(values: pl.Series, column: Column) -> bool:
    """Whether the slow path would reject a value: it is missing, or no number of this kind."""
    if values.null_count() or column.kind == "text":
        return values.null_count() > 0
    if column.kind == "number":
        return bool(values.is_nan().any())
    whole = column.kind != "whole" or bool((values == values.floor()).all())
    return not (whole and bool(values.is_finite().all()))


def _parse_by_line(chunk: bytes, layout: LineLayout, before: int, path: PathOrStr = "") -> ColumnRows:
    """Parse a chunk line by line, after ``before`` lines of the file."""
    values: dict[str, list[str | float]] = {name: [] for name in layout.schema}
    bad: list[BadLine] = []
    for number, line in numbered_lines(chunk, before):
        if not is_row(line):
            continue
        row = _parse_row(line.split(), layout)
        if isinstance(row, str):
            bad.append(BadLine(number, f"{row} in {quote_short(line.decode('utf-8', 'replace'), 60)}"))
            check_bad_lines(path, bad)
        else:
            for name, value in row.items():
                values[name].append(value)
    return ColumnRows(pl.DataFrame(values, schema=layout.schema), bad)


def _field_count_problem(fields: int, layout: LineLayout) -> str:
    return f"{format_count(fields, 'field')} where {len(layout.columns)} belong"


def _parse_row(fields: list[bytes], layout: LineLayout) -> dict[str, str | float] | str:
    """Parse one line to values by column, or return what is wrong with it."""
    if len(fields) != len(layout.columns):
        return _field_count_problem(len(fields), layout)
    row: dict[str, str | float] = {}
    for column, field in zip(layout.columns, fields, strict=True):
        if column.kind in ("number", "finite", "whole"):
            value = float(field) if NUMBER.fullmatch(field) else float("nan")
            if np.isnan(value) or (column.kind == "whole" and not value.is_integer()):
                kind = "whole number" if column.kind == "whole" else "number"
                return f"the {column.name} is not a {kind} ({quote_short(field.decode('utf-8', 'replace'), 24)})"
            if column.kind == "finite" and not np.isfinite(value):
                return f"the {column.name} is infinite"
            row[column.name] = value
        elif column.kind == "text":
            try:
                row[column.name] = field.decode("utf-8")
            except UnicodeDecodeError:
                return f"the {column.name} is not UTF-8 text"
    return row
