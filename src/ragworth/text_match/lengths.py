"""Measure the length of texts."""

from __future__ import annotations

from ragworth.core.errors import ModelError
from ragworth.data.tokens import WORD_COUNTER, TokenCounter
from ragworth.llm.contract import Model, Prompt


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
