"""Ids of passages that say where they come from.

``DOC:120-240`` is the characters 120 to 240 of the text of document DOC, counted from 0 like in Python, with the end
excluded. A suffix ``+title`` means that the title precedes it on its own line, ``+header`` the same of the header of
the table in which it begins, and ``@NAME`` names its chunking if a collection contains several. Such an id leads back
to the exact text, whatever settings produced it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

CHUNKING_NAME = re.compile(r"[\w.-]+")
CHUNK_ID = re.compile(
    r"(?P<document>.+):(?P<start>[0-9]+)-(?P<end>[0-9]+)(?P<titled>\+title)?(?P<headed>\+header)?(?:@(?P<name>[\w.-]+))?",
    re.S,
)
BAR = re.compile(r"(?<!\\)\|")
RULE = re.compile(r"\|?(?:\s*:?-{3,}:?\s*\|)+(?:\s*:?-{3,}:?\s*)?")
"""The line between the header and the rows of a Markdown table."""


class Origin(NamedTuple):
    """Where a passage comes from."""

    document: str
    start: int
    end: int
    titled: bool = False
    name: str = ""
    headed: bool = False

    def __str__(self) -> str:
        title, header, name = "+title" * self.titled, "+header" * self.headed, f"@{self.name}" if self.name else ""
        return f"{self.document}:{self.start}-{self.end}{title}{header}{name}"

    def of(self, text: str, title: str = "") -> str:
        """Extract the passage from the text (and title) of its document."""
        return self.under(header_at(find_tables(text), self.start) if self.headed else "", text, title)

    def under(self, header: str, text: str, title: str) -> str:
        """The same with a header that is known."""
        front = [title] * self.titled + [header] * self.headed
        return "\n".join([*front, text[self.start : self.end]])


class TextTable(NamedTuple):
    """Where the rows of a table begin and end, with the line of dashes before them, and its header."""

    start: int
    end: int
    header: str


def find_tables(text: str) -> list[TextTable]:
    """Tables in Markdown: a header, a line of dashes with equally many bars, and rows until a line without a bar.

    The row before a later line of dashes is the header of another table.
    """
    found: list[TextTable] = []
    if "|" not in text:
        return found
    at = 0
    above = ""
    for line in text.split("\n"):
        row = line.strip()
        if RULE.fullmatch(row) and len(BAR.findall(above)) == len(BAR.findall(row)):
            if found and found[-1].end == at - 1:
                found[-1] = found[-1]._replace(end=at - 2 - len(above))
            found.append(TextTable(at, at + len(line), above.strip()))
        elif found and found[-1].end == at - 1 and "|" in row:
            found[-1] = found[-1]._replace(end=at + len(line))
        at, above = at + len(line) + 1, line
    return found


def header_at(tables: Sequence[TextTable], at: int) -> str:
    """The header of the table in which a position is; empty if it is in none, or in its first row."""
    place = bisect_right(tables, at, key=lambda table: table.start) - 1
    return tables[place].header if place >= 0 and at < tables[place].end else ""


def origin(passage: str) -> Origin | None:
    """Parse a passage's id; None if it doesn't state an origin."""
    found = CHUNK_ID.fullmatch(passage)
    if found is None:
        return None
    titled, headed, name = found["titled"] is not None, found["headed"] is not None, found["name"] or ""
    return Origin(found["document"], int(found["start"]), int(found["end"]), titled, name, headed)


def in_chunking(passages: pl.Series, name: str) -> pl.Series:
    """Which passages belong to the chunking of this name, by their ids, like `origin` for many at once."""
    return passages.str.contains(rf"(?s).:[0-9]+-[0-9]+(?:\+title)?(?:\+header)?@{re.escape(name)}$")
