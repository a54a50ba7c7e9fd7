"""Split documents into passages whose ids say where they come from (`ragworth.retrieval.origins`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import polars as pl

from ragworth.core.errors import InputError, format_count, format_list, quote_short
from ragworth.data import Judgments
from ragworth.data.coercion import Data
from ragworth.retrieval import documents as given
from ragworth.retrieval.documents import is_table, read_documents
from ragworth.retrieval.origins import CHUNKING_NAME, Origin, find_tables, header_at
from ragworth.retrieval.units import TextUnit, build_cutter, load_tokenizer

ChunkUnit = Literal["words", "tokens", "sentences"]
DEFAULT_SIZES = {"words": 200, "tokens": 256, "sentences": 5}
"""Default sizes of a passage."""

TITLES = ("apart", "front")
BLANK_LINE = re.compile(r"\n[^\S\n]*\n\s*")
BATCH_ROWS = 1 << 12
"""Documents split at a time, which bounds memory."""

SCHEMA = {
    "passage": pl.String,
    "text": pl.String,
    "document": pl.String,
    "start": pl.Int64,
    "end": pl.Int64,
    "document_title": pl.String,
}


@dataclass(frozen=True, eq=False)
class Chunks:
    """Passages (passage, text, document, start, end, document_title), and notes."""

    frame: pl.DataFrame
    notes: tuple[str, ...] = ()

    def labels(self, of_documents: Judgments | Data) -> Judgments:
        """Give each passage the relevance label of its document."""
        table = of_documents if isinstance(of_documents, Judgments) else Judgments(of_documents)
        judged = table.of("relevance").rename({"passage": "document"})
        labelled = judged.join(self.frame.select("document", "passage"), on="document", maintain_order="left_right")
        unknown = judged.join(self.frame, on="document", how="anti")["document"].unique(maintain_order=True)
        few = format_list([quote_short(each, 24) for each in unknown], 3)
        notes = (
            (f"{format_count(len(unknown), 'labelled document')} without a passage ({few})",) if len(unknown) else ()
        )
        return Judgments.trusted(labelled.select(list(Judgments.schema)), (*table.notes, *notes))


def chunk(
    documents: Data | str | PathLike[str],
    by: ChunkUnit = "words",
    size: int | None = None,
    overlap: int = 0,
    *,
    titles: Literal["apart", "front"] = "apart",
    paragraphs: bool = False,
    tokenizer: Any = None,
    name: str = "",
) -> Chunks:
    """Split documents into passages of ``size`` words, tokens or sentences, repeating the last ``overlap`` of them.

    Parameters
    ----------
    documents: a table with an id, a text and optionally a title; a file (JSONL, Parquet, CSV, TSV); or a file or folder
        of Markdown, HTML, PDF or text, whose paths are the ids.
    size: units per passage; by default 200 words, 256 tokens or 5 sentences.
    titles: ``front`` puts a document's title before each of its passages; ``apart`` puts it in a column.
    paragraphs: don't cross blank lines within a passage.
    tokenizer: whose tokens to count: ``embedded``, ``gguf:FILE``, a ``tokenizer.json``, or an object of the
        tokenizers library. By default, words and punctuation marks.
    name: name of this chunking if a collection contains several; it becomes part of the ids.

    A passage that begins inside a Markdown table has the table's header in front, which doesn't count. A blank document
    gives no passage, and is counted in a note.
    """
    how = _check_options(by, size, overlap, titles, tokenizer, name)
    read = _read(documents)
    tool = load_tokenizer(tokenizer) if isinstance(tokenizer, str) else tokenizer
    cut = build_cutter(by, tool)
    made = [pl.DataFrame(schema=SCHEMA)]
    empty: list[str] = []
    for part in read.frame.iter_slices(BATCH_ROWS):
        texts = part["text"].to_list()
        rows: list[tuple[str, str, str, int, int, str]] = []
        for (document, title, text), units in zip(part.iter_rows(), cut(texts), strict=True):
            front = bool(title) and titles == "front"
            before, in_text = len(rows), find_tables(text)
            for start, end in _spans(text, units, how, overlap, paragraphs):
                header = header_at(in_text, start)
                place = Origin(document, start, end, front, name, bool(header))
                rows.append((str(place), place.under(header, text, title), document, start, end, title))
            empty += [document] * (len(rows) == before)
        made.append(pl.DataFrame(rows, schema=SCHEMA, orient="row"))
    notes = list(read.notes)
    if empty:
        few = format_list([quote_short(each, 24) for each in empty], 3)
        notes.append(f"{format_count(len(empty), 'document')} without a text left out ({few})")
    return Chunks(pl.concat(made), tuple(notes))


def _read(documents: Data | str | PathLike[str]) -> given.Documents:
    if not isinstance(documents, str | PathLike):
        return given.Documents(given.coerce_documents(documents))
    path = Path(documents)
    return given.read(path) if is_table(path) else read_documents([path])


def _check_options(by: str, size: int | None, overlap: int, titles: str, tokenizer: Any, name: str) -> int:
    """Return the size, after rejecting all invalid or conflicting settings at once."""
    how = size if size is not None else DEFAULT_SIZES.get(by, 1)
    wrong = []
    if by not in DEFAULT_SIZES:
        wrong.append(f"by is {by!r}; expected {', '.join(DEFAULT_SIZES)}")
    if titles not in TITLES:
        wrong.append(f"titles is {titles!r}; expected {' or '.join(TITLES)}")
    whole = all(isinstance(each, int) and not isinstance(each, bool) for each in (how, overlap))
    if not whole or how < 1 or overlap < 0:
        wrong.append(f"size is {how!r} and overlap {overlap!r}; expected whole numbers, size from 1 and overlap from 0")
    elif overlap >= how:
        wrong.append(f"an overlap of {overlap} in passages of {how} never ends; expected {how - 1} or less")
    if tokenizer is not None and by != "tokens":
        wrong.append(f"a tokenizer was given, but texts are split by {by}; use it with tokens")
    if name and not CHUNKING_NAME.fullmatch(name):
        wrong.append(f"the name is {quote_short(name, 24)}; expected letters, digits, _, . and -")
    if wrong:
        raise InputError(f"chunk: {wrong[0]}", more=tuple(wrong[1:]))
    return how


def _spans(text: str, units: list[TextUnit], size: int, overlap: int, paragraphs: bool) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each passage."""
    breaks = [match.end() for match in BLANK_LINE.finditer(text)] if paragraphs else []
    low = 0
    begun: list[TextUnit] = []
    for stop in (*breaks, len(text)):
        high = low
        while high < len(units) and units[high].start < stop:
            high += 1
        yield from _pack_units(text, [*begun, *units[low:high]], stop, size, overlap)
        # A mark without a letter belongs to the unit before it, but after a blank line it must not be lost with that.
        begun = [] if stop == len(text) or (high < len(units) and units[high].start == stop) else [TextUnit(stop)]
        low = high


def _pack_units(text: str, units: list[TextUnit], stop: int, size: int, overlap: int) -> Iterator[tuple[int, int]]:
    """Pack as many units as fit, at least one, then continue before the end by the overlap."""
    first = 0
    while first < len(units):
        last, total = first + 1, units[first].size
        while last < len(units) and total + units[last].size <= size:
            total += units[last].size
            last += 1
        start, end = units[first].start, units[last].start if last < len(units) else stop
        if text[start:end].strip():
            yield start, start + len(text[start:end].rstrip())
        if last == len(units):
            return
        # The overlap leaves room for the next unit, or a passage would have nothing new.
        room = min(overlap, size - units[last].size)
        first, shared = last, 0
        while shared + units[first - 1].size <= room and units[first - 1].start > start:
            first -= 1
            shared += units[first].size
