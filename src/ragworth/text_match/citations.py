"""Parse citations: numbers in brackets that refer to the passages behind an answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

_NAME = r"(?:(?:passage|document|doc|source|reference|ref)s?[\s:#_.]*)?"
_MARK = re.compile(rf"\[\s*{_NAME}(\d{{1,4}}(?:\s*[,;–-]\s*{_NAME}\d{{1,4}})*)\s*\]", re.IGNORECASE)
_ROUND = r"(?<!\w)\(\d{1,2}(?:\s*[,;–-]\s*\d{1,2})*\)"
"""A number in round brackets after a blank; ``f(1)`` and ``(1998)`` are no citations."""
_SOURCE = (
    r"[(【]\s*(?:\d{1,4}[†:]|(?:sources?|see|passages?|documents?|docs?|refs?|references?|pages?|pp?)\b)"
    r"[^()【】\n]{0,80}[)】]"
)
"""A source in brackets, ``(source: doc 3)`` or ``【3†source】``."""
_ITEM = re.compile(r"^[ \t]*(\d{1,2})[.)][ \t]+", re.MULTILINE)
_FOOTNOTE = re.compile(r"(?<=[^\W\d_]{3})(?:\d{1,2}|[¹²³⁴-⁹]{1,2})(?!\w)")
"""The number of a footnote behind a word: "It was Paris1."."""
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
    """Remove citations from a text: ``[2]``, ``[1, 3]``, ``[doc3]``, and also ``(2)``."""
    return re.sub(rf"(?:(?<!\s)\s+)?(?:{_MARK.pattern}|{_ROUND})", "", text, flags=re.IGNORECASE).strip()


def without_marks(text: str) -> str:
    """Remove numbers that are no part of what a text says: citations, sources in brackets, numbers of a list."""
    said = re.sub(rf"(?:(?<!\s)\s+)?(?:{_MARK.pattern}|\[\^\d{{1,4}}\]|{_SOURCE})", "", text, flags=re.IGNORECASE)
    items = [int(number) for number in _ITEM.findall(said)]
    if len(items) > 1 and items == list(range(1, len(items) + 1)):
        said = _ITEM.sub("", said)
    return said.strip()


def without_footnotes(text: str) -> str:
    """Remove the numbers behind words: "Paris1" is "Paris", and so is a name such as "Windows10" without its number."""
    return _FOOTNOTE.sub("", text)
