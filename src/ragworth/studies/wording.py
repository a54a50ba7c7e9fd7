"""How studies write numbers."""

from __future__ import annotations

from ragworth.errors import format_count
from ragworth.stats.resampling import ConfidenceInterval

MEASURE_NAMES = {"spearman": "Spearman ρ", "kendall": "Kendall τ-b", "kendall-c": "Kendall τ-c", "pearson": "Pearson r"}


def count_queries(number: int) -> str:
    return format_count(number, "query", "queries")


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
