"""How a file begins: read once, to tell its format; the readers go on from there.

A `Head` stands for its file wherever a path does. Of a small file it has the whole content, and of a JSON document the
parsed values, so that nothing is opened or parsed twice.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from ragworth.core.errors import FormatError, quote_short
from ragworth.core.nested_text import REMEDY, TOO_DEEP, NestingError, check_depth, max_line
from ragworth.data import coercion
from ragworth.formats.catalog import Spec
from ragworth.formats.columns import NUMBER
from ragworth.formats.contract import HEAD_ROWS, Head
from ragworth.formats.csv import read_text_csv, rows_end
from ragworth.formats.files import (
    BOM,
    PathOrStr,
    bad_lines_error,
    last_line_end,
    numbered_lines,
    open_file,
    read_chunks,
    read_parquet,
    source_name,
)
from ragworth.formats.values import JSON, WrongLineError, decode_line, explain_json, read_constant

SMALL = 16 << 20
"""Bytes up to which a file is kept in memory after its head was read."""

HEAD_BYTES = 1 << 18
"""Bytes of a text file that are looked at to find out its format."""

TABLE_SUFFIXES = (".csv", ".tsv", ".parquet")
COMPRESSION = re.compile(r"\.(gz|zst)$", re.IGNORECASE)


def read_head(spec: PathOrStr) -> Head:
    """Read how a file begins, as the format named before its path would; a head is returned as it is.

    A JSON document is read whole.
    """
    if isinstance(spec, Head):
        return spec
    form, path = Spec.of(spec)
    return replace(_read_head(path, Spec(form, path).suffix), format=form)


def _read_head(path: PathOrStr, suffix: str) -> Head:
    name = source_name(path)
    if suffix == ".parquet":
        packed = COMPRESSION.search(str(path))
        frame = read_parquet(path) if packed else coercion.read_parquet(path, rows=HEAD_ROWS)
        return Head(name, "table").of_rows(frame.head(HEAD_ROWS).to_dicts(), frame.columns)
    start, whole = _read_start(path, suffix)
    content = start if whole else None
    if suffix in TABLE_SUFFIXES and not (suffix == ".tsv" and _begins_as_trec(start)):
        text_rows = read_text_csv(path, _first_records(start, suffix, name))
        if text_rows.bad and not text_rows.frame.height:
            raise bad_lines_error(path, text_rows.bad, "rows as in the header")
        rows = text_rows.frame.head(HEAD_ROWS).to_dicts()
        return Head(name, "table", content=content).of_rows(rows, text_rows.frame.columns)
    if start.lstrip()[:1] not in (b"{", b"["):
        return Head(name, "text", _first_records(start, suffix, name), content=content)
    lines = _first_lines(start, whole, suffix, name)
    if lines is not None:
        values = list(lines.values())
        head = Head(name, "lines", document=values[0] if values else None, content=content, lines=lines)
        return head.of_rows(values)
    head = Head(name, "json", content=content)
    values = read_document(head)
    rows = values[0] if len(values) == 1 and isinstance(values[0], list) else values
    return replace(head, values=values, document=values[0] if values else None).of_rows(rows)


def _begins_as_trec(data: bytes) -> bool:
    """Whether a table begins with a line of TREC instead of a header, as the qrels.dev.tsv of MS MARCO."""
    line = data.partition(b"\n")[0].rstrip(b"\r")
    fields = line.split(b"\t") if b"\t" in line else line.split()
    return len(fields) in (4, 6) and NUMBER.fullmatch(fields[3 if len(fields) == 4 else 4].strip()) is not None


def _read_start(path: PathOrStr, suffix: str) -> tuple[bytes, bool]:
    """Read a small file whole, or the beginning of a large one, with the whole first record."""
    most = max_line()
    with open_file(path) as stream:
        data = stream.read(SMALL)
        while following := stream.read(1):
            data += following
            if suffix == ".json" or b"\0" in data[:HEAD_BYTES] or len(data) > most or _records_end(data, suffix):
                return data.removeprefix(BOM), False
            data += stream.read(len(data))
    return data.removeprefix(BOM), True


def _first_records(data: bytes, suffix: str, name: str) -> bytes:
    """The whole records in the first bytes, or the whole beginning with the first record if that is longer."""
    most = max_line()
    if len(data) > most and b"\0" not in data[:HEAD_BYTES] and not _records_end(data[: most + 2], suffix):
        raise FormatError(
            f"the first record is longer than {most:,} bytes",
            file=name,
            line=1,
            remedy="check its line ends and quotes; if they are right, set the environment variable "
            "RAGWORTH_MAX_LINE to a larger number of bytes, such as 1G",
        )
    if len(data) <= HEAD_BYTES:
        return data
    return data[: _records_end(data[:HEAD_BYTES], suffix) or _records_end(data, suffix) or None]


def _records_end(data: bytes, suffix: str) -> int:
    """The end of the last whole record; 0 if none ends."""
    return rows_end(data) if suffix in TABLE_SUFFIXES else last_line_end(data)


def _first_lines(data: bytes, whole: bool, suffix: str, name: str) -> dict[int, Any] | None:
    """Return the JSON values of the first lines by number; None for a value that spans lines or the whole file."""
    first, end, rest = data.lstrip().partition(b"\n")
    if first.strip() in (b"{", b"["):
        return None
    is_alone = not rest.strip() and (whole or not end)
    if is_alone and suffix == ".json":
        return None
    lines = _decode_lines(_first_records(data, suffix, name))
    number = data[: len(data) - len(data.lstrip())].count(b"\n") + 1
    if number not in lines:  # damaged, or the first line of a document over several: those are indented or closed below
        return lines if suffix != ".json" and not re.match(rb"\s|[\]}]", rest[:1]) else None
    return None if is_alone and not isinstance(lines[number], dict) else lines


def _decode_lines(data: bytes) -> dict[int, Any]:
    """Return the JSON values of the first lines by number, without lines that have none."""
    values: dict[int, Any] = {}
    for number, line in numbered_lines(data, 0):
        with suppress(ValueError, RecursionError):
            values[number] = decode_line(line)
        if len(values) == HEAD_ROWS:
            break
    return values


def read_document(path: PathOrStr, *, unique_keys: bool = False) -> list[Any]:
    """Read a JSON document; several one after the other are read, too.

    ``unique_keys``: whether a key that an object has twice is an error; otherwise its last value counts.
    """
    if isinstance(path, Head) and path.values is not None and not unique_keys:
        return path.values
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


def has_key(path: PathOrStr, names: Iterable[str]) -> bool:
    """Return whether an object in a JSON file has one of these keys."""
    written = {json.dumps(name, ensure_ascii=ascii).encode() for name in names for ascii in (True, False)}
    pattern = re.compile(rb"(?:" + b"|".join(map(re.escape, written)) + rb")\s*:")
    return any(pattern.search(chunk) for chunk in read_chunks(path))
