"""Read the rows of a RAG log from JSON, JSON lines, CSV, TSV or Parquet, and sample its beginning."""

from __future__ import annotations

import json
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ragworth import parquet
from ragworth.errors import BadLine, FormatError, quote_short
from ragworth.formats.columns import bad_lines_error, check_bad_lines
from ragworth.formats.contract import FileSample
from ragworth.formats.csv import encoding_error, read_text_csv
from ragworth.formats.document_rows import DocumentRows
from ragworth.formats.files import BOM, PathOrStr, open_file, source_name
from ragworth.formats.frames import read_parquet
from ragworth.formats.values import WrongLineError, explain_json, read_values

HEAD_BYTES = 1 << 18
"""Bytes of a text file that are looked at to find out its format."""

HEAD_ROWS = 20
"""Rows that are looked at."""

MAX_REPORTED = 1000
"""Bad rows after which a file isn't read to its end."""

MAX_DEPTH = 200
"""Nesting of JSON beyond which its beginning is not looked at."""

PLACES = re.compile(r"\.(gz|zst)$", re.IGNORECASE)
OPENERS = {"[": "]", "{": "}"}

Unit = Literal["line", "row", "record"]


class LogRows(NamedTuple):
    """Rows of a log with their places, and what the places count. Cells of tables may hold lists as text."""

    source: str
    unit: Unit
    values: Iterable[tuple[int, Any]]
    cells: bool = False
    note: str = ""
    """What users should know about how the rows were found."""


def suffix_of(path: PathOrStr) -> str:
    """The extension in lower case, without that of compression."""
    return Path(PLACES.sub("", str(path))).suffix.lower()


def read_log(
    path: PathOrStr,
    bad: list[BadLine],
    *,
    skip: bool,
    expected: str,
    nan: bool = True,
    find_rows: Callable[[Mapping[str, Any]], DocumentRows | None] = lambda document: None,
) -> LogRows:
    """Open a log. Lines that are not JSON are errors, or go to ``bad``.

    ``nan``: whether NaN stands for null; ``find_rows`` finds the rows in a file that is one JSON object.
    """
    source = source_name(path)
    if suffix_of(path) in (".csv", ".tsv"):
        rows = read_text_csv(path)
        bad += rows.bad
        if bad and not skip:
            raise bad_lines_error(path, bad, expected)
        return LogRows(source, "line", zip(rows.line.tolist(), rows.frame.iter_rows(named=True), strict=True), True)
    if suffix_of(path) == ".parquet":
        return LogRows(source, "row", enumerate(read_parquet(path).iter_rows(named=True), 1), True)
    if _is_lines(path):
        values = read_values(path, bad, skip=skip, expected=expected, constant=_read_constant if nan else None)
        return LogRows(source, "line", values)
    document = read_document(path)
    items = document[0] if len(document) == 1 and isinstance(document[0], list) else document
    found = find_rows(document[0]) if len(document) == 1 and isinstance(document[0], dict) else None
    if found is not None:
        return LogRows(source, "record", enumerate(found.rows, 1), note=found.note)
    return LogRows(source, "record", enumerate(items, 1))


def _read_constant(name: str) -> float | None:
    """NaN is a missing value; JSON has no word for it."""
    if name != "NaN":
        raise WrongLineError(f"{name} is not a JSON number")
    return None


def _is_lines(path: PathOrStr) -> bool:
    """Whether a JSON file has one value per line, rather than one that spans lines or the whole file."""
    with open_file(path) as stream:
        head = stream.read(HEAD_BYTES).removeprefix(BOM).lstrip()
    first, end, rest = head.partition(b"\n")
    if first[:1] not in b"{[" or first.strip() in (b"{", b"["):
        return not first.startswith((b"{", b"["))
    try:
        value = json.loads(first)
    except (ValueError, RecursionError):
        # A damaged line, or the first line of a document over several lines: those are indented or closed below.
        return suffix_of(path) != ".json" and not re.match(rb"\s|[\]}]", rest[:1])
    alone = not rest.strip() and not (end and len(head) == HEAD_BYTES)
    return not alone or (isinstance(value, dict) and suffix_of(path) != ".json")


def read_document(path: PathOrStr, *, unique_keys: bool = False) -> list[Any]:
    """Read a JSON document; several one after the other are read, too.

    ``unique_keys``: whether a key that an object has twice is an error; otherwise its last value counts.
    """
    with open_file(path) as stream:
        data = stream.read().removeprefix(BOM)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FormatError("this is not UTF-8 text", file=str(path), line=line) from error
    pairs = _unique_pairs if unique_keys else None
    decoder = json.JSONDecoder(parse_constant=_read_constant, object_pairs_hook=pairs)
    values: list[Any] = []
    place = 0
    try:
        while (place := _skip_space(text, place)) < len(text):
            value, place = decoder.raw_decode(text, place)
            values.append(value)
    except json.JSONDecodeError as error:
        cut = error.pos >= len(text.rstrip()) - 1 or "Unterminated" in error.msg
        raise FormatError(
            "the JSON ends early: the file is cut off" if cut else f"this is not JSON ({explain_json(error)})",
            file=str(path),
            line=error.lineno,
            remedy="export or copy the file again" if cut else "fix the file",
        ) from error
    except (RecursionError, WrongLineError, ValueError) as error:
        found = str(error) if isinstance(error, WrongLineError) else "this is not JSON: it is nested too deeply"
        raise FormatError(found, file=str(path)) from error
    return values


