"""Check a Parquet file's footer, schema, row groups and pages for consistency.

After :func:`check_layout`, all sizes and counts are known to be non-negative, within the file, consistent and below a
limit. The checks read the footer and a few bytes of each page, not the data, except for pages with checksums.
"""

from __future__ import annotations

import zlib
from typing import NamedTuple, TypeVar, cast

from ragworth.parquet.thrift import DamagedError, Struct, ThriftReader, Value

MAGIC, ENCRYPTED = b"PAR1", b"PARE"
TAIL = 8
"""Bytes after the footer: its length and the magic number."""

REPEATED = 2
DATA, INDEX, DICTIONARY, DATA_V2 = 0, 1, 2, 3
UNCOMPRESSED = 0
CODECS = range(8)
BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY = 6, 7
KINDS = range(8)
PLAIN, PLAIN_DICTIONARY, RLE, BIT_PACKED, RLE_DICTIONARY = 0, 2, 3, 4, 8
PLAIN_ENCODINGS = frozenset({PLAIN, PLAIN_DICTIONARY, RLE, RLE_DICTIONARY})
"""Encodings whose decoders take every size from the headers, which are checked here."""
ENCODINGS = frozenset({0, 2, 3, 4, 5, 6, 7, 8, 9})

MAX_VALUE_BYTES = 16
"""Maximum bytes of a value in memory, besides its text."""

T = TypeVar("T")


class ParquetLayout(NamedTuple):
    """The layout of a consistent file."""

    rows: int
    size: int
    """Maximum bytes in memory after reading, except for nested columns."""
    plain: bool
    """Whether no decoder takes a size from within the data."""


class LeafColumn(NamedTuple):
    path: tuple[bytes, ...]
    kind: int
    repeated: bool
    """Whether a row may have more or fewer than one value."""


class _ColumnChunk(NamedTuple):
    """One column of one row group."""

    leaf: LeafColumn
    codec: int
    values: int
    start: int
    end: int


class _PageTotals:
    """Totals over the pages of a chunk."""

    def __init__(self) -> None:
        self.values = self.size = 0
        self.encodings: set[int] = set()


def check_layout(data: memoryview) -> ParquetLayout:
    """Return the layout of a file; raises :class:`DamagedError` if it is inconsistent."""
    footer = _read_footer(data)
    leaves = _read_leaves(_read_structs(footer, 2, "schema"))
    total = rows = size = 0
    encodings: set[int] = set()
    for group in _read_structs(footer, 4, "row groups"):
        rows = _read_count(group, 3, "rows of a row group")
        total += rows
        columns = _read_structs(group, 1, "columns of a row group")
        if len(columns) != len(leaves):
            raise DamagedError(f"a row group has {len(columns)} columns, but the schema has {len(leaves)}")
        for leaf, column in zip(leaves, columns, strict=True):
            chunk = _read_chunk(column, leaf, rows, len(data))
            sums = _check_pages(data, chunk)
            size += sums.size + chunk.values * MAX_VALUE_BYTES
            encodings |= sums.encodings
    if total != _read_count(footer, 3, "rows"):
        raise DamagedError(f"the row groups have {total} rows, but the footer has another number")
    return ParquetLayout(total, size, encodings <= PLAIN_ENCODINGS)


def _read_footer(data: memoryview) -> Struct:
    if len(data) < TAIL + len(MAGIC) or bytes(data[:4]) != MAGIC or bytes(data[-4:]) != MAGIC:
        if ENCRYPTED in (bytes(data[:4]), bytes(data[-4:])):
            raise DamagedError("the file is encrypted")
        raise DamagedError("it does not begin and end with PAR1: it has another format, or is truncated")
    length = int.from_bytes(data[-TAIL:-4], "little")
    end = len(data) - TAIL
    if length > end - len(MAGIC):
        raise DamagedError("the footer is longer than the file")
    reader = ThriftReader(data, end - length, end)
    footer = reader.struct()
    if reader.at != end:
        raise DamagedError("the footer is shorter than it says")
    if 8 in footer:
        raise DamagedError("the file is encrypted")
    return footer


def _read_leaves(schema: list[Struct]) -> list[LeafColumn]:
    """The columns of values, in order. A schema lists its tree with parents first."""
    leaves: list[LeafColumn] = []
    at = 0

    def walk(path: tuple[bytes, ...], repeated: bool) -> None:
        nonlocal at
        if at >= len(schema):
            raise DamagedError("the schema lacks columns")
        element = schema[at]
        at += 1
        name = _read_typed(element, 4, bytes, "name of a column")
        _check_text(name)
        repetition = _read_typed(element, 3, int, "repetition", default=0)
        if repetition not in (0, 1, REPEATED):
            raise DamagedError(f"unknown repetition {repetition}")
        inner = (*path, name) if at > 1 else ()
        repeated = repeated or (at > 1 and repetition == REPEATED)
        children = _read_typed(element, 5, int, "children", default=0)
        if children < 0 or len(inner) > 16:
            raise DamagedError("the schema has impossible children")
        if 1 in element or (not children and at > 1):
            kind = _read_typed(element, 1, int, "type of a column")
            if children or kind not in KINDS:
                raise DamagedError(f"unknown column type {kind}")
            if kind == FIXED_LEN_BYTE_ARRAY and not 0 < _read_typed(element, 2, int, "width of a column") <= 1 << 20:
                raise DamagedError("a column has an impossible width")
            leaves.append(LeafColumn(inner, kind, repeated))
        for _ in range(children):
            walk(inner, repeated)

    walk((), False)
    if at != len(schema):
        raise DamagedError("the schema has columns outside its tree")
    return leaves


