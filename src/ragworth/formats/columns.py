"""Parse columns separated by spaces or tabs, as in TREC files: fast if they are clean, exact if not.

:func:`_parse_by_line` defines the meaning of a line. The fast path gives a chunk to Polars, but only if the chunk
provably has one separator between fields and the same number of fields on every line, so both paths agree. Bad lines
are left to the slow path, which knows their line numbers.

A line whose first non-blank character is ``#`` is a comment, as in runs read by trec_eval 10. (In qrels, trec_eval
requires the ``#`` in the first column and reads a second comment in a row as data; here one rule holds for all.)
"""

from __future__ import annotations

import re
from functools import partial
from itertools import islice
from typing import Literal, NamedTuple

import numpy as np
import polars as pl

from ragworth.core.errors import BadLine, FormatError, format_count, quote_short
from ragworth.core.resources import map_threads
from ragworth.data.coercion import header_hint
from ragworth.formats.files import (
    BOM,
    NOT_UTF8,
    PathOrStr,
    bad_lines_error,
    count_lines,
    normalize_newlines,
    numbered_lines,
    read_chunks,
    split_lines,
)
from ragworth.formats.values import WrongLineError

NUMBER = re.compile(rb"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf(?:inity)?)", re.IGNORECASE)

BLOCK_BYTES = 1 << 17
"""Bytes examined at a time, few enough to stay in the CPU cache between passes."""

FIRST_ROWS = 100
"""Rows that are looked at to recognise a file of another kind."""


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
    """The rows of a file or chunk, and its bad lines."""

    frame: pl.DataFrame
    bad: list[BadLine]


def read_columns(path: PathOrStr, layout: LineLayout, *, other: LineLayout, skip_bad_lines: bool = False) -> ColumnRows:
    """Read a file of columns. A bad line is an error, or skipped and reported.

    ``other`` is the layout that is often mistaken for this one; a file in it gets an error that says so.
    """
    frames = [pl.DataFrame(schema=layout.schema)]
    bad: list[BadLine] = []
    before = 0
    for chunk, fast, lines in map_threads(partial(_parse_chunk, layout=layout), read_chunks(path)):
        frame, problems = _parse_by_line(chunk, layout, before) if fast is None else ColumnRows(fast, [])
        if problems and not bad and not any(each.height for each in (*frames, frame)):
            _check_kind(path, chunk, problems[0], layout, other)
        bad += problems
        if bad and not skip_bad_lines:
            raise bad_lines_error(path, bad, layout.expected)
        before += lines
        frames.append(frame)
    frame = pl.concat(frames)
    if not frame.height:
        only = f" except for {'bad lines' if bad else 'empty lines and comments (#)'}" if before else ""
        expected = f"a {layout.what}, a line like: {layout.example}"
        raise FormatError(f"no rows: the file is empty{only}", file=str(path), expected=expected)
    return ColumnRows(frame, bad)


def is_row(line: bytes) -> bool:
    """Tell whether a line is neither empty nor a comment."""
    return not line.lstrip().startswith(b"#") and bool(line.strip())


def _check_kind(path: PathOrStr, chunk: bytes, first: BadLine, layout: LineLayout, other: LineLayout) -> None:
    """Raise an error if a file whose ``first`` row is bad begins as one of another kind."""
    rows = [line.split() for line in islice(filter(is_row, split_lines(chunk)), FIRST_ROWS)]
    if all(len(row) == len(other.columns) != len(layout.columns) for row in rows):
        counts = _field_count_problem(len(other.columns), layout)
        raise other.mistake(
            f"{counts}: this looks like a {other.what}, not a {layout.what}",
            file=str(path),
            line=first.line,
            expected=layout.expected,
            remedy=other.advice,
        )
    if hint := header_hint([field.decode("utf-8", "replace") for field in rows[0]]):
        raise bad_lines_error(path, [first], layout.expected).copy(remedy=hint)


class ParsedChunk(NamedTuple):
    """A chunk, its rows (None if it has to be read line by line), and the number of its lines."""

    chunk: bytes
    frame: pl.DataFrame | None
    lines: int


