"""Read the rows of a RAG log from JSON, JSON lines, CSV, TSV or Parquet, and sample its beginning."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ragworth.core import parquet
from ragworth.core.errors import BadLine, FormatError, quote_short
from ragworth.core.limits import max_line
from ragworth.core.nested_text import REMEDY, TOO_DEEP, NestingError, check_depth, parse_json
from ragworth.formats.contract import FileSample
from ragworth.formats.csv import encoding_error, read_text_csv, rows_end
from ragworth.formats.files import (
    BOM,
    PathOrStr,
    bad_lines_error,
    check_bad_lines,
    last_line_end,
    open_file,
    source_name,
)
from ragworth.formats.frames import read_parquet
from ragworth.formats.logs.document_rows import DocumentRows
from ragworth.formats.values import JSON, WrongLineError, explain_json, read_constant, read_values

HEAD_BYTES = 1 << 18
"""Bytes of a text file that are looked at to find out its format."""

HEAD_ROWS = 20
"""Rows that are looked at."""

MAX_REPORTED = 1000
"""Bad rows after which a file isn't read to its end."""

PLACES = re.compile(r"\.(gz|zst)$", re.IGNORECASE)

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
    find_rows: Callable[[Mapping[str, Any]], DocumentRows | None] = lambda document: None,
) -> LogRows:
    """Open a log. Lines that are not JSON are errors, or go to ``bad``.

    ``find_rows`` finds the rows in a file that is one JSON object.
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
        values = read_values(path, bad, skip=skip, expected=expected)
        return LogRows(source, "line", values)
    document = read_document(path)
    items = document[0] if len(document) == 1 and isinstance(document[0], list) else document
    found = find_rows(document[0]) if len(document) == 1 and isinstance(document[0], dict) else None
    if found is not None:
        return LogRows(source, "record", enumerate(found.rows, 1), note=found.note)
    return LogRows(source, "record", enumerate(items, 1))


def _is_lines(path: PathOrStr) -> bool:
    """Whether a JSON file has one value per line, rather than one that spans lines or the whole file."""
    with open_file(path) as stream:
        head = stream.read(HEAD_BYTES).removeprefix(BOM).lstrip()
    first, end, rest = head.partition(b"\n")
    if first[:1] not in b"{[" or first.strip() in (b"{", b"["):
        return not first.startswith((b"{", b"["))
    try:
        value = parse_json(first)
    except ValueError:
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
    decoder = JSON if pairs is None else json.JSONDecoder(parse_constant=read_constant, object_pairs_hook=pairs)
    values: list[Any] = []
    place = 0
    try:
        while (place := _skip_space(text, place)) < len(text):
            value, place = decoder.raw_decode(text, place)
            values.append(value)
        check_depth(values, text)
    except json.JSONDecodeError as error:
        cut = error.pos >= len(text.rstrip()) - 1 or "Unterminated" in error.msg
        raise FormatError(
            "the JSON ends early: the file is cut off" if cut else f"this is not JSON ({explain_json(error)})",
            file=str(path),
            line=error.lineno,
            remedy="export or copy the file again" if cut else "fix the file",
        ) from error
    except (RecursionError, NestingError) as error:
        raise FormatError(TOO_DEEP, file=str(path), remedy=REMEDY) from error
    except (WrongLineError, ValueError) as error:
        raise FormatError(str(error)[:120], file=str(path)) from error
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


def has_keys(path: PathOrStr, keys: Iterable[str]) -> bool:
    """Return whether an object in a JSON file has one of the keys; of names with dots, the first part."""
    names = {name for key in keys for name in (key, key.partition(".")[0])}
    written = {json.dumps(name, ensure_ascii=ascii).encode() for name in names for ascii in (True, False)}
    pattern = re.compile(rb"(?:" + b"|".join(map(re.escape, written)) + rb")\s{0,8}:")
    longest = max(map(len, written), default=0) + 9
    end = b""
    with open_file(path) as stream:
        while data := stream.read(HEAD_BYTES):
            if pattern.search(end + data):
                return True
            end = data[-longest:]
    return False


def check_first_line(path: PathOrStr) -> None:
    """Raise the syntax error of JSON lines whose first isn't valid."""
    next(read_values(path, [], skip=False, expected="a JSON object in each line"), None)


class Beginning(NamedTuple):
    """The first records of a file, and whether these are all."""

    data: bytes
    whole: bool


def read_beginning(path: PathOrStr, size: int = HEAD_BYTES) -> Beginning:
    """Read the records in the first ``size`` bytes of a text file, or its first record if that is longer.

    A record is a line, or a row of CSV with all its lines. A JSON document, in a file called ``.json``, isn't made of
    records, so it is cut at a line end, if there is one.
    """
    suffix, most = suffix_of(path), max_line()
    find_end = rows_end if suffix in (".csv", ".tsv") else last_line_end
    with open_file(path) as stream:
        data = stream.read(size)
        while following := stream.read(1):
            end = find_end(data := data + following)
            if end or suffix == ".json" or b"\0" in data:
                return Beginning(data[: end or None].removeprefix(BOM), False)
            if len(data) > most:
                raise FormatError(
                    f"the first record is longer than {most:,} bytes",
                    file=str(path),
                    line=1,
                    remedy="check its line ends and quotes; if they are right, set the environment variable "
                    "RAGWORTH_MAX_LINE to a larger number of bytes, such as 1G",
                )
            data += stream.read(len(data))
    return Beginning(data.removeprefix(BOM), True)


def sample_file(path: PathOrStr) -> FileSample:
    """Read the first records of a file. A JSON document is read whole, unless it is a list of smaller records."""
    suffix = suffix_of(path)
    if suffix == ".parquet":
        packed = Path(path).suffix.lower() != ".parquet"
        frame = read_parquet(path) if packed else parquet.read_parquet(path, rows=HEAD_ROWS)
        return sample_rows(str(path), "table", frame.head(HEAD_ROWS).to_dicts())
    data, whole = read_beginning(path)
    if suffix in (".csv", ".tsv"):
        text_rows = read_text_csv(path, data)
        table = text_rows.frame
        if not table.height and (error := encoding_error(path, text_rows.bad)) is not None:
            raise error
        return sample_rows(str(path), "table", table.head(HEAD_ROWS).to_dicts(), table.columns)
    if data.lstrip()[:1] not in (b"{", b"["):
        return FileSample(str(path), "other", data)
    if _is_lines(path):
        values = _decode_lines(data)
        return sample_rows(str(path), "lines", values, document=values[0] if values else None)
    elements = [] if whole else _decode_elements(data)
    values = [elements] if elements else read_document(path)
    rows = values[0] if isinstance(values[0], list) and len(values) == 1 else values
    return sample_rows(str(path), "json", rows, document=values[0])


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


def _decode_lines(data: bytes) -> list[Any]:
    """The JSON values of the first lines, without those that are none."""
    values: list[Any] = []
    for line in data.splitlines():
        with suppress(ValueError):
            values.append(parse_json(line.decode("utf-8", "replace"), parse_constant=read_constant))
        if len(values) == HEAD_ROWS:
            break
    return values


def _decode_elements(data: bytes) -> list[Any]:
    """The first elements of a JSON list that was cut off."""
    text = data.decode("utf-8", "replace").lstrip()
    values: list[Any] = []
    place = _skip_space(text, 1)
    with suppress(ValueError, RecursionError):
        while text[:1] == "[" and len(values) < HEAD_ROWS:
            value, place = JSON.raw_decode(text, place)
            check_depth(value, text)
            values.append(value)
            place = _skip_space(text, _skip_space(text, place) + 1)
    return values


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
