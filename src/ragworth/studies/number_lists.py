"""Lists of numbers as people write them: ``1-5,10,15``."""

from __future__ import annotations

import re

from ragworth.errors import InputError, quote_short

RANGE = re.compile(r"(\d{1,6})(?:\s*-\s*(\d{1,6}))?", re.ASCII)


def numbers(text: str, what: str, high: int = 1000) -> list[int]:
    """The numbers that a text names, each once, in ascending order; ``what`` they are, for errors."""
    found: set[int] = set()
    for part in text.split(","):
        match = RANGE.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if not 1 <= first <= last <= high:
            raise InputError(
                f"{what}: {quote_short(part.strip())} names no numbers",
                expected=f"numbers from 1 to {high:,} and ranges of them, such as 1-5,10,15",
            )
        found.update(range(first, last + 1))
    return sorted(found)
