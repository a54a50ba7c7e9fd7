"""Open plain or compressed files, read them in whole lines, and report what is wrong as one kind of error."""

from __future__ import annotations

import gzip
import io
import os
import re
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from io import BufferedReader, RawIOBase
from pathlib import Path
from threading import Lock
from typing import IO, Any, cast

import polars as pl

from ragworth.core.errors import BadLine, FormatError, Hint, format_count, quote_short
from ragworth.core.files import open_output
from ragworth.core.nested_text import MIN_UNPACKED_SIZE, max_line, max_ratio
from ragworth.data import coercion

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

CHUNK = 16 << 20
"""Bytes read and parsed at a time. Memory beyond the result stays within a few of these."""

STDIN = "-"
"""The path of what is piped in."""

OPEN_FILE = re.compile(r"/dev/(stdin|fd/\d+)|/proc/(self|\d+)/fd/\d+")
"""Paths of files that the process has open."""

NOT_UTF8 = "not UTF-8 text"
BOM = b"\xef\xbb\xbf"
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
UTF16_SAMPLE = 16
GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
SPREADSHEETS = (".xlsx", ".xlsm", ".xls", ".ods")
"""Extensions of spreadsheets; they are ZIP archives, or in Microsoft's old format."""

UNSUPPORTED = {
    b"BZh": ("compressed with bzip2", "unpack it: bunzip2 FILE"),
    b"\xfd7zXZ\0": ("compressed with xz", "unpack it: unxz FILE"),
    b"PK\3\4": ("a ZIP archive", "unpack it: unzip FILE"),
}
"""First bytes of files that aren't read, with a description and the remedy."""

RUN_ENDINGS = (".gz", ".zst", ".run", ".trec", ".txt", ".res", ".jsonl", ".json", ".parquet", ".csv", ".tsv")

PathOrStr = str | os.PathLike[str]


class EncodingError(FormatError):
    """A text in another encoding than UTF-8."""


@contextmanager
def open_file(path: PathOrStr) -> Iterator[IO[bytes]]:
    """Open a file, decompressing it if its first bytes say so. The path ``-`` is what is piped in.

    The ``content`` of a head, where it has that, is not read again.
    """
    if (content := getattr(path, "content", None)) is not None:
        yield io.BytesIO(content)
        return
    if "\0" in str(path):
        raise FormatError("invalid file name", file=repr(str(path)), remedy="check the path")
    try:
        with _seekable_path(path).open("rb") as raw:
            _check_signature(path, raw.peek(UTF16_SAMPLE)[:UTF16_SAMPLE])
            with ExitStack() as stack:
                yield _unpack(path, raw, stack)
    except FileNotFoundError as error:
        raise FormatError("no such file", file=str(path), remedy=missing_file_remedy(path)) from error
    except IsADirectoryError as error:
        remedy = "name the files in it, such as FOLDER/bm25.run"
        raise FormatError("this is a folder, not a file", file=str(path), remedy=remedy) from error
    except (EOFError, zlib.error, gzip.BadGzipFile, zstd.ZstdError) as error:
        problem = f"the compressed data is damaged or truncated ({error})"
        raise FormatError(problem, file=str(path), remedy="download or compress the file again") from error
    except OSError as error:
        raise FormatError(f"cannot be read: {error.strerror or error}", file=str(path)) from error


def _check_signature(path: PathOrStr, head: bytes) -> None:
    """Reject archives, spreadsheets and UTF-16, with or without a mark: letters and zeros alternate in it."""
    if head.startswith((b"PK\3\4", b"\xd0\xcf\x11\xe0")) and str(path).lower().endswith(SPREADSHEETS):
        raise FormatError(
            "this is a spreadsheet",
            file=str(path),
            expected="text or Parquet",
            remedy="save the sheet as CSV (UTF-8), or pass a data frame in Python: pandas.read_excel(FILE)",
        )
    for signature, (kind, remedy) in UNSUPPORTED.items():
        if head.startswith(signature):
            expected = "text, or text compressed with gzip or Zstandard"
            raise FormatError(f"this is {kind}", file=str(path), expected=expected, remedy=remedy)
    little, big = not any(head[1::2]), not any(head[::2])
    if head.startswith(UTF16_MARKS) or (len(head) >= 8 and little != big):
        encoding = "UTF-16" if head.startswith(UTF16_MARKS) else "UTF-16LE" if little else "UTF-16BE"
        remedy = f"save it as UTF-8, or convert it: iconv -f {encoding} -t UTF-8 FILE > NEW"
        raise EncodingError("this is UTF-16 text", file=str(path), expected="UTF-8", remedy=remedy)


