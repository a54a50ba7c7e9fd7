"""Decompress gzip and Zstandard, recognized by content, within limits.

A few kilobytes can unpack to gigabytes. So a file may unpack to
:data:`~ragworth.core.limits.MIN_UNPACKED_SIZE` bytes, or to a multiple of its own size, set by ``RAGWORTH_MAX_RATIO``.
"""

from __future__ import annotations

import gzip
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader, RawIOBase
from typing import IO, Any, cast

from ragworth.core.errors import FormatError
from ragworth.core.limits import MIN_UNPACKED_SIZE, max_ratio

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

__all__ = ["open_decompressed", "zstd"]

GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"

UNSUPPORTED = {b"BZh%d1AY&SY" % level: ("compressed with bzip2", "bunzip2 FILE") for level in range(1, 10)} | {
    b"\xfd7zXZ\0": ("compressed with xz", "unxz FILE"),
    b"PK\3\4": ("a ZIP archive", "unzip FILE"),
}
"""Signatures of unsupported compressed files, with a description and the command that unpacks them."""

SPREADSHEETS = (".xlsx", ".xlsm", ".xls", ".ods")
"""Extensions of spreadsheets; they are ZIP archives, or in Microsoft's old format."""

LONGEST_MAGIC = 16


@contextmanager
def open_decompressed(raw: BufferedReader, name: str) -> Iterator[IO[bytes]]:
    """Return the stream, or its decompressed content if its first bytes say so (one layer only)."""
    head = raw.peek(LONGEST_MAGIC)[:LONGEST_MAGIC]
    if head.startswith((b"PK\3\4", b"\xd0\xcf\x11\xe0")) and name.lower().endswith(SPREADSHEETS):
        raise FormatError(
            "this is a spreadsheet",
            file=name,
            expected="text or Parquet",
            remedy="save the sheet as CSV (UTF-8), or pass a data frame in Python: pandas.read_excel(FILE)",
        )
    for magic, (kind, command) in UNSUPPORTED.items():
        if head.startswith(magic):
            raise FormatError(
                f"this is {kind}",
                file=name,
                expected="text, or text compressed with gzip or Zstandard",
                remedy=f"unpack it: {command}",
            )
    if head.startswith((GZIP, ZSTD)):
        packed = _CountingFile(raw)
        unpack = gzip.open if head.startswith(GZIP) else zstd.open
        with unpack(cast(IO[bytes], packed)) as stream:
            unpacked = BufferedReader(_BoundedStream(cast(IO[bytes], stream), packed, name))
            if unpacked.peek(4).startswith((GZIP, ZSTD)):
                raise FormatError("this is compressed twice", file=name, remedy="unpack it once")
            yield cast(IO[bytes], unpacked)
    else:
        yield raw


class _CountingFile:
    """A file that counts the bytes read, since a pipe has no size."""

    def __init__(self, raw: BufferedReader) -> None:
        self.raw = raw
        self.size = os.fstat(raw.fileno()).st_size
        self.taken = 0

    def read(self, size: int = -1) -> bytes:
        data = self.raw.read(size)
        self.taken += len(data)
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)


class _BoundedStream(RawIOBase):
    """Decompressed content of a file, limited in proportion to the compressed size."""

    def __init__(self, stream: IO[bytes], packed: _CountingFile, file: str) -> None:
        self.stream = stream
        self.packed = packed
        self.file = file
        self.ratio = max_ratio()
        self.made = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        got = cast(BufferedReader, self.stream).readinto(buffer)
        self.made += got
        if self.made > MIN_UNPACKED_SIZE and self.made > self.ratio * max(self.packed.size, self.packed.taken):
            raise FormatError(
                f"this compressed file unpacks to more than {self.ratio:,} times its size",
                file=self.file,
                expected=f"at most {MIN_UNPACKED_SIZE >> 20} MB, or {self.ratio:,} times the size of the file",
                remedy="if you trust it, unpack it first, or set the environment variable RAGWORTH_MAX_RATIO "
                "to a larger number",
            )
        return got