def _check_text(data: bytes) -> None:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DamagedError("the name of a column is not UTF-8 text") from error


def _read_chunk(column: Struct, leaf: LeafColumn, rows: int, size: int) -> _ColumnChunk:
    if 1 in column or 8 in column:
        raise DamagedError("a column is in another file, or encrypted")
    meta = cast(Struct, _read_typed(column, 3, dict, "column"))
    if (
        _read_typed(meta, 1, int, "type of a column") != leaf.kind
        or tuple(_read_typed(meta, 3, list, "path")) != leaf.path
    ):
        raise DamagedError("a column of a row group differs from the schema")
    codec = _read_typed(meta, 4, int, "codec")
    if codec not in CODECS:
        raise DamagedError(f"unknown codec {codec}")
    values = _read_count(meta, 5, "values of a column")
    if values < rows or (values > rows and not leaf.repeated):
        raise DamagedError(f"a column has {values} values for {rows} rows")
    first, start = (
        _read_count(meta, 9, "data page offset"),
        _read_typed(meta, 11, int, "dictionary page offset", default=0),
    )
    start = start if start > 0 else first
    if not values and not first:  # no data page: PyArrow writes empty row groups like this
        first = start = start or len(MAGIC)
    end = start + _read_count(meta, 7, "compressed size of a column")
    if start < len(MAGIC) or not start <= first <= end or end > size - TAIL:
        raise DamagedError("a column is outside the file")
    _read_count(meta, 6, "size of a column")
    return _ColumnChunk(leaf, codec, values, start, end)


def _check_pages(data: memoryview, chunk: _ColumnChunk) -> _PageTotals:
    sums = _PageTotals()
    at, number = chunk.start, 0
    while at < chunk.end and (sums.values < chunk.values or not number):
        reader = ThriftReader(data, at, chunk.end)
        header = reader.struct()
        packed, size = _read_count(header, 3, "compressed size of a page"), _read_count(header, 2, "size of a page")
        at = reader.at + packed
        if at > chunk.end:
            raise DamagedError("a page is longer than its column")
        _check_crc(header, data[reader.at : at])
        kind = _read_typed(header, 1, int, "type of a page")
        if kind == DICTIONARY:
            _check_dictionary(header, chunk, number, size)
        elif kind in (DATA, DATA_V2):
            _check_data_page(header, chunk, sums, packed, size)
        elif kind != INDEX:
            raise DamagedError(f"unknown page type {kind}")
        if chunk.codec == UNCOMPRESSED and size != packed:
            raise DamagedError("an uncompressed page has two sizes")
        sums.size += size
        number += 1
    if sums.values != chunk.values:
        raise DamagedError(f"a column has {chunk.values} values, but its pages have {sums.values}")
    return sums


def _check_crc(header: Struct, data: memoryview) -> None:
    if 4 in header and _read_typed(header, 4, int, "checksum") & 0xFFFFFFFF != zlib.crc32(data):
        raise DamagedError("the checksum of a page is wrong")


def _check_dictionary(header: Struct, chunk: _ColumnChunk, number: int, size: int) -> None:
    if number:
        raise DamagedError("a column has a dictionary after its data")
    about = cast(Struct, _read_typed(header, 7, dict, "dictionary page"))
    least = 4 if chunk.leaf.kind == BYTE_ARRAY else 1
    if _read_count(about, 1, "values of a dictionary") * least > size:
        raise DamagedError("a dictionary has more values than bytes")
    if _read_typed(about, 2, int, "encoding of a dictionary") not in (PLAIN, PLAIN_DICTIONARY):
        raise DamagedError("a dictionary has an impossible encoding")


def _check_data_page(header: Struct, chunk: _ColumnChunk, sums: _PageTotals, packed: int, size: int) -> None:
    second = header[1] == DATA_V2
    about = cast(Struct, _read_typed(header, 8 if second else 5, dict, "data page"))
    values = _read_count(about, 1, "values of a page")
    encoding = _read_typed(about, 4 if second else 2, int, "encoding of a page")
    if encoding not in ENCODINGS:
        raise DamagedError(f"there is no encoding {encoding}")
    sums.values += values
    sums.encodings.add(encoding)
    if not second:
        if _read_typed(about, 3, int, "level encoding") != RLE or _read_typed(about, 4, int, "level encoding") != RLE:
            sums.encodings.add(BIT_PACKED)
        return
    nulls, rows = _read_count(about, 2, "nulls of a page"), _read_count(about, 3, "rows of a page")
    levels = _read_count(about, 5, "levels of a page") + _read_count(about, 6, "levels of a page")
    if nulls > values or rows > values or levels > packed or levels > size:
        raise DamagedError("a page has more nulls, rows or levels than values")
    if about.get(7, True) is False and packed != size:
        raise DamagedError("an uncompressed page has two sizes")


def _read_count(struct: Struct, field: int, what: str) -> int:
    number = _read_typed(struct, field, int, what)
    if number < 0:
        raise DamagedError(f"the {what}: {number}")
    return number


def _read_structs(struct: Struct, field: int, what: str) -> list[Struct]:
    items = _read_typed(struct, field, list, what)
    if not all(isinstance(item, dict) for item in items):
        raise DamagedError(f"the {what} are not structs")
    return cast("list[Struct]", items)


def _read_typed(struct: Struct, field: int, kind: type[T], what: str, default: T | None = None) -> T:
    value: Value | None = struct.get(field, cast("Value | None", default))
    if not isinstance(value, kind) or isinstance(value, bool):
        raise DamagedError(f"the {what} is missing")
    return value
