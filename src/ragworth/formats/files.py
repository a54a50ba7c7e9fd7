"""Opening files: plain, gzip or zstd alike, read in whole lines, with one kind of error for all troubles."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import IO, TypeVar, cast

from ragworth.errors import FormatError
from ragworth.storage.private import open_beside

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

CHUNK = 16 << 20
"""How many bytes are read and parsed at a time. Memory beyond the result stays within a few of these."""

GZIP, ZSTD, BOM = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xef\xbb\xbf"

Path_ = str | Path
T = TypeVar("T")


@contextmanager
def opened(path: Path_) -> Iterator[IO[bytes]]:
    """The bytes of a file, decompressed where its first bytes say that it is compressed."""
    try:
        with Path(path).open("rb") as raw:
            head = raw.peek(4)[:4]
            if head[:2] == GZIP:
                with gzip.open(raw) as stream:
                    yield cast(IO[bytes], stream)
            elif head == ZSTD:
                with zstd.open(raw) as stream:
                    yield cast(IO[bytes], stream)
            else:
                yield raw
    except ValueError as error:
        if "null byte" not in str(error):
            raise
        raise FormatError("this is no file name", file=repr(str(path)), remedy="check the path") from error
    except FileNotFoundError as error:
        raise FormatError("there is no such file", file=str(path), remedy="check the path") from error
    except IsADirectoryError as error:
        raise FormatError("this is a folder, not a file", file=str(path)) from error
    except (EOFError, zlib.error, gzip.BadGzipFile, zstd.ZstdError) as error:
        raise FormatError(
            f"the compressed data are damaged or cut short ({error})",
            file=str(path),
            remedy="fetch or compress the file again",
        ) from error
    except OSError as error:
        raise FormatError(f"cannot be read: {error.strerror or error}", file=str(path)) from error


def chunks(path: Path_) -> Iterator[bytes]:
    """The file in pieces of about :data:`CHUNK` bytes that end at a line's end; no byte-order mark."""
    with opened(path) as stream:
        buffer, have, first = bytearray(CHUNK), 0, True
        while True:
            got = cast(BufferedReader, stream).readinto(memoryview(buffer)[have:])
            have += got
            if got and have < len(buffer):
                continue
            cut = buffer.rfind(b"\n", 0, have) + 1 if got else have
            if cut:
                chunk = bytes(memoryview(buffer)[:cut])
                yield chunk.removeprefix(BOM) if first else chunk
                first = False
            if not got:
                return
            if not cut:  # one line fills the buffer
                buffer += bytes(len(buffer))
            buffer[: have - cut] = buffer[cut:have]
            have -= cut


def ahead(items: Iterator[T]) -> Iterator[T]:
    """The same items, the next one made in another thread while this one is used."""
    done = object()
    with ThreadPoolExecutor(max_workers=1) as worker:
        waiting = worker.submit(next, items, done)
        while (item := waiting.result()) is not done:
            waiting = worker.submit(next, items, done)
            yield cast(T, item)


def lines(path: Path_) -> Iterator[tuple[int, bytes]]:
    """Numbered lines, from 1, without their ends (``\\n``, ``\\r\\n`` or ``\\r``)."""
    number = 0
    for chunk in chunks(path):
        for line in split_lines(chunk):
            number += 1
            yield number, line


def split_lines(chunk: bytes) -> list[bytes]:
    """The lines of a chunk without their ends."""
    parts = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    return parts[:-1] if parts[-1] == b"" else parts


def stem(path: Path_) -> str:
    """A file's name without folders and without the endings of runs and of compression."""
    name = Path(path).name
    for ending in (".gz", ".zst", ".run", ".trec", ".txt", ".res", ".jsonl", ".json", ".parquet", ".csv", ".tsv"):
        if name.lower().endswith(ending) and len(name) > len(ending):
            name = name[: -len(ending)]
    return name


@contextmanager
def created(path: Path_) -> Iterator[IO[bytes]]:
    """A file to write, compressed when its name ends in ``.gz`` or ``.zst``; there only when all was written."""
    path, part = Path(path), None
    try:
        with ExitStack() as stack:
            part, raw = open_beside(path, private=False)
            stream: IO[bytes] = stack.enter_context(raw)
            if path.suffix == ".gz":
                # No name and no time inside, so that equal content gives equal files.
                packed = gzip.GzipFile("", "wb", fileobj=stream, mtime=0)
                stream = cast(IO[bytes], stack.enter_context(packed))
            elif path.suffix == ".zst":
                stream = cast(IO[bytes], stack.enter_context(zstd.open(stream, "wb")))
            yield stream
        part.replace(path)
    except (OSError, ValueError) as error:
        if isinstance(error, ValueError) and "null byte" not in str(error):
            raise
        reason = error.strerror if isinstance(error, OSError) else "this is no file name"
        raise FormatError(f"cannot be written: {reason or error}", file=str(path)) from error
    finally:
        if part is not None:
            with suppress(OSError):
                part.unlink(missing_ok=True)
