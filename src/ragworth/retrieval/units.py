"""Find where a text may be split: at the beginnings of its words, tokens or sentences.

A unit extends to the beginning of the next one, so only blanks are ever lost between two. None begins inside a letter
with its marks. Blanks are those of Python (``str.isspace``).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from ragworth.core.errors import InputError, MissingExtraError
from ragworth.retrieval.tokenize import SIGN, UNSPACED
from ragworth.text_match.sentences import sentence_starts, skip_blanks

BLANK = r"[\s\x1c-\x1f]"
"""Blanks in patterns for Polars, whose own class lacks four that Python has."""

WORD = rf"{SIGN}|[^{BLANK}{UNSPACED}]+"
"""A run of characters without a blank; in scripts written without blanks, a single character."""

TOKEN = rf"\w+|[^\w{BLANK}]"
"""What `ragworth.data.collection.WORD_PATTERN` counts, without those blanks."""


class TextUnit(NamedTuple):
    """Where a unit begins, and its size: several model tokens may belong together."""

    start: int
    size: int = 1


Cutter = Callable[[Sequence[str]], Iterable[list[TextUnit]]]
"""Finds the units of each text."""


def build_cutter(by: str, tokenizer: Any = None) -> Cutter:
    """Build the function that splits texts by ``words``, ``tokens`` (of a `tokenizers` object) or ``sentences``."""
    if by == "sentences":
        return lambda texts: (
            _merge_marks(text, [TextUnit(start) for start in sentence_starts(text)]) for text in texts
        )
    if by == "tokens" and tokenizer is not None:
        return lambda texts: (_model_tokens(text, tokenizer) for text in texts)
    return lambda texts: _pattern_units(texts, TOKEN if by == "tokens" else WORD)


def _pattern_units(texts: Sequence[str], pattern: str) -> Iterator[list[TextUnit]]:
    """Runs of characters that match a pattern; only blanks are between them."""
    every = pl.Series(texts, dtype=pl.String).str.extract_all(pattern).to_list()
    for text, runs in zip(texts, every, strict=True):
        at, found = 0, []
        for run in runs:
            at = text.index(run, at)
            found.append(TextUnit(at))
            at += len(run)
        yield _merge_marks(text, found)


def _model_tokens(text: str, tokenizer: Any) -> list[TextUnit]:
    """A model's tokens. Leading blanks belong to the token before, and tokens of one character are merged."""
    found: list[TextUnit] = []
    for start, end in tokenizer.encode(text, add_special_tokens=False).offsets:
        begin = start + len(text[start:end]) - len(text[start:end].lstrip())
        if found and (begin >= end or begin <= found[-1].start):
            found[-1] = TextUnit(found[-1].start, found[-1].size + 1)
        elif begin < end:
            found.append(TextUnit(begin))
    # A tokenizer may drop characters; those before its first token are part of it.
    first = skip_blanks(text, 0)
    if first < len(text):
        found[:1] = [TextUnit(first, found[0].size if found else 1)]
    return _merge_marks(text, found)


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
        raise InputError(
            f"it cannot be read: {str(error)[:200]}", file=str(path), expected="a tokenizer.json"
        ) from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
