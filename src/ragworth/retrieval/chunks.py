"""Split documents into passages whose ids say where they come from (`ragworth.retrieval.origins`).

A passage begins where one of the document's units does: a word, a token or a sentence. A unit extends to the beginning
of the next one, so only blanks are ever lost between two. None begins inside a letter with its marks. Blanks are those
of Python (``str.isspace``).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple

import polars as pl

from ragworth.core.errors import InputError, MissingExtraError, format_count, format_list, quote_short
from ragworth.data import Judgments
from ragworth.data.coercion import Data
from ragworth.retrieval.documents import Documents, coerce_documents, is_table, read_document_table, read_documents
from ragworth.retrieval.origins import CHUNKING_NAME, Origin
from ragworth.retrieval.words import SIGN, UNSPACED
from ragworth.text_match.sentences import sentence_starts, skip_blanks

ChunkUnit = Literal["words", "tokens", "sentences"]
DEFAULT_SIZES = {"words": 200, "tokens": 256, "sentences": 5}
"""Default sizes of a passage."""

BLANK_LINE = re.compile(r"\n[^\S\n]*\n\s*")
BLANK = r"[\s\x1c-\x1f]"
"""Blanks in patterns for Polars, whose own class lacks four that Python has."""
UNIT_PATTERNS = {"words": rf"{SIGN}|[^{BLANK}{UNSPACED}]+", "tokens": rf"\w+|[^\w{BLANK}]"}
"""Runs of characters without a blank, or single characters of scripts without blanks; words and punctuation marks."""

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


class TextUnit(NamedTuple):
    """Where a unit begins, and its size: several model tokens may belong together."""

    start: int
    size: int = 1


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
        number = format_count(len(unknown), "labelled document")
        notes = (*table.notes, *([f"{number} without a passage ({few})"] if len(unknown) else []))
        return Judgments.trusted(labelled.select(list(Judgments.schema)), notes)


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

    A blank document gives no passage, and is counted in a note.
    """
    size = size if size is not None else DEFAULT_SIZES.get(by, 1)
    _check_options(by, size, overlap, titles, tokenizer, name)
    source = _read(documents)
    units_of = build_cutter(by, load_tokenizer(tokenizer) if isinstance(tokenizer, str) else tokenizer)
    frames = [pl.DataFrame(schema=SCHEMA)]
    empty: list[str] = []
    for part in source.frame.iter_slices(BATCH_ROWS):
        rows: list[tuple[str, str, str, int, int, str]] = []
        for (document, title, text), units in zip(part.iter_rows(), units_of(part["text"].to_list()), strict=True):
            front = bool(title) and titles == "front"
            spans = list(_spans(text, units, size, overlap, paragraphs))
            for start, end in spans:
                place = Origin(document, start, end, front, name)
                rows.append((str(place), place.of(text, title), document, start, end, title))
            empty += [document] if not spans else []
        frames.append(pl.DataFrame(rows, schema=SCHEMA, orient="row"))
    notes = list(source.notes)
    if empty:
        few = format_list([quote_short(each, 24) for each in empty], 3)
        notes.append(f"{format_count(len(empty), 'document')} without a text left out ({few})")
    return Chunks(pl.concat(frames), tuple(notes))


def _read(documents: Data | str | PathLike[str]) -> Documents:
    if not isinstance(documents, str | PathLike):
        return Documents(coerce_documents(documents))
    path = Path(documents)
    return read_document_table(path) if is_table(path) else read_documents([path])


