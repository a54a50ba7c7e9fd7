"""A strict reader of Thrift's compact protocol, the encoding of Parquet's footer and page headers.

A struct is read as ``{field id: value}``. Integers of all widths are ``int``, strings are ``bytes``, lists contain one
kind of value. Anything that a correct writer doesn't produce is an error: a field that occurs twice, an integer beyond
its width, a list longer than the data.
"""

from __future__ import annotations

from typing import TypeAlias

Value: TypeAlias = "int | bool | bytes | list[Value] | dict[int, Value]"
Struct: TypeAlias = "dict[int, Value]"

MAX_DEPTH = 32
"""Maximum nesting of structs and lists. Parquet's own metadata needs 8."""

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, STRUCT = 1, 2, 3, 4, 5, 6, 7, 8, 9, 12
WIDTHS = {I16: 16, I32: 32, I64: 64}


class DamagedError(Exception):
    """The bytes are not valid."""


class ThriftReader:
    """Reads structs from ``data``, between ``at`` and ``end``."""

    def __init__(self, data: memoryview, at: int, end: int) -> None:
        self.data = data
        self.at = at
        self.end = end

    def struct(self, depth: int = 0) -> Struct:
        """Read the struct at the current position."""
        if depth > MAX_DEPTH:
            raise DamagedError("structs are nested too deep")
        fields: Struct = {}
        number = 0
        while head := self._byte():
            step, kind = head >> 4, head & 15
            number = number + step if step else self._integer(I16)
            if number in fields:
                raise DamagedError(f"field {number} occurs twice")
            fields[number] = kind == TRUE if kind in (TRUE, FALSE) else self._value(kind, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Value:
        if kind in WIDTHS:
            return self._integer(kind)
        if kind == BINARY:
            return self._bytes(self._varint())
        if kind == STRUCT:
            return self.struct(depth + 1)
        if kind == LIST:
            return self._list(depth + 1)
        if kind == BYTE:
            return self._byte()
        if kind == DOUBLE:
            return self._bytes(8)
        raise DamagedError(f"unknown field kind {kind}")

    def _list(self, depth: int) -> list[Value]:
        if depth > MAX_DEPTH:
            raise DamagedError("lists are nested too deep")
        head = self._byte()
        size, kind = head >> 4, head & 15
        if size == 15:
            size = self._varint()
        if size > self.end - self.at:
            raise DamagedError("a list is longer than the data")
        if kind in (TRUE, FALSE):
            return [self._byte() == TRUE for _ in range(size)]
        return [self._value(kind, depth) for _ in range(size)]

    def _byte(self) -> int:
        if self.at >= self.end:
            raise DamagedError("the data ends within a struct")
        self.at += 1
        return self.data[self.at - 1]

    def _bytes(self, size: int) -> bytes:
        if size > self.end - self.at:
            raise DamagedError("a text is longer than the data")
        self.at += size
        return bytes(self.data[self.at - size : self.at])

    def _varint(self) -> int:
        value = shift = 0
        while (byte := self._byte()) & 0x80:
            value |= (byte & 0x7F) << shift
            shift += 7
            if shift > 63:
                raise DamagedError("an integer is too long")
        return value | byte << shift

    def _integer(self, kind: int) -> int:
        """Read a signed, zigzag-encoded integer."""
        value = self._varint()
        if value >> WIDTHS[kind]:
            raise DamagedError("an integer is too large")
        return value >> 1 ^ -(value & 1)
