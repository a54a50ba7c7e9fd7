"""Short names of systems, to stand beside axes, in legends and above columns."""

from __future__ import annotations

import re
from collections.abc import Sequence

LONGEST = 24
"""Signs that there is room for, on a phone too."""
TAIL = 13


def shorten_names(names: Sequence[str]) -> dict[str, str]:
    """Names that fit stay; of long ones goes what all names have in common, then the middle; never two alike.

    The middle, because names of systems often differ in how they end: ``all-mpnet-base-v2__top_k=3__chunk_size=64``
    among others of its kind is ``all-mpnet-…k=3 size=64``.
    """
    words = [set(_words(name)) for name in names]
    common = set.intersection(*words) if len(names) > 1 else set()
    short: dict[str, str] = {}
    for number, name in enumerate(names, 1):
        brief = name if len(name) <= LONGEST else _elide(_distinct_parts(name, common))
        short[name] = f"{brief[: LONGEST - 4]}…{number}" if brief in short.values() else brief
    return short


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text)


def _distinct_parts(name: str, common: set[str]) -> str:
    """The parts of a name, between blanks, underscores, commas and slashes, that say something of their own."""
    parts = [part for part in re.split(r"[\s_,/|]+", name) if part and not set(_words(part)) <= common]
    return " ".join(parts) or name


def _elide(name: str) -> str:
    if len(name) <= LONGEST:
        return name
    tail = name[-TAIL:]
    before, blank, rest = tail.partition(" ")
    # A letter or two of a word that was cut say nothing.
    return f"{name[: LONGEST - TAIL - 1]}…{rest if blank and len(before) < 3 else tail}"