def _check_options(by: str, size: int, overlap: int, titles: str, tokenizer: Any, name: str) -> None:
    """Reject all invalid or conflicting settings at once."""
    wrong = []
    if by not in DEFAULT_SIZES:
        wrong.append(f"by is {by!r}; expected {', '.join(DEFAULT_SIZES)}")
    if titles not in ("apart", "front"):
        wrong.append(f"titles is {titles!r}; expected apart or front")
    whole = all(isinstance(each, int) and not isinstance(each, bool) for each in (size, overlap))
    if not whole or size < 1 or overlap < 0:
        wrong.append(f"size is {size!r} and overlap {overlap!r}; expected whole numbers, size from 1, overlap from 0")
    elif overlap >= size:
        wrong.append(f"an overlap of {overlap} in passages of {size} never ends; expected {size - 1} or less")
    if tokenizer is not None and by != "tokens":
        wrong.append(f"a tokenizer was given, but texts are split by {by}; use it with tokens")
    if name and not CHUNKING_NAME.fullmatch(name):
        wrong.append(f"the name is {quote_short(name, 24)}; expected letters, digits, _, . and -")
    if wrong:
        raise InputError(f"chunk: {wrong[0]}", more=tuple(wrong[1:]))


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


def build_cutter(by: str, tokenizer: Any = None) -> Callable[[Sequence[str]], Iterable[list[TextUnit]]]:
    """Build the function that splits texts by ``words``, ``tokens`` (of a `tokenizers` object) or ``sentences``."""
    if by == "sentences":
        return lambda texts: (_merge_marks(text, list(map(TextUnit, sentence_starts(text)))) for text in texts)
    if by == "tokens" and tokenizer is not None:
        return lambda texts: (_merge_marks(text, _model_tokens(text, tokenizer)) for text in texts)
    return lambda texts: _pattern_units(texts, UNIT_PATTERNS[by])


def _pattern_units(texts: Sequence[str], pattern: str) -> Iterator[list[TextUnit]]:
    """Yield the runs of characters that match a pattern; only blanks are between them."""
    every = pl.Series(texts, dtype=pl.String).str.extract_all(pattern).to_list()
    for text, runs in zip(texts, every, strict=True):
        at, units = 0, []
        for run in runs:
            at = text.index(run, at)
            units.append(TextUnit(at))
            at += len(run)
        yield _merge_marks(text, units)


def _model_tokens(text: str, tokenizer: Any) -> list[TextUnit]:
    """Return a model's tokens. Leading blanks belong to the token before, and tokens of one character are merged."""
    units: list[TextUnit] = []
    for start, end in tokenizer.encode(text, add_special_tokens=False).offsets:
        begin = start + len(text[start:end]) - len(text[start:end].lstrip())
        if units and (begin >= end or begin <= units[-1].start):
            units[-1] = TextUnit(units[-1].start, units[-1].size + 1)
        elif begin < end:
            units.append(TextUnit(begin))
    # A tokenizer may drop characters; those before its first token are part of it.
    first = skip_blanks(text, 0)
    if first < len(text):
        units[:1] = [TextUnit(first, units[0].size if units else 1)]
    return units


def _merge_marks(text: str, units: list[TextUnit]) -> list[TextUnit]:
    """Merge units that begin with a combining mark into the one before."""
    if text.isascii():
        return units
    merged: list[TextUnit] = []
    for unit in units:
        if merged and unicodedata.category(text[unit.start])[0] == "M":
            merged[-1] = TextUnit(merged[-1].start, merged[-1].size + unit.size)
        else:
            merged.append(unit)
    return merged


def load_tokenizer(name: str) -> Any:
    """Load a model's tokenizer: ``embedded``, ``gguf:FILE``, a ``tokenizer.json`` or its folder."""
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise MissingExtraError("tokenizers", "embedded", "cutting by a model's tokens") from error
    if name == "embedded" or name.startswith("gguf:"):
        from ragworth.llm.embedded import weights_file
        from ragworth.llm.local.gguf_file import read_tokenizer

        return read_tokenizer(weights_file() if name == "embedded" else Path(name.removeprefix("gguf:")))
    path = Path(name) / "tokenizer.json" if Path(name).is_dir() else Path(name)
    if not path.is_file():
        expected = "embedded, gguf:FILE, a tokenizer.json, or the folder of a model that has one"
        raise InputError("no such tokenizer", file=str(path), expected=expected)
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises nothing more specific
        raise InputError(f"it cannot be read: {str(error)[:200]}", file=str(path)) from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
