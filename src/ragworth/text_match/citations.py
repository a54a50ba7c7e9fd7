"""Parse citations: numbers in brackets that refer to the passages behind an answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

_MARK = re.compile(r"\[\s*(?:passages?\s+)?(\d{1,4}(?:\s*[,;–-]\s*\d{1,4})*)\s*\]", re.IGNORECASE)
_PART = re.compile(r"(\d+)(?:\s*[–-]\s*(\d+))?")


class Citations(NamedTuple):
    """The passages that an answer cites, each once, in the order of first mention."""

    passages: tuple[str, ...]
    strays: int
    """Numbers without a passage."""


def parse_citations(text: str, shown: Sequence[str]) -> Citations:
    """Parse ``[2]``, ``[1, 3]`` or ``[2-4]`` in a text; the first passage shown is 1."""
    numbers: list[int] = []
    for mark in _MARK.findall(text):
        for first, last in _PART.findall(mark):
            low, high = int(first), int(last or first)
            # A backward or absurdly long range is read as two numbers.
            numbers += range(low, high + 1) if low <= high <= low + len(shown) else (low, high)
    good = dict.fromkeys(shown[number - 1] for number in numbers if 1 <= number <= len(shown))
    return Citations(tuple(good), sum(not 1 <= number <= len(shown) for number in numbers))


def without_citations(text: str) -> str:
    """Remove citations from a text."""
    return re.sub(rf"\s*{_MARK.pattern}", "", text, flags=re.IGNORECASE).strip()
