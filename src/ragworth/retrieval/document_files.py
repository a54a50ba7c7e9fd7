"""Documents from files: folders and files of Markdown, HTML, PDF and text, or tables of documents."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import polars as pl

from ragworth.core.errors import FormatError, InputError, format_count, format_list, quote_short
from ragworth.core.nested_text import max_line
from ragworth.formats.files import UTF16_MARKS, EncodingError, open_file
from ragworth.retrieval import documents as tables
from ragworth.retrieval.documents import SCHEMA, Documents
from ragworth.retrieval.plain_text import READERS, PlainText

MAX_LISTED = 11
"""How many files an error lists after the first."""

TABLES = (".jsonl", ".ndjson", ".parquet", ".csv", ".tsv")


def read_documents(paths: Iterable[str | Path], *, skip_bad_files: bool = False, advice: str = "") -> Documents:
    """Read documents (document, title, text). A file's id is its path inside the folder that was named.

    Hidden files and files of other kinds are left out, with a note that counts them. Files that can't be read are an
    error that lists them, or, with ``skip_bad_files``, a note. ``advice`` is added to the remedy of that error.
    """
    rows: list[tuple[str, str, str]] = []
    frames: list[pl.DataFrame] = []
    notes: list[str] = []
    problems: list[FormatError] = []
    for path in map(Path, paths):
        if is_table(path):
            read = tables.read(path)
            frames.append(read.frame)
            notes += read.notes
        elif path.is_dir() or path.is_file():
            found, left = _files(path)
            notes += left
            for name, file in found:
                try:
                    read_file = _read_file(file)
                    rows.append((name, read_file.title, read_file.text))
                    notes += [f"{file}: {read_file.note}"] if read_file.note else []
                except FormatError as error:
                    problems.append(error)
        else:
            raise FormatError("no such file or folder", file=str(path), remedy="check the path")
    if problems and not skip_bad_files:
        raise _joined(problems, advice)
    notes += [f"left out: {error.file}: {error.found}" for error in problems]
    frames.insert(0, pl.DataFrame(rows, schema=SCHEMA, orient="row"))
    frame = pl.concat(frames)
    notes += _empty_notes(frame)
    frame = frame.filter(pl.col("text").str.strip_chars() != "")
    _check(frame, notes)
    return Documents(frame, (*notes, *_copy_notes(frame)))


def is_table(path: Path) -> bool:
    """Whether a file is a table of documents, by its name."""
    return path.name.lower().removesuffix(".gz").removesuffix(".zst").endswith(TABLES)


def corpus_hash(frame: pl.DataFrame) -> str:
    """SHA-256 of all ids and texts, in order of the ids."""
    digest = hashlib.sha256()
    for row in frame.sort(frame.columns[0]).iter_rows():
        for value in row:
            data = str(value).encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


def _files(path: Path) -> tuple[list[tuple[str, Path]], list[str]]:
    """Files to read with their ids, and notes about the others."""
    if path.is_file():
        if path.suffix.lower() not in READERS:
            expected = f"{', '.join((*READERS, *TABLES))}, or a folder"
            raise FormatError("unknown file extension", file=str(path), expected=expected)
        return [(path.name, path)], []
    found: list[tuple[str, Path]] = []
    others: Counter[str] = Counter()
    for file in _walk(path):
        if file.suffix.lower() in READERS:
            found.append((file.relative_to(path).as_posix(), file))
        else:
            others[file.suffix.lower() or "no extension"] += 1
    kinds = format_list([f"{kind} {number:,}" for kind, number in others.most_common()], 5)
    left = [f"{path}: {format_count(others.total(), 'file')} of other kinds left out ({kinds})"] if others else []
    return found, left


def _walk(folder: Path) -> Iterator[Path]:
    """Files below a folder in order of their names, without hidden ones and without following links to folders."""
    for each in sorted(folder.iterdir()):
        if each.name.startswith("."):
            continue
        if each.is_dir() and not each.is_symlink():
            yield from _walk(each)
        elif each.is_file():
            yield each


def _read_file(path: Path) -> PlainText:
    most = max_line()
    data = _read_bytes(path, most + 1)
    if len(data) > most:
        raise FormatError(f"the file has more than {most:,} bytes", file=str(path), remedy="split it")
    try:
        found = READERS[path.suffix.lower()](data)
    except UnicodeDecodeError as error:
        problem = f"byte {error.start:,} isn't {error.encoding}"
        raise FormatError(problem, file=str(path), expected="UTF-8 or UTF-16", remedy="save it as UTF-8") from error
    except FormatError as error:
        raise error.copy(file=str(path)) from error
    return found if found.title else found._replace(title=path.stem.replace("-", " ").replace("_", " "))


def _read_bytes(path: Path, most: int) -> bytes:
    """The beginning of a file; UTF-16 only with its mark, by which it is decoded."""
    try:
        with open_file(path) as stream:
            return stream.read(most)
    except EncodingError:
        with path.open("rb") as raw:
            data = raw.read(most)
        if data[:2] not in UTF16_MARKS:
            raise
        return data


def _check(frame: pl.DataFrame, notes: list[str]) -> None:
    if not frame.height:
        expected = f"a folder with files of {', '.join(READERS)}"
        raise InputError("there is no document with a text", more=tuple(notes[:MAX_LISTED]), expected=expected)
    twice = frame["document"].filter(~frame["document"].is_first_distinct())
    if len(twice):
        raise InputError(
            f"two documents have the id {quote_short(twice[0])}",
            remedy="name the folder that contains both, so that their paths differ",
        )


def _joined(problems: list[FormatError], advice: str) -> FormatError:
    """One error for all files that can't be read."""
    first, *rest = problems
    words = [f"{error.file}: {error.found}" for error in rest[:MAX_LISTED]]
    words += [f"… and {len(rest) - MAX_LISTED:,} more"] if len(rest) > MAX_LISTED else []
    hint = "; ".join(filter(None, (first.remedy or "fix these files", advice)))
    return first.copy(more=(*first.more, *words), remedy=hint)


def _empty_notes(frame: pl.DataFrame) -> list[str]:
    empty = frame["document"].filter(frame["text"].str.strip_chars() == "")
    few = format_list([quote_short(each, 40) for each in empty], 3)
    return [f"{format_count(len(empty), 'document')} without a text left out ({few})"] if len(empty) else []


def _copy_notes(frame: pl.DataFrame) -> list[str]:
    """Say how many documents repeat the text of another one. They stay, because users retrieve from them."""
    number = frame.height - frame["text"].n_unique()
    return [f"{format_count(number, 'document repeats', 'documents repeat')} the text of another one"] if number else []
