"""Open plain or compressed files, read them in whole lines, and report all failures as one kind of error."""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, cast

import numpy as np

from ragworth.core.errors import FormatError, quote_short
from ragworth.core.limits import max_line
from ragworth.core.output import open_output
from ragworth.formats.compression import open_decompressed, zstd
from ragworth.formats.pipes import STDIN, can_read_again, seekable_path

CHUNK = 16 << 20
"""Bytes read and parsed at a time. Memory beyond the result stays within a few of these."""

BLOCK_BYTES = 1 << 17
"""Bytes examined at a time, few enough to stay in the CPU cache between passes."""

BOM = b"\xef\xbb\xbf"
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
UTF16_SAMPLE = 16
UTF16_LETTERS = 4
"""Minimum number of letters, each with a zero byte, by which UTF-16 without a mark is recognised."""

PathOrStr = str | Path


class EncodingError(FormatError):
    """A text in another encoding than UTF-8."""


@contextmanager
def open_file(path: PathOrStr) -> Iterator[IO[bytes]]:
    """Open a file, decompressing it if its first bytes say so. The path ``-`` is what is piped in."""
    try:
        with seekable_path(path).open("rb") as raw:
            if encoding := _utf16(raw.peek(UTF16_SAMPLE)[:UTF16_SAMPLE]):
                raise EncodingError(
                    "this is UTF-16 text",
                    file=str(path),
                    expected="UTF-8",
                    remedy=f"save it as UTF-8, or convert it: iconv -f {encoding} -t UTF-8 FILE > NEW",
                )
            with open_decompressed(raw, str(path)) as stream:
                yield stream
    except ValueError as error:
        if "null byte" not in str(error):
            raise
        raise FormatError("invalid file name", file=repr(str(path)), remedy="check the path") from error
    except FileNotFoundError as error:
        raise FormatError(_not_found_message(path), file=str(path), remedy=missing_file_remedy(path)) from error
    except IsADirectoryError as error:
        raise FormatError(
            "this is a folder, not a file", file=str(path), remedy="name the files in it, such as FOLDER/bm25.run"
        ) from error
    except (EOFError, zlib.error, gzip.BadGzipFile, zstd.ZstdError) as error:
        raise FormatError(
            f"the compressed data is damaged or truncated ({error})",
            file=str(path),
            remedy="download or compress the file again",
        ) from error
    except OSError as error:
        raise FormatError(f"cannot be read: {error.strerror or error}", file=str(path)) from error


def _utf16(head: bytes) -> str:
    """The kind of UTF-16 that a file begins with, even without a mark: letters and zeros alternate; "" if it isn't."""
    if head[:2] in UTF16_MARKS:
        return "UTF-16"
    even, odd = head[::2], head[1::2]
    for encoding, letters, zeros in (("UTF-16LE", even, odd), ("UTF-16BE", odd, even)):
        if (
            len(zeros) >= UTF16_LETTERS
            and not any(zeros)
            and all(32 <= one < 127 or one in b"\t\r\n" for one in letters)
        ):
            return encoding
    return ""


def missing_file_remedy(path: PathOrStr) -> str:
    """What to do if there is no such file."""
    return "check the path" if str(path) != "-" else "standard input isn't read: save it as a file, and name that"


def _not_found_message(path: PathOrStr) -> str:
    # Unlike pathlib's is_symlink, islink returns False for an invalid file name.
    if os.path.islink(path):  # noqa: PTH114
        return f"this is a link to {quote_short(os.readlink(path))}, which doesn't exist"  # noqa: PTH115
    return "no such file"


def read_chunks(path: PathOrStr) -> Iterator[bytes]:
    """Read a file in chunks of about :data:`CHUNK` bytes that end at a line end, without byte-order mark."""
    most, position, pending = max_line(), 0, b""
    with open_file(path) as stream:
        while True:
            block = stream.read(CHUNK)
            cut = last_line_end(block) if block else 0
            if block and not cut:  # a line continues
                pending += block
                block, pending, cut = pending, b"", last_line_end(pending)
            if block and not cut:
                if len(block) >= most:
                    raise _long_line(path, most, position)
                pending = block
                continue
            chunk = block if cut == len(block) and not pending else b"".join((pending, memoryview(block)[:cut]))
            pending = block[cut:]
            chunk = chunk if position else chunk.removeprefix(BOM)
            if len(chunk) > most:
                _check_lines(chunk, most, position, path)
            if chunk:
                yield chunk
            position += len(chunk)
            if not block:
                return


def last_line_end(block: bytes) -> int:
    """The end of the last line in a block; 0 if none ends there."""
    end = block.rfind(b"\n") + 1
    # A carriage return at the very end may be half of a line end.
    return end or block.rfind(b"\r", 0, -1) + 1