def _unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, whose keys must differ."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise WrongLineError(f"the key {quote_short(twice, 40)} occurs twice in an object")
    return found


def _skip_space(text: str, place: int) -> int:
    match = re.compile(r"\s*").match(text, place)
    return match.end() if match else place


def check_json(path: PathOrStr) -> None:
    """Raise the syntax error of a JSON file that isn't valid at its beginning."""
    with open_file(path) as stream:
        whole = len(stream.read(HEAD_BYTES + 1)) <= HEAD_BYTES
    if _is_lines(path):
        expected = "a JSON object in each line"
        next(read_values(path, [], skip=False, expected=expected, constant=_read_constant), None)
    elif whole:
        read_document(path)


def sample_file(path: PathOrStr) -> FileSample:
    """Read the beginning of a file: its first rows, or as much of a JSON document as is there."""
    suffix = suffix_of(path)
    if suffix == ".parquet":
        packed = Path(path).suffix.lower() != ".parquet"
        frame = read_parquet(path) if packed else parquet.read_parquet(path, rows=HEAD_ROWS)
        return sample_rows(str(path), "table", frame.head(HEAD_ROWS).to_dicts())
    with open_file(path) as stream:
        data = stream.read(HEAD_BYTES).removeprefix(BOM)
        whole = not stream.read(1)
    if suffix in (".csv", ".tsv"):
        text_rows = read_text_csv(path, data if whole else data[: data.rfind(b"\n") + 1], partial=not whole)
        table = text_rows.frame
        if not table.height and (error := encoding_error(path, text_rows.bad)) is not None:
            raise error
        return sample_rows(str(path), "table", table.head(HEAD_ROWS).to_dicts(), table.columns)
    text = data.decode("utf-8", "replace").lstrip()
    if text[:1] not in ("{", "["):
        return FileSample(str(path), "other", data)
    values = _first_values(text)
    if not values:
        return FileSample(str(path), "json", data)
    rows = values[0] if isinstance(values[0], list) and len(values) == 1 else values
    return sample_rows(str(path), "lines" if _is_lines(path) else "json", rows, document=values[0])


def sample_rows(
    path: str,
    kind: Literal["json", "lines", "table"],
    rows: list[Any],
    columns: Iterable[str] = (),
    document: Any = None,
) -> FileSample:
    """Make a sample of the first rows of a file."""
    dicts = [row for row in rows[:HEAD_ROWS] if isinstance(row, dict)]
    names = dict.fromkeys([*columns, *(str(key) for row in dicts for key in row)])
    return FileSample(path, kind, b"", document, tuple(dicts), tuple(names))


def _first_values(text: str) -> list[Any]:
    """The first JSON values of a text that may end in the middle of one, which is then closed."""
    decoder = json.JSONDecoder()
    values: list[Any] = []
    place = 0
    while len(values) < HEAD_ROWS and (place := _skip_space(text, place)) < len(text):
        try:
            value, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            if not values:
                values += _close_json(text)
            break
        values.append(value)
    return values


def _close_json(text: str) -> list[Any]:
    """Parse JSON that was cut off, without its last, unfinished values."""
    stack: list[str] = []
    cuts: deque[tuple[int, str]] = deque(maxlen=40)
    in_string = False
    marks = re.compile(r'["\\\[\]{},]')
    place = 0
    while len(stack) < MAX_DEPTH and (match := marks.search(text, place)):
        sign, place = match[0], match.end()
        if in_string:
            if sign == "\\":
                place += 1
            elif sign == '"':
                in_string = False
        elif sign == '"':
            in_string = True
        elif sign in OPENERS:
            stack.append(OPENERS[sign])
            cuts.append((place, "".join(reversed(stack))))
        elif sign == ",":
            cuts.append((place - 1, "".join(reversed(stack))))
        elif sign in "]}":
            if not stack or stack.pop() != sign:
                break
            cuts.append((place, "".join(reversed(stack))))
    for end, closing in reversed(cuts):
        try:
            return [json.loads(text[:end] + closing)]
        except (ValueError, RecursionError):
            continue
    return []


def reject_row(rows: LogRows, bad: list[BadLine], place: int, problem: str, *, skip: bool, expected: str) -> None:
    """Note a row that can't be used; without ``skip``, raise an error once there are many."""
    bad.append(BadLine(place, problem))
    check_bad_lines(rows.source, bad)
    if not skip and len(bad) >= MAX_REPORTED:
        raise bad_rows_error(rows, bad, expected)


def bad_rows_error(rows: LogRows, bad: list[BadLine], expected: str) -> FormatError:
    """The error for all rows that can't be used."""
    bad = sorted(bad, key=lambda each: each.line)
    error = encoding_error(rows.source, bad) or bad_lines_error(rows.source, bad, expected)
    if rows.unit == "line":
        return error
    more = tuple(text.replace("line", rows.unit, 1) for text in error.more)
    return error.copy(found=f"{rows.unit} {bad[0].line}: {bad[0].found}", line=None, more=more)


def unpack_rows(rows: LogRows, unpack: Callable[[Any], Iterable[Any] | None]) -> LogRows:
    """Take the rows out of documents that hold several."""

    def inner() -> Iterator[tuple[int, Any]]:
        for place, value in rows.values:
            inside = unpack(value) if isinstance(value, Mapping) else None
            if inside is None:
                yield place, value
            elif rows.unit == "line":
                yield from ((place, each) for each in inside)
            else:
                yield from enumerate(inside, 1)

    return rows._replace(values=inner())
