"""Text files of columns between spaces or tabs, as TREC has them: fast where they are clean, exact where not.

What a line means is defined by :func:`_parse_by_line`, which splits one line after the other. The fast way
gives a chunk to Polars, and only when the chunk has been proven to have one separator between fields and
the same number of fields on every line, so that both ways must agree. Lines that are no rows are found
by the careful way alone, which knows their numbers.

A line whose first sign that is no blank is ``#`` is a comment, as in the runs that trec_eval 10 reads. (In qrels it
wants the ``#`` in the first column, and takes a second comment in a row for data; here one rule holds for all.)
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice
from typing import Literal, NamedTuple

import numpy as np
import polars as pl

from ragworth.errors import BadLine, FormatError, Hint, format_count, quote_short
from ragworth.formats.files import BOM, PathOrStr, count_lines, numbered_lines, prefetch, read_chunks

NUMBER = re.compile(rb"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf(?:inity)?)", re.IGNORECASE)

BLOCK_BYTES = 1 << 17
"""Bytes looked at together: few enough to stay in the processor's cache between the looks."""

MAX_BAD_LINES = 1_000_000
"""Bad lines that a file may have, skipped or not."""

TO_SPACE = bytes.maketrans(b"\t\x0b\x0c", b"   ")

COMMENT = re.compile(rb"[\r\n][ \t\x0b\x0c]*(#[^\r\n]*)")
"""A comment after the end of the line before it."""

SNIFFED_ROWS = 100
"""Rows that are looked at to say that a file is of another kind."""


class Column(NamedTuple):
    """One column of a layout; those of kind ``skip`` must be there but are not read."""

    name: str
    kind: Literal["text", "number", "finite", "skip"]


class Layout(NamedTuple):
    """What a line holds: these columns and no others.

    Attributes
    ----------
    mistake: the error for a file of this layout where another one belongs.
    advice: what to do with such a file.
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
        return {c.name: _column_type(c) for c in self.columns if c.kind != "skip"}


class CommentLines(NamedTuple):
    """Comment lines: how many, how many of them would be rows without the ``#``, and the first of those."""

    total: int = 0
    rows: int = 0
    example: str = ""

    def __add__(self, other: object) -> CommentLines:
        assert isinstance(other, CommentLines)
        return CommentLines(self.total + other.total, self.rows + other.rows, self.example or other.example)

    def note(self, path: PathOrStr) -> tuple[str, ...]:
        """A warning where comments may have been meant as rows: of queries whose ids start with ``#``."""
        if not self.rows:
            return ()
        which = f"{format_count(self.rows, 'comment')} that could be rows, such as {quote_short(self.example, 40)}"
        return (f"{path}: skipped {which}; a line that starts with # is a comment, as in trec_eval 10",)


class ColumnRows(NamedTuple):
    """The rows of a file, and the lines that were none."""

    frame: pl.DataFrame
    bad: list[BadLine]
    comments: CommentLines = CommentLines()


def read_columns(
    path: PathOrStr, layout: Layout, *, skip_bad_lines: bool = False, unlike: tuple[Layout, ...] = ()
) -> ColumnRows:
    """Read a file of columns; a bad line is an error, or left out and reported.

    ``unlike`` are layouts that people mistake for this one: a file of one of them gets an error that says so.
    """
    frames: list[pl.DataFrame] = []
    bad: list[BadLine] = []
    comments = CommentLines()
    before = 0
    for chunk, clean in prefetch((chunk, _is_clean(chunk, len(layout.columns))) for chunk in read_chunks(path)):
        fast = _parse_fast(chunk, clean, layout)
        frame, wrong = _parse_by_line(chunk, layout, before, path)[:2] if fast is None else (fast, [])
        comments += CommentLines() if clean else _find_comments(chunk, layout)
        if wrong and not bad and not any(each.height for each in (*frames, frame)):
            _check_kind(path, numbered_lines(chunk, before), layout, unlike)
        bad += wrong
        if bad and not skip_bad_lines:
            raise bad_lines_error(path, bad, layout.expected)
        before += frame.height + len(wrong) if clean else count_lines(chunk)
        frames.append(frame)
    frame = pl.concat(frames) if frames else pl.DataFrame(schema=layout.schema)
    if not frame.height:
        only = [*(["lines that are no rows"] if bad else []), *(["comments (#)"] if comments.total else [])]
        raise FormatError(
            f"no rows: the file is empty{' but for ' + ' and '.join(only) if only else ''}",
            file=str(path),
            expected=f"a {layout.what}, a line like: {layout.example}",
        )
    return ColumnRows(frame, bad, comments)


