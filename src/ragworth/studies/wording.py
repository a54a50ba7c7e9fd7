"""How studies write numbers."""

from __future__ import annotations

import re

from ragworth.errors import InputError, quote_short
from ragworth.stats.resampling import ConfidenceInterval

MEASURE_NAMES = {"spearman": "Spearman ρ", "kendall": "Kendall τ-b", "kendall-c": "Kendall τ-c", "pearson": "Pearson r"}

RANGE = re.compile(r"(\d{1,6})(?:\s*-\s*(\d{1,6}))?", re.ASCII)


def signed(value: float, digits: int = 2) -> str:
    """A number with a real minus sign, and none before a zero."""
    made = f"{value:.{digits}f}".replace("-", "−")
    return made if any(each in "123456789" for each in made) else made.removeprefix("−")


def between(span: ConfidenceInterval | None) -> str:
    """An interval in brackets."""
    return f"[{signed(span.low)}, {signed(span.high)}]" if span is not None else "(no interval)"


def p_words(p: float | None) -> str:
    if p is None:
        return "no p-value"
    return f"p = {p:.3f}" if p >= 0.001 else "p < 0.001"


def parse_numbers(text: str, what: str, high: int = 1000) -> list[int]:
    """The numbers of a list such as ``1-5,10,15``, each once, in ascending order; ``what`` they are, for errors."""
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


def parse_names(text: str | None) -> list[str]:
    """The names of a list with commas between them."""
    return [each.strip() for each in (text or "").split(",") if each.strip()]