def _unpack(path: PathOrStr, raw: BufferedReader, stack: ExitStack) -> IO[bytes]:
    """The stream, or its decompressed content (one layer only)."""
    head = raw.peek(4)
    if not head.startswith((GZIP, ZSTD)):
        return raw
    packed = cast(IO[bytes], stack.enter_context((gzip.open if head.startswith(GZIP) else zstd.open)(raw)))
    return cast(IO[bytes], BufferedReader(_Unpacked(packed, str(path), os.fstat(raw.fileno()).st_size)))


class _Unpacked(RawIOBase):
    """Decompressed content, limited in proportion to the compressed size: a few kilobytes can unpack to gigabytes."""

    def __init__(self, stream: IO[bytes], file: str, size: int) -> None:
        self.stream, self.file, self.ratio = cast(BufferedReader, stream), file, max_ratio()
        self.left = max(MIN_UNPACKED_SIZE, self.ratio * size)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self.stream.readinto(buffer)
        self.left -= count
        if self.left < 0:
            raise FormatError(
                f"this compressed file unpacks to more than {self.ratio:,} times its size",
                file=self.file,
                expected=f"at most {MIN_UNPACKED_SIZE >> 20} MB, or {self.ratio:,} times the size of the file",
                remedy="if you trust it, unpack it first, or set the environment variable RAGWORTH_MAX_RATIO "
                "to a larger number",
            )
        return count


def missing_file_remedy(path: PathOrStr) -> str:
    """Return the advice for a path where no file is."""
    return "check the path" if str(path) != STDIN else "standard input isn't read: save it as a file, and name that"


_lock = Lock()


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """A folder for copies, removed at the end of the process."""
    return tempfile.TemporaryDirectory(prefix="ragworth-")


def _seekable_path(path: PathOrStr) -> Path:
    """The path itself; for what is piped in, a copy that can be read more than once."""
    piped = str(path) == STDIN
    try:
        facts = os.fstat(0) if piped else os.stat(path)  # noqa: PTH116
    except OSError:
        return Path(path)  # opening it says what is wrong
    if not piped and not stat.S_ISFIFO(facts.st_mode):
        return Path(path)
    if not piped and not OPEN_FILE.fullmatch(str(path)):
        raise FormatError("this is a named pipe", file=str(path), remedy="save it as a file, or pipe it in, as -")
    with _lock:
        copy = Path(_folder().name) / f"{facts.st_dev}-{facts.st_ino}"
        if not copy.exists():
            with open(0 if piped else path, "rb", closefd=not piped) as source, copy.open("wb") as target:
                shutil.copyfileobj(source, target)
    return copy


def read_parquet(path: PathOrStr) -> pl.DataFrame:
    """Read a Parquet file, also if it was compressed again."""
    with open_file(path) as stream:
        compressed = Path(path).suffix in (".gz", ".zst")
        return coercion.read_parquet(stream.read() if compressed else path, name=str(path))


def read_chunks(path: PathOrStr) -> Iterator[bytes]:
    """Read a file in chunks of about :data:`CHUNK` bytes that end at a line end, without byte-order mark."""
    most, rest, first = max_line(), b"", True
    with open_file(path) as stream:
        while (block := stream.read(CHUNK)) or rest:
            end = last_line_end(block)
            if block and not end and len(rest) + len(block) <= most + 1:  # a line continues
                rest += block
                continue
            end = end or len(block)
            chunk, rest = b"".join((rest, memoryview(block)[:end])), block[end:]
            chunk = chunk.removeprefix(BOM) if first else chunk
            if chunk:
                yield _check_lines(path, chunk, most, first=first)
            first = False