def is_row(line: bytes) -> bool:
    """Whether a line is neither blank nor a comment."""
    return not line.lstrip().startswith(b"#") and bool(line.strip())


def _check_kind(
    path: PathOrStr, found: Iterable[tuple[int, bytes]], layout: Layout, unlike: tuple[Layout, ...]
) -> None:
    """Raise the error for a file whose first rows are all rows of another layout. A pipe can't be read twice."""
    first = list(islice(((number, line) for number, line in found if is_row(line)), SNIFFED_ROWS))
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


def _find_comments(chunk: bytes, layout: Layout) -> CommentLines:
    if b"#" not in chunk:
        return CommentLines()
    found: list[bytes] = COMMENT.findall(b"\n" + chunk)
    # Of "# like this" nobody means the first word as a query.
    rows = [line for line in found if line[1:2].strip() and isinstance(_parse_row(line.split(), layout), dict)]
    return CommentLines(len(found), len(rows), rows[0].decode("utf-8", "replace") if rows else "")


def bad_lines_error(path: PathOrStr, bad: list[BadLine], expected: str) -> FormatError:
    """The error for lines that are no rows: the first with its number, a few more, and what helps."""
    rest = len(bad) - 1
    return FormatError(
        bad[0].found,
        file=str(path),
        line=bad[0].line,
        more=tuple(str(b) for b in bad[1:4]) + ((f"… {format_count(rest - 3, 'more bad line')}",) if rest > 3 else ()),
        expected=expected,
        remedy=Hint(
            "mend the file, or leave such lines out with --skip-bad-lines",
            "mend the file",
            "mend the file, or leave such lines out with skip_bad_lines=True",
            option="skip_bad_lines",
        ),
    )


def check_bad_lines(path: PathOrStr, bad: list[BadLine]) -> None:
    """Give up on a file of nothing but bad lines before they fill the memory."""
    if len(bad) > MAX_BAD_LINES:
        raise FormatError(
            f"more than {MAX_BAD_LINES:,} bad lines; the first: {bad[0].found}",
            file=str(path),
            line=bad[0].line,
            remedy="check the format; FORMAT:PATH names it, and docs/formats.md describes each",
        )


def skipped_note(path: PathOrStr, bad: list[BadLine]) -> tuple[str, ...]:
    """What was left out of a file, in words; nothing when nothing was."""
    if not bad:
        return ()
    few = "; ".join(str(b) for b in bad[:3])
    return (f"{path}: {format_count(len(bad), 'bad line')} skipped ({few}{'; …' if len(bad) > 3 else ''})",)


