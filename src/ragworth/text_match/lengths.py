"""Measure the length of texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import polars as pl

from ragworth.collection import WORD_PATTERN, WORD_UNIT
from ragworth.errors import ModelError
from ragworth.llm.contract import Model, Prompt


class TokenCounter(NamedTuple):
    """Counts the tokens of a text; ``name`` says what is counted, for results."""

    name: str
    count: Callable[[str], int]


def count_words(text: str) -> int:
    """Count words and punctuation marks, like for passages."""
    return int(pl.Series([text], dtype=pl.String).str.count_matches(WORD_PATTERN)[0])


WORD_COUNTER = TokenCounter(WORD_UNIT, count_words)


def counter_for(model: Model) -> TokenCounter:
    """Count a model's tokens if it can, otherwise words and punctuation marks."""
    if model.count(Prompt.text("one")) is None:
        return WORD_COUNTER

    def count(text: str) -> int:
        found = model.count(Prompt.text(text))
        # An endpoint that counted a moment ago may be too busy now; mixing in lengths in words would be worse.
        if found is None:
            raise ModelError(f"{model.card.name} stopped counting tokens", remedy="run the same command again")
        return found

    return TokenCounter(f"tokens of {model.card.name}", count)