def last_line_end(block: bytes) -> int:
    """The end of the last line in a block; 0 if none ends there."""
    end = block.rfind(b"\n") + 1
    # A carriage return at the very end may be half of a line end.
    return end or block.rfind(b"\r", 0, -1) + 1


def _check_lines(path: PathOrStr, chunk: bytes, most: int, *, first: bool) -> bytes:
    """Reject a chunk with a line that is too long; only in the first chunk of a file is its number known."""
    long = (each for each in numbered_lines(chunk, 0) if len(each[1]) > most) if len(chunk) > most else ()
    for number, line in long:
        raise FormatError(
            f"this line is longer than {most:,} bytes: {quote_short(line[:80].decode('utf-8', 'replace'), 40)}",
            file=str(path),
            line=number if first else None,
            remedy="check that this is a text file; if it is, set the environment variable RAGWORTH_MAX_LINE to a "
            "larger number of bytes, such as 1G",
        )
    return chunk


def read_lines(path: PathOrStr) -> Iterator[tuple[int, bytes]]:
    """Yield non-empty lines, numbered from 1, without line ends (``\\n``, ``\\r\\n`` or ``\\r``)."""
    before = 0
    for chunk in read_chunks(path):
        yield from numbered_lines(chunk, before)
        before += count_lines(chunk)


def numbered_lines(chunk: bytes, before: int) -> Iterator[tuple[int, bytes]]:
    """Yield the non-empty lines of a chunk with their numbers; ``before`` lines precede the chunk."""
    return ((number, line) for number, line in enumerate(split_lines(chunk), before + 1) if line)


def split_lines(chunk: bytes) -> list[bytes]:
    """Split a chunk into lines without line ends."""
    parts = normalize_newlines(chunk).split(b"\n")
    return parts[:-1] if parts[-1] == b"" else parts


def normalize_newlines(chunk: bytes) -> bytes:
    """Convert all line ends to ``\\n``."""
    return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in chunk else chunk


def count_lines(chunk: bytes) -> int:
    """Number of lines that :func:`split_lines` returns."""
    chunk = normalize_newlines(chunk)
    return chunk.count(b"\n") + (not chunk.endswith(b"\n") and chunk != b"")


def bad_lines_error(path: PathOrStr, bad: Sequence[BadLine], expected: str, fix: str = "fix the file") -> FormatError:
    """Return the error for bad lines: the first with its number, a few more, and the remedy."""
    rest = len(bad) - 1
    if all(NOT_UTF8 in each.found for each in bad):
        fix = f"save it as UTF-8, such as: iconv -f windows-1252 -t utf-8 {Path(path).name} > utf8.csv"
    return FormatError(
        bad[0].found,
        file=str(path),
        line=bad[0].line,
        more=tuple(str(b) for b in bad[1:4]) + ((f"… {format_count(rest - 3, 'more bad line')}",) if rest > 3 else ()),
        expected=expected,
        remedy=Hint(
            f"{fix}, or skip such lines with --skip-bad-lines",
            fix,
            f"{fix}, or skip such lines with skip_bad_lines=True",
            option="skip_bad_lines",
        ),
    )


def skipped_note(path: PathOrStr, bad: Sequence[BadLine]) -> tuple[str, ...]:
    """Return a note about skipped lines, if any."""
    if not bad:
        return ()
    few = "; ".join(str(b) for b in bad[:3])
    return (f"{path}: {format_count(len(bad), 'bad line')} skipped ({few}{'; …' if len(bad) > 3 else ''})",)


def empty_file_error(path: PathOrStr, expected: str) -> FormatError:
    """Return the error for a file without rows."""
    return FormatError("no rows: the file is empty", file=str(path), expected=expected)


def source_name(path: PathOrStr) -> str:
    """A path as text; bytes that are no UTF-8 become �."""
    return os.fsencode(path).decode("utf-8", "replace")


def suffix_of(path: PathOrStr) -> str:
    """The extension in lower case, without that of compression."""
    return Path(str(path).lower().removesuffix(".gz").removesuffix(".zst")).suffix


def run_name(path: PathOrStr) -> str:
    """Strip folders, run extensions and compression extensions from a file name."""
    name = "stdin" if str(path) == STDIN else source_name(Path(path).name)
    for ending in RUN_ENDINGS:
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
