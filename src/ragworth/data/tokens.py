"""Count the tokens of texts: words and punctuation marks, or the tokens of a model's tokenizer.

=================== ===========================================================================
written             what is counted
=================== ===========================================================================
``words``           words and punctuation marks (the default)
``hf:PATH``         tokens of a ``tokenizer.json`` (the file, or its folder), without special ones
``tiktoken:NAME``   tokens of an encoding or model of the package tiktoken, if it is installed
=================== ===========================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import polars as pl

from ragworth.core.errors import InputError, MissingExtraError

WORDS = "words"
WORD_PATTERN = r"\w+|[^\w\s]"
"""A token: runs of letters and digits, and single other characters."""

WORD_UNIT = "words and punctuation marks"
"""The unit of these tokens, for results."""

EXPECTED = "words, hf:PATH/tokenizer.json or tiktoken:NAME"


class TokenCounter(NamedTuple):
    """Counts the tokens of a text; ``name`` says what is counted, for results."""

    name: str
    count: Callable[[str], int]


def count_words(text: str) -> int:
    """Count words and punctuation marks, like for passages."""
    return int(pl.Series([text], dtype=pl.String).str.count_matches(WORD_PATTERN)[0])


WORD_COUNTER = TokenCounter(WORD_UNIT, count_words)


def tokenizer_file(text: str) -> Path | None:
    """The file that a written form names."""
    form, _, name = text.partition(":")
    if form != "hf" or not name:
        return None
    return Path(name) / "tokenizer.json" if Path(name).is_dir() else Path(name)


@lru_cache(maxsize=4)
def token_counter(text: str = WORDS) -> TokenCounter:
    """Return the counter of a written form, such as ``hf:models/llama/tokenizer.json``."""
    form, _, name = text.partition(":")
    if text == WORDS:
        return WORD_COUNTER
    if file := tokenizer_file(text):
        return _hugging_face(file)
    if form == "tiktoken" and name:
        return _tiktoken(name)
    raise InputError(f"{text!r} counts no tokens", expected=EXPECTED)


def _hugging_face(file: Path) -> TokenCounter:
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise MissingExtraError("tokenizers", "embedded", "counting a model's tokens") from error
    try:
        tokenizer = Tokenizer.from_str(file.read_text(encoding="utf-8"))
    except Exception as error:  # the library raises nothing more specific
        raise InputError(f"the tokenizer can't be read: {error}", file=str(file), expected=EXPECTED) from error
    tokenizer.no_truncation()
    name = f"{file.parent.name}/{file.name}" if file.parent.name else file.name
    return TokenCounter(f"tokens of {name}", lambda text: len(tokenizer.encode(text, add_special_tokens=False)))


def _tiktoken(name: str) -> TokenCounter:
    try:
        import tiktoken
    except ImportError as error:
        raise InputError(
            f"tiktoken:{name} needs the package tiktoken, which is not installed", remedy="pip install tiktoken"
        ) from error
    try:
        is_encoding = name in tiktoken.list_encoding_names()
        encoding = tiktoken.get_encoding(name) if is_encoding else tiktoken.encoding_for_model(name)
    except Exception as error:  # unknown names, and whatever downloading it raises
        raise InputError(f"tiktoken has no {name!r}: {error}", expected=EXPECTED) from error
    return TokenCounter(f"tokens of tiktoken's {encoding.name}", lambda text: len(encoding.encode_ordinary(text)))
