"""Looking into a folder: which files may be data, and how each begins.

A file that is longer than what is looked at is represented by its beginning, copied to a folder that is thrown away:
the readers of :mod:`ragworth.formats` decide what a file is, and nobody waits until a corpus is read.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ragworth.core.errors import FormatError
from ragworth.core.nested_text import max_line
from ragworth.data import parts
from ragworth.formats.csv import rows_end
from ragworth.formats.files import BOM, SPREADSHEETS, PathOrStr, last_line_end, open_file
from ragworth.formats.heads import suffix_of
from ragworth.formats.tables import read_parquet

MAX_DEPTH = 2
"""How many folders down files are looked for."""

HEAD_BYTES = 1 << 20
"""How much of a file is looked at."""

HEAD_ROWS = 2000
"""How many rows of a Parquet file are looked at."""

MAX_FILES = 1000
"""How many files are looked at."""

SKIPPED_FOLDERS = ("results", "node_modules", "__pycache__")
"""How the names of folders end that hold no data of the user's; results of single files are in NAME-results."""
TABLE_SUFFIXES = (".parquet", ".csv", ".tsv")
JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")
IGNORED_SUFFIXES = (
    *(".md", ".rst", ".py", ".ipynb", ".sh", ".toml", ".yaml", ".yml", ".cfg", ".ini", ".lock", ".log", ".xml", ".tex"),
    *(".html", ".htm", ".css", ".js", ".pdf", ".png", ".jpg", ".jpeg", ".svg", ".zip", ".tar", ".tgz", ".bin"),
    *(".sqlite", ".sqlite-wal", ".sqlite-shm", ".db", ".gguf", ".safetensors", ".npy", ".npz", ".pkl", ".pt"),
)
"""Endings of files that are no data of ours."""


class CandidateFile(NamedTuple):
    """A file that may be data."""

    path: Path
    name: str
    """From the folder that was looked into, with slashes."""

    @property
    def plain(self) -> str:
        """The name in lower case, without the ending of compression."""
        return self.name.lower().removesuffix(".gz").removesuffix(".zst")

    @property
    def telling(self) -> bool:
        """Whether the name says that it is data."""
        return self.plain.endswith((*TABLE_SUFFIXES, *JSON_SUFFIXES, *SPREADSHEETS, ".run", ".trec", ".qrels"))


class FileHead(NamedTuple):
    """How a file begins."""

    file: CandidateFile
    sample: Path
    """Where readers read it: the file itself, or a copy of its beginning."""
    whole: bool
    data: bytes
    """The lines of the beginning; nothing of Parquet."""


class FolderListing(NamedTuple):
    """What a folder has."""

    files: list[CandidateFile]
    odd: list[str]
    """Files whose names cannot be written, or that are too many."""


def list_folder(folder: Path) -> FolderListing:
    """Files, those nearest first, then by name."""
    found = FolderListing([], [])
    for entry in sorted(_entries(folder, folder, 0), key=lambda each: (each.name.count("/"), each.name)):
        if not entry.name.isprintable():
            found.odd.append(f"{entry.name!r}: the name has signs that cannot be shown")
        elif not entry.plain.endswith(IGNORED_SUFFIXES):
            found.files.append(entry)
    if len(found.files) > MAX_FILES:
        found.odd.append(
            f"{len(found.files) - MAX_FILES:,} more files were not looked at: there are {len(found.files):,}"
        )
        del found.files[MAX_FILES:]
    return found


def _entries(folder: Path, root: Path, depth: int) -> Iterator[CandidateFile]:
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return  # not ours to read
    for path in entries:
        if path.name.startswith("."):
            continue
        file = CandidateFile(path, path.relative_to(root).as_posix())
        if not path.is_dir():
            if path.is_file():
                yield file
        elif (
            not path.name.endswith(SKIPPED_FOLDERS)
            and (depth < MAX_DEPTH or path.name == "qrels")  # the last: of a BEIR folder
            and not _leads_back(path, root)
        ):
            yield from _entries(path, root, depth + 1)


def _leads_back(path: Path, root: Path) -> bool:
    """Whether a link leads to a folder that is listed anyway, or to one around it."""
    if not path.is_symlink():
        return False
    target, here = path.resolve(), root.resolve()
    return target.is_relative_to(here) or here.is_relative_to(target)


def read_head(file: CandidateFile, scratch: Path) -> FileHead | None:
    """How a file begins; None where it is no text. ``scratch`` is a folder for copies."""
    if file.plain.endswith(".parquet"):
        return _read_rows(file, scratch)
    data, whole = read_beginning(file.path, HEAD_BYTES)
    if b"\0" in data:
        return None
    if whole:
        return FileHead(file, file.path, True, data)
    return FileHead(file, _copy_head(file, data, scratch), False, data)


def _read_rows(file: CandidateFile, scratch: Path) -> FileHead:
    if file.path.suffix.lower() != ".parquet":  # compressed once more: there is no way to its beginning
        frame = read_parquet(file.path)
    else:
        frame = parts.read_parquet(file.path, rows=HEAD_ROWS + 1)
    if frame.height <= HEAD_ROWS:
        return FileHead(file, file.path, True, b"")
    stream = io.BytesIO()
    frame.head(HEAD_ROWS).write_parquet(stream)
    return FileHead(file, _copy_head(file, stream.getvalue(), scratch), False, b"")


def _copy_head(file: CandidateFile, data: bytes, scratch: Path) -> Path:
    place = scratch / str(len(os.listdir(scratch)))  # noqa: PTH208 (a number, so that equal names do not meet)
    place.mkdir()
    made = place / Path(file.name.removesuffix(".gz").removesuffix(".zst")).name
    made.write_bytes(data)
    return made


class Beginning(NamedTuple):
    """The first records of a file, and whether these are all."""

    data: bytes
    whole: bool


def read_beginning(path: PathOrStr, size: int) -> Beginning:
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