def _parse_chunk(chunk: bytes, layout: LineLayout) -> ParsedChunk:
    """Parse a chunk with Polars if it is clean, or if its rows are with one space between fields."""
    text = normalize_newlines(chunk)
    frame = _parse_clean(text, b"\t" if b"\t" in text[: text.find(b"\n")] else b" ", layout)
    if frame is not None:
        return ParsedChunk(chunk, frame, frame.height)
    rows = b"\n".join(b" ".join(line.split()) for line in text.split(b"\n") if is_row(line))
    return ParsedChunk(chunk, _parse_clean(rows, b" ", layout), count_lines(chunk))


def _parse_clean(text: bytes, separator: bytes, layout: LineLayout) -> pl.DataFrame | None:
    """Parse rows with Polars; None if they need the slow path."""
    if not text or text.startswith(BOM) or not _is_clean(text, len(layout.columns), separator):
        return None
    places = [i for i, column in enumerate(layout.columns) if column.kind != "skip"]
    full = {c.name if c.kind != "skip" else f"skip{i}": c.type for i, c in enumerate(layout.columns)}
    try:
        frame = pl.read_csv(
            text, separator=separator.decode(), has_header=False, quote_char=None, schema=full, columns=places
        )
    except (pl.exceptions.PolarsError, UnicodeDecodeError):
        return None
    odd = any(_is_odd(frame[column.name], column) for column in layout.columns if column.kind != "skip")
    return None if odd else frame


def _is_clean(chunk: bytes, fields: int, separator: bytes) -> bool:
    """Tell whether every line has the right number of fields with one separator between them, and none is a comment."""
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


def _is_odd(values: pl.Series, column: Column) -> bool:
    """Tell whether the slow path would reject a value: it is missing, or no number of this kind."""
    if values.null_count() or column.kind == "text":
        return values.null_count() > 0
    if column.kind == "number":
        return bool(values.is_nan().any())
    whole = column.kind != "whole" or bool((values == values.floor()).all())
    return not (whole and bool(values.is_finite().all()))


def _parse_by_line(chunk: bytes, layout: LineLayout, before: int) -> ColumnRows:
    """Parse a chunk line by line, after ``before`` lines of the file."""
    rows: list[list[str | float]] = []
    bad: list[BadLine] = []
    for number, line in numbered_lines(chunk, before):
        if not is_row(line):
            continue
        try:
            rows.append(_parse_row(line.split(), layout))
        except WrongLineError as error:
            bad.append(BadLine(number, f"{error} in {quote_short(line.decode('utf-8', 'replace'), 60)}"))
    return ColumnRows(pl.DataFrame(rows, schema=layout.schema, orient="row"), bad)


def _field_count_problem(fields: int, layout: LineLayout) -> str:
    return f"{format_count(fields, 'field')} where {len(layout.columns)} belong"


def _parse_row(fields: list[bytes], layout: LineLayout) -> list[str | float]:
    """Parse the fields of one line that are read."""
    if len(fields) != len(layout.columns):
        raise WrongLineError(_field_count_problem(len(fields), layout))
    columns = (pair for pair in zip(layout.columns, fields, strict=True) if pair[0].kind != "skip")
    return [_parse_field(column, field) for column, field in columns]


def _parse_field(column: Column, field: bytes) -> str | float:
    if column.kind == "text":
        try:
            return field.decode("utf-8")
        except UnicodeDecodeError as error:
            raise WrongLineError(f"the {column.name} is {NOT_UTF8}") from error
    value = float(field) if NUMBER.fullmatch(field) else float("nan")
    if np.isnan(value) or (column.kind == "whole" and not value.is_integer()):
        kind = "whole number" if column.kind == "whole" else "number"
        text = quote_short(field.decode("utf-8", "replace"), 24)
        raise WrongLineError(f"the {column.name} is not a {kind} ({text})")
    if column.kind == "finite" and not np.isfinite(value):
        raise WrongLineError(f"the {column.name} is infinite")
    return value