def read_lines(path: PathOrStr) -> Iterator[tuple[int, bytes]]:
    """Yield non-empty lines, numbered from 1, without line ends (``\\n``, ``\\r\\n`` or ``\\r``)."""
    before = 0
    for chunk in read_chunks(path):
        yield from numbered_lines(chunk, before)
        before += count_lines(chunk)


def numbered_lines(chunk: bytes, before: int) -> Iterator[tuple[int, bytes]]:
    """Yield the non-empty lines of a chunk with their numbers; ``before`` lines precede the chunk."""
    chunk = normalize_newlines(chunk)
    if b"\n\n" not in chunk and not chunk.startswith(b"\n"):
        yield from enumerate(chunk.removesuffix(b"\n").split(b"\n") if chunk else [], before + 1)
        return
    at, number = 0, before + 1
    for found in re.finditer(rb"[^\n]+", chunk):  # so a million empty lines cost no more than one
        number += chunk.count(b"\n", at, at := found.start())
        yield number, found[0]


def split_lines(chunk: bytes) -> list[bytes]:
    """Split a chunk into lines without line ends."""
    parts = normalize_newlines(chunk).split(b"\n")
    return parts[:-1] if parts[-1] == b"" else parts


def normalize_newlines(chunk: bytes) -> bytes:
    """Convert all line ends to ``\\n``."""
    return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in chunk else chunk


def count_lines(chunk: bytes) -> int:
    """Number of lines that :func:`split_lines` returns."""
    data = np.frombuffer(chunk, dtype=np.uint8)
    blocks = (data[low : low + BLOCK_BYTES] for low in range(0, len(data), BLOCK_BYTES))
    ends = sum(int(np.count_nonzero(block == ord("\n"))) for block in blocks)
    if b"\r" in chunk:
        ends += chunk.count(b"\r") - chunk.count(b"\r\n")
    return ends + (not chunk.endswith((b"\n", b"\r")) and chunk != b"")


def _check_lines(chunk: bytes, most: int, position: int, path: PathOrStr) -> None:
    """Reject a chunk with a line that is too long; ``position`` bytes precede the chunk."""
    data = np.frombuffer(chunk, dtype=np.uint8)
    ends = np.flatnonzero((data == ord("\n")) | (data == ord("\r")))
    long = np.flatnonzero(np.diff(ends, prepend=-1, append=len(data)) > most + 1)
    if len(long):
        start = int(ends[long[0] - 1]) + 1 if long[0] else 0
        raise _long_line(path, most, position, chunk[:start])


def _long_line(path: PathOrStr, most: int, position: int, before: bytes = b"") -> FormatError:
    """The error for a line after chunks of ``position`` bytes and the lines ``before`` it."""
    known = can_read_again(path)
    return FormatError(
        f"this line is longer than {most:,} bytes",
        file=str(path),
        line=_count_lines_to(path, position) + count_lines(before) + 1 if known else None,
        remedy="check that this is a text file; if it is, set the environment variable RAGWORTH_MAX_LINE to a larger "
        "number of bytes, such as 1G",
    )


def _count_lines_to(path: PathOrStr, position: int) -> int:
    """Number of lines in the first chunks of a file, which have ``position`` bytes in all."""
    lines, chunks = 0, read_chunks(path)
    while position > 0:
        chunk = next(chunks)
        lines, position = lines + count_lines(chunk), position - len(chunk)
    return lines


def source_name(path: PathOrStr) -> str:
    """A path as text; bytes that are no UTF-8 become �."""
    return os.fsencode(path).decode("utf-8", "replace")


def run_name(path: PathOrStr) -> str:
    """Strip folders, run extensions and compression extensions from a file name; bytes that are no UTF-8 become �."""
    name = "stdin" if str(path) == STDIN else source_name(Path(path).name)
    for ending in (".gz", ".zst", ".run", ".trec", ".txt", ".res", ".jsonl", ".json", ".parquet", ".csv", ".tsv"):
        if name.lower().endswith(ending) and len(name) > len(ending):
            name = name[: -len(ending)]
    return name


@contextmanager
def create_file(path: PathOrStr) -> Iterator[IO[bytes]]:
    """Create a file atomically, compressed if its name ends in ``.gz`` or ``.zst``."""
    path = Path(path)
    with open_output(path, private=False) as part, ExitStack() as stack:
        stream = part.stream
        if path.suffix == ".gz":
            # Without name or time, so that equal content gives equal files.
            packed = gzip.GzipFile("", "wb", fileobj=stream, mtime=0)
            stream = cast(IO[bytes], stack.enter_context(packed))
        elif path.suffix == ".zst":
            stream = cast(IO[bytes], stack.enter_context(zstd.open(stream, "wb")))
        yield stream
