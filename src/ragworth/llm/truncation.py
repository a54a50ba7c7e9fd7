"""Shorten prompts that are too long in their passages, never in their instructions."""

from __future__ import annotations

import re
from collections.abc import Callable

from ragworth.core.errors import ModelError
from ragworth.llm.contract import Prompt, PromptMessage, Span

_WORD = re.compile(r"\s*\S{1,16}")
"""Units in which passages are cut: a word, or a piece of one, because some languages write without blanks."""


def parse_on_long(on_long: str) -> bool:
    """Parse the option ``on_long``: ``error`` rejects prompts that are too long, ``cut`` shortens their passages."""
    if on_long not in ("error", "cut"):
        raise ModelError(f"on_long is {on_long!r}", expected="error or cut")
    return on_long == "cut"


def fit_prompt(prompt: Prompt, limit: int, count: Callable[[Prompt], int]) -> tuple[Prompt, int] | None:
    """Cut passages so that ``count`` of the prompt is at most ``limit``; also returns the characters cut.

    All passages get the same limit of words, the largest that fits, so the longest lose first and short ones stay
    whole. A passage loses its end. None if the prompt doesn't fit even without passages.
    """
    ends = [[match.end() for match in _WORD.finditer(_span_text(prompt, span))] for span in prompt.passages]
    if count(prompt) <= limit:
        return prompt, 0
    low, high = -1, max((len(words) for words in ends), default=0)
    while high - low > 1:
        middle = (low + high) // 2
        if count(_cut_passages(prompt, ends, middle)[0]) <= limit:
            low = middle
        else:
            high = middle
    return None if low < 0 else _cut_passages(prompt, ends, low)


def _span_text(prompt: Prompt, span: Span) -> str:
    return prompt.messages[span.message].content[span.start : span.end]


def _cut_passages(prompt: Prompt, ends: list[list[int]], words: int) -> tuple[Prompt, int]:
    """Limit each passage to ``words`` words."""
    contents = [message.content for message in prompt.messages]
    spans: list[Span] = []
    lost = [0] * len(contents)
    for span, marks in sorted(zip(prompt.passages, ends, strict=True)):
        start, end = span.start - lost[span.message], span.end - lost[span.message]
        length = end - start if len(marks) <= words else (marks[words - 1] if words else 0)
        text = contents[span.message]
        contents[span.message] = text[: start + length] + text[end:]
        lost[span.message] += end - start - length
        spans.append(Span(span.message, start, start + length))
    messages = tuple(PromptMessage(old.role, new) for old, new in zip(prompt.messages, contents, strict=True))
    return Prompt(messages, tuple(spans), prompt.version), sum(lost)