def _is_clean(chunk: bytes, fields: int) -> bool:
    """One space between fields, no other white space, no comment, and on every line as many fields as there must be."""
    if chunk.startswith(b"#") or (b"#" in chunk and b"\n#" in chunk):
        return False
    data = np.frombuffer(chunk, dtype=np.uint8)
    spaces = 0  # in the line that goes on
    before = True
    for low in range(0, len(data), BLOCK_BYTES):
        piece = data[low : low + BLOCK_BYTES]
        separator = piece <= 32
        if (before and separator[0]) or bool((separator[1:] & separator[:-1]).any()):
            return False
        space = piece == 32
        ends = np.flatnonzero(piece == 10)
        total = int(np.count_nonzero(space))
        if total + len(ends) != int(np.count_nonzero(separator)):
            return False
        if len(ends):
            # Counted modulo 256, which is enough where the sum is right: no line can have fewer, then.
            first, rest = spaces + int(np.count_nonzero(space[: ends[0]])), space[ends[-1] :].sum()
            inner = np.add.reduceat(space.view(np.uint8), ends, dtype=np.uint8)[:-1]
            right = first == fields - 1 and total + spaces - rest == len(ends) * (fields - 1)
            if not right or bool((inner != fields - 1).any()):
                return False
            spaces = int(rest)
        else:
            spaces += total
        before = bool(separator[-1])
    return chunk.endswith(b"\n") or (not before and spaces == fields - 1)


def _parse_fast(chunk: bytes, clean: bool, layout: Layout) -> pl.DataFrame | None:
    """The rows of a chunk by Polars, or None where the careful way must look."""
    fields = len(layout.columns)
    if not clean:
        chunk = _normalize(chunk)
        if not chunk or not _is_clean(chunk, fields):
            return None
    if chunk.startswith(BOM):
        return None
    wanted = [i for i, column in enumerate(layout.columns) if column.kind != "skip"]
    full = {c.name if c.kind != "skip" else f"skip{i}": _column_type(c) for i, c in enumerate(layout.columns)}
    try:
        frame = pl.read_csv(chunk, separator=" ", has_header=False, quote_char=None, schema=full, columns=wanted)
    except (pl.exceptions.PolarsError, UnicodeDecodeError):
        return None
    for column in layout.columns:
        if column.kind == "skip":
            continue
        values = frame[column.name]
        odd = values.null_count() > 0
        odd |= column.kind == "number" and bool(values.is_nan().any())
        odd |= column.kind == "finite" and not bool(values.is_finite().all())
        if odd:
            return None
    return frame


def _column_type(column: Column) -> type[pl.DataType]:
    return pl.Float64 if column.kind in ("number", "finite") else pl.String


def _normalize(chunk: bytes) -> bytes:
    """The same rows with one space between fields, no empty lines and no comments."""
    chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n").translate(TO_SPACE)
    while b"  " in chunk:
        chunk = chunk.replace(b"  ", b" ")
    chunk = chunk.replace(b" \n", b"\n").replace(b"\n ", b"\n").strip(b" \n")
    while b"\n\n" in chunk:
        chunk = chunk.replace(b"\n\n", b"\n")
    return re.sub(rb"\n#[^\n]*", b"", b"\n" + chunk)[1:] if b"#" in chunk else chunk


def _parse_by_line(chunk: bytes, layout: Layout, before: int, path: PathOrStr = "") -> ColumnRows:
    """The rows of a chunk one line at a time; ``before`` is how many lines came before it."""
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


def _field_count_problem(fields: int, layout: Layout) -> str:
    return f"{format_count(fields, 'field')} where {len(layout.columns)} belong"


def _parse_row(fields: list[bytes], layout: Layout) -> dict[str, str | float] | str:
    """The values of one line by column, or what is wrong with it."""
    if len(fields) != len(layout.columns):
        return _field_count_problem(len(fields), layout)
    row: dict[str, str | float] = {}
    for column, field in zip(layout.columns, fields, strict=True):
        if column.kind in ("number", "finite"):
            if not NUMBER.fullmatch(field):
                return f"the {column.name} is no number ({quote_short(field.decode('utf-8', 'replace'), 24)})"
            row[column.name] = float(field)
            if column.kind == "finite" and not np.isfinite(row[column.name]):
                return f"the {column.name} is infinite"
        elif column.kind == "text":
            try:
                row[column.name] = field.decode("utf-8")
            except UnicodeDecodeError:
                return f"the {column.name} is not UTF-8 text"
    return row
