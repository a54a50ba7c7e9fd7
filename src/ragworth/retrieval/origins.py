"""Ids of passages that say where they come from.

``DOC:120-240`` is the characters 120 to 240 of the text of document DOC, counted from 0 like in Python, with the end
excluded. A suffix ``+title`` means that the title precedes it on its own line, and ``@NAME`` names its chunking if a
collection contains several. Such an id leads back to the exact text, whatever settings produced it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import polars as pl

CHUNKING_NAME = re.compile(r"[\w.-]+")
CHUNK_ID = re.compile(
    r"(?P<document>.+):(?P<start>[0-9]+)-(?P<end>[0-9]+)(?P<titled>\+title)?(?:@(?P<name>[\w.-]+))?", re.S
)


class Origin(NamedTuple):
    """Where a passage comes from."""

    document: str
    start: int
    end: int
    titled: bool = False
    name: str = ""

    def __str__(self) -> str:
        title, name = "+title" * self.titled, f"@{self.name}" if self.name else ""
        return f"{self.document}:{self.start}-{self.end}{title}{name}"

    def of(self, text: str, title: str = "") -> str:
        """Extract the passage from the text (and title) of its document."""
        return f"{title}\n" * self.titled + text[self.start : self.end]


def origin(passage: str) -> Origin | None:
    """Parse a passage's id; None if it doesn't state an origin."""
    match = CHUNK_ID.fullmatch(passage)
    if match is None:
        return None
    start, end = int(match["start"]), int(match["end"])
    return Origin(match["document"], start, end, match["titled"] is not None, match["name"] or "")


def in_chunking(passages: pl.Series, name: str) -> pl.Series:
    """Return which passages belong to the chunking of this name, by their ids, like `origin` for many at once."""
    return passages.str.contains(rf"(?s).:[0-9]+-[0-9]+(?:\+title)?@{re.escape(name)}$")
