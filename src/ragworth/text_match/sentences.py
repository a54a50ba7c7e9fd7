"""The sentences of a text: where they begin, how long they are, and which passages they cite in brackets."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

_NAME = r"(?:(?:passage|document|doc|source|reference|ref)s?[\s:#_.]*)?"
CITATION = rf"\[\s*{_NAME}(\d{{1,4}}(?:\s*[,;–-]\s*{_NAME}\d{{1,4}})*)\s*\]"
"""An expression for numbers of passages in square brackets, ignoring case; its group has the numbers."""
_MARK = re.compile(CITATION, re.IGNORECASE)
_ROUND = r"(?<!\w)\(\d{1,2}(?:\s*[,;–-]\s*\d{1,2})*\)"
"""A number in round brackets after a blank; ``f(1)`` and ``(1998)`` are no citations."""
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
    return re.sub(rf"(?:(?<!\s)\s+)?(?:{CITATION}|{_ROUND})", "", text, flags=re.IGNORECASE).strip()


SENTENCE_END = re.compile(
    r"""(?P<point>(?<![.…])[.…]++|(?<![!?؟۔।॥։።፧។။])[!?؟۔।॥։።፧។။]++)["'”’»«)\]}]*+(?=\s)|[。！？｡]++["'”’」』）】]*+"""
    r"""|\n[^\S\n]*+\n"""
)
"""Possible ends of a sentence, with the closing quotation marks and brackets; or a blank line, which always is one."""

ABBREVIATIONS = frozenset(
    {
        "mr", "mrs", "ms", "dr", "prof", "st", "sr", "jr", "rev", "gen", "col", "sgt", "capt", "lt", "gov", "pres",
        "rep", "sen", "hon", "messrs", "mme", "mlle", "vs", "cf", "al", "fig", "figs", "eq", "no", "nos", "vol", "pp",
        "p", "ch", "sec", "ed", "eds", "approx", "inc", "ltd", "co", "corp", "dept", "est", "jan", "feb", "mar", "apr",
        "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec", "nr", "bzw", "ca", "abb", "bd", "usw", "evtl", "vgl",
        "hrsg", "sog", "dott", "sig", "av", "art",
    }
)  # fmt: skip
"""Abbreviations: a period after them doesn't end a sentence."""


MAX_LOOKBACK = 40
"""Characters before a period to examine."""

_LEADING_MARKS = re.compile(r"(?:\[\s*\d[\d\s,;–-]*\]\s*)+")
"""Citations at the beginning of a sentence: ``It rained. [2] Then …``."""


def sentences(text: str) -> list[str]:
    """The sentences of a text, without the blanks around them; a citation after a period belongs to its sentence."""
    found: list[str] = []
    for start, end in pairwise([*sentence_starts(text), len(text)]):
        sentence = text[start:end]
        marks = _LEADING_MARKS.match(sentence)
        if marks and found:
            found[-1] += f" {marks[0].strip()}"
            sentence = sentence[marks.end() :]
        found += [sentence.strip()] if sentence.strip() else []
    return found


def sentence_starts(text: str) -> list[int]:
    """Where sentences begin.

    A sentence ends at a period, question or exclamation mark before a blank, unless a lower-case letter follows, or the
    period belongs to an initial, an abbreviation or the number of an item; at the punctuation of Chinese and Japanese;
    and at a blank line. Scripts without such punctuation (Thai, Lao) have sentences that end only at blank lines.
    """
    begin = skip_blanks(text, 0)
    starts = [begin]
    for match in SENTENCE_END.finditer(text):
        begin = skip_blanks(text, max(begin, match.end()))  # each of many blank lines is skipped once
        if begin < len(text) and begin > starts[-1] and _ends_sentence(text, match, begin, starts[-1]):
            starts.append(begin)
    return [start for start in starts if start < len(text)]


def skip_blanks(text: str, at: int) -> int:
    """The next position that isn't blank."""
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _ends_sentence(text: str, match: re.Match[str], begin: int, start: int) -> bool:
    """Return whether a sentence that began at ``start`` ends here and another one begins."""
    point = match["point"]
    if point is None or "\n\n" in re.sub(r"[^\S\n]", "", text[match.end() : begin]):
        return True
    if text[begin].islower():
        return False
    if point != ".":
        return True
    before = text[max(start, match.start() - MAX_LOOKBACK) : match.start()]
    word = re.split(r"[\s(\[\"'“‘«]", before)[-1]
    if word.isdigit() and word == before:
        return False  # the number of an item
    return not (len(word) == 1 and word.isalpha()) and "." not in word and word.lower() not in ABBREVIATIONS
