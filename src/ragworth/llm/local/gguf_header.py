"""Check the header of a GGUF file before a library reads it.

The libraries trust the counts and lengths in the file: an array declared with 2⁶⁰ numbers keeps them busy for ever.
Everything that a header declares must fit into the file, so one pass over its metadata is enough to reject such files.
"""

from __future__ import annotations

import math
import mmap
import struct
from pathlib import Path

from ragworth.core.errors import ModelError, quote_short

SCALAR_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""Bytes of a number, by its type's code."""

STRING, ARRAY = 8, 9
MAX_DEPTH = 4
"""Maximum nesting of arrays; no known file has more than one level."""

MAX_KEY_LENGTH = 1 << 16
MAX_DIMENSIONS = 4
MAX_VOCABULARY = 1 << 22
"""Maximum tokens of a vocabulary, and merges; the largest today have a few hundred thousand."""

MAX_TOKEN_LENGTH = 1 << 16


def check_header(path: Path) -> None:
    """Reject a file whose header declares more than the file contains."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            _HeaderReader(data).check()
    except OSError as error:
        raise ModelError(f"it cannot be read: {error.strerror or error}", file=str(path)) from error
    except ValueError as error:
        raise ModelError(
            f"its header is damaged: {error}",
            file=str(path),
            expected="a complete GGUF file",
            remedy="download it again, from a source that you trust",
        ) from error


class _HeaderReader:
    """Reads a header from front to back."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self._place = 0
        self._order = "<"

    def check(self) -> None:
        if self._take(4) != b"GGUF":
            raise ValueError("it doesn't begin with GGUF")
        version = self._number("I")
        if version and not version & 0xFFFF:  # written on a machine with the other byte order
            self._order, version = ">", version >> 24
        if version not in (2, 3):
            raise ValueError(f"version {version}, not 2 or 3")
        tensors = self._count("Q", least=24, what="tensors")
        for _ in range(self._count("Q", least=13, what="fields")):
            name = self._text(MAX_KEY_LENGTH, "the name of a field")
            self._value(self._number("I"), name)
        for _ in range(tensors):
            self._tensor()

    def _value(self, kind: int, name: str, depth: int = 0) -> None:
        """Skip a value."""
        if kind in SCALAR_SIZES:
            self._take(SCALAR_SIZES[kind])
        elif kind == STRING:
            self._text(len(self._data), name)
        elif kind != ARRAY or depth >= MAX_DEPTH:
            raise ValueError(f"a value of type {kind} in {quote_short(name)}")
        else:
            self._array(name, depth)

    def _array(self, name: str, depth: int) -> None:
        kind = self._number("I")
        number = self._count("Q", least=SCALAR_SIZES.get(kind, 8), what=f"values of {quote_short(name)}")
        words = name.startswith("tokenizer.")
        if words and number > MAX_VOCABULARY:
            raise ValueError(f"{number:,} values of {quote_short(name)}, not {MAX_VOCABULARY:,} at most")
        if kind in SCALAR_SIZES:
            self._take(number * SCALAR_SIZES[kind])
        elif kind == STRING:
            for _ in range(number):
                self._text(MAX_TOKEN_LENGTH if words else len(self._data), name)
        else:
            for _ in range(number):
                self._value(kind, name, depth + 1)

    def _tensor(self) -> None:
        name = self._text(MAX_KEY_LENGTH, "the name of a tensor")
        dimensions = self._number("I")
        if dimensions > MAX_DIMENSIONS:
            raise ValueError(f"the tensor {quote_short(name)} has {dimensions:,} dimensions")
        size = math.prod(self._number("Q") for _ in range(dimensions))
        self._number("I")
        # No format packs a weight into less than a bit.
        if size > 8 * len(self._data) or self._number("Q") > len(self._data):
            raise ValueError(f"the tensor {quote_short(name)} is larger than the file")

    def _text(self, longest: int, what: str) -> str:
        length = self._number("Q")
        if length > longest:
            raise ValueError(f"{quote_short(what)} has {length:,} bytes, not {longest:,} at most")
        return self._take(length)[:200].decode("utf-8", "replace")

    def _count(self, kind: str, least: int, what: str) -> int:
        """Read a count of items that take at least ``least`` bytes each."""
        number = self._number(kind)
        if number * least > len(self._data) - self._place:
            raise ValueError(f"{number:,} {what}, more than fit into the file")
        return number

    def _number(self, kind: str) -> int:
        (number,) = struct.unpack(self._order + kind, self._take(struct.calcsize(kind)))
        return int(number)

    def _take(self, length: int) -> bytes:
        start, self._place = self._place, self._place + length
        if self._place > len(self._data):
            raise ValueError("it ends too early")
        return self._data[start : self._place] if length < 1 << 20 else b""
