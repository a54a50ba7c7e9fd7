"""Read topics, each some documents with a human-written summary: Multi-News, DUC, or one folder per topic."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from ragworth.core.errors import BadLine, FormatError, format_count, format_list, quote_short
from ragworth.formats.files import bad_lines_error, open_file, run_name
from ragworth.formats.values import WrongLineError, as_id, as_list, as_text
from ragworth.judging.ask import read_rows
from ragworth.retrieval.documents import read_documents

SEPARATOR = "|||||"
"""What Multi-News puts between the documents of a topic."""

LINE_END = "NEWLINE_CHAR"
"""How Multi-News writes a line end inside a document."""

ROW = '{"document": "one ||||| two", "summary": "…"} or {"id": …, "documents": ["…"], "summaries": ["…"]} on each line'
FOLDER = "a folder with docs/ and models/ (DUC), or one folder per topic with documents and summary.txt"
SUMMARY_FILES = ("summary.txt", "summary.md")
_SGML_DOCUMENT = re.compile(r"<DOC>(.*?)</DOC>", re.S | re.I)
_SGML_TEXT = re.compile(r"<TEXT>(.*?)</TEXT>", re.S | re.I)
_SGML_TAG = re.compile(r"</?[A-Za-z][^<>]*>")


class Topic(NamedTuple):
    """Documents and what people summed up of them."""

    id: str
    documents: tuple[str, ...]
    summary: str


class Topics(NamedTuple):
    """Topics, and notes from reading."""

    topics: list[Topic]
    notes: tuple[str, ...] = ()


def read_topics(path: str | Path) -> Topics:
    """Read topics from a file or folder.

    - Multi-News: rows (JSONL, Parquet, CSV, TSV) with ``document``, whose documents are joined by ``|||||``, and
      ``summary``.
    - DUC: rows with ``documents`` and ``summaries`` (or ``summary``); or a folder with ``docs/CLUSTER/*`` and
      ``models/CLUSTER.*``. Several summaries of a cluster are joined.
    - Folders: one per topic, with documents of any kind that `read_documents` reads, and ``summary.txt``.

    Documents without a text and files of other kinds are left out, with a note. A topic without a document or summary
    is an error. A blank in the id of a topic becomes ``%20``, since ids with blanks can't be written to TREC files.
    """
    place = Path(path)
    notes: list[str] = []
    if place.is_dir():
        duc = (place / "docs").is_dir() and (place / "models").is_dir()
        found, expected = list((_duc_folder if duc else _folders)(place, notes)), FOLDER
    else:
        found, expected = list(_rows(place)), ROW
    return _checked(found, str(path), expected, notes)


def _checked(topics: list[Topic], path: str, expected: str, notes: list[str]) -> Topics:
    if not topics:
        raise FormatError("there are no topics", file=path, expected=expected)
    blank = sum(not text.strip() for topic in topics for text in topic.documents)
    kept = [
        topic._replace(
            id="%20".join(topic.id.split()), documents=tuple(text for text in topic.documents if text.strip())
        )
        for topic in topics
    ]
    empty = [topic.id for topic in kept if not topic.documents]
    mute = [topic.id for topic in kept if not topic.summary.strip()]
    for names, what in ((empty, "document"), (mute, "summary")):
        if names:
            few = format_list([quote_short(name, 24) for name in names], 5)
            raise FormatError(
                f"{format_count(len(names), 'topic')} without a {what}: {few}", file=path, expected=expected
            )
    ids = [topic.id for topic in kept]
    if len(set(ids)) < len(ids):
        twice = next(name for number, name in enumerate(ids) if name in ids[:number])
        raise FormatError(f"the topic {quote_short(twice)} occurs twice", file=path, expected="each topic once")
    notes += [f"{format_count(blank, 'document')} without a text left out"] if blank else []
    return Topics(kept, tuple(notes))


def _rows(path: Path) -> Iterator[Topic]:
    name = run_name(path)
    for number, row in enumerate(read_rows(str(path))):
        try:
            given = next((row[key] for key in ("id", "_id", "topic") if row.get(key) not in (None, "")), None)
            identity = as_id(given, "id") if given is not None else f"{name}-{number}"
            yield Topic(identity, tuple(_documents(row)), _summary(row))
        except WrongLineError as error:
            raise bad_lines_error(path, [BadLine(number + 1, str(error))], ROW) from error


def _documents(row: dict[str, Any]) -> list[str]:
    if row.get("documents") is not None:
        return [_object_text(each, "document") for each in as_list(row["documents"], "the value of 'documents'")]
    return _split(as_text(row.get("document"), "document"))


def _summary(row: dict[str, Any]) -> str:
    given = row.get("summaries")
    if given is None:
        return _plain_summary(as_text(row.get("summary"), "summary"))
    texts = [given] if isinstance(given, str) else as_list(given, "the value of 'summaries'")
    return "\n\n".join(_plain_summary(_object_text(each, "summary")) for each in texts)


def _object_text(value: object, what: str) -> str:
    """A text, or an object that has one."""
    return as_text(value.get("text") if isinstance(value, dict) else value, what)


def _split(text: str) -> list[str]:
    return [part.replace(LINE_END, "\n").strip() for part in text.split(SEPARATOR) if part.strip()]


def _plain_summary(text: str) -> str:
    """A summary without the dash that Multi-News puts before it."""
    return text.strip().removeprefix("– ").strip()


def _duc_folder(folder: Path, notes: list[str]) -> Iterator[Topic]:
    clusters = {each.name: each for each in _visible(folder / "docs") if each.is_dir()}
    summaries: dict[str, list[str]] = {name: [] for name in clusters}
    strays = []
    for model in _visible_files(folder / "models"):
        # The cluster d30001t has the summaries D30001.M.100.T.A, D30001.M.100.T.B and so on.
        stem = model.name.split(".")[0].casefold()
        names = [name for name in clusters if name.casefold() == stem]
        names = names or [name for name in clusters if re.fullmatch(re.escape(stem) + "[a-z]", name.casefold())]
        for name in names:
            summaries[name].append(_without_tags(_text(model)))
        strays += [] if names else [model.name]
    notes += _stray_notes(folder / "models", strays, "without a folder of that name in docs/")
    for name, cluster in clusters.items():
        texts = [text for file in _visible_files(cluster) for text in _sgml_texts(_text(file))]
        yield Topic(name, tuple(texts), "\n\n".join(summaries[name]))


def _visible(folder: Path) -> list[Path]:
    return sorted(each for each in folder.iterdir() if not each.name.startswith("."))


def _visible_files(folder: Path) -> list[Path]:
    return [each for each in _visible(folder) if each.is_file()]


def _stray_notes(folder: Path, names: list[str], why: str) -> list[str]:
    few = format_list([quote_short(name, 40) for name in names], 3)
    return [f"{folder}: {format_count(len(names), 'file')} left out, {why} ({few})"] if names else []


def _sgml_texts(text: str) -> list[str]:
    """The texts of a file of SGML documents; a file without the tags is one document."""
    documents = _SGML_DOCUMENT.findall(text) or [text]
    return [_without_tags("\n".join(_SGML_TEXT.findall(each)) or each) for each in documents]


def _without_tags(text: str) -> str:
    return _SGML_TAG.sub(" ", text).strip()


def _text(path: Path) -> str:
    with open_file(path) as stream:
        data: bytes = stream.read()
    if data.startswith(b"%PDF-") or b"\0" in data:
        remedy = "save it as text, or make one folder per topic with documents and summary.txt"
        raise FormatError("this isn't a text file", file=str(path), expected="plain text or SGML", remedy=remedy)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")  # the files of DUC are older than UTF-8


def _folders(folder: Path, notes: list[str]) -> Iterator[Topic]:
    strays = [each.name for each in _visible_files(folder)]
    notes += _stray_notes(folder, strays, "outside the folders of topics")
    for topic in (each for each in _visible(folder) if each.is_dir()):
        summaries = [name for name in SUMMARY_FILES if (topic / name).is_file()]
        if len(summaries) != 1:
            problem = f"both {' and '.join(summaries)}" if summaries else f"no {' or '.join(SUMMARY_FILES)}"
            raise FormatError(problem, file=str(topic), expected=FOLDER, remedy="give each topic one summary")
        read = read_documents([topic])
        notes += [note if note.startswith(str(topic)) else f"{topic}: {note}" for note in read.notes]
        found = read.frame.filter(pl.col("document") != summaries[0])
        yield Topic(topic.name, tuple(found["text"].to_list()), _text(topic / summaries[0]))
