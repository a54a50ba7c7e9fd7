"""How numbers are written in sentences."""

from __future__ import annotations

import math

from ragworth.core.errors import format_count, format_list
from ragworth.stats.estimate import Estimate
from ragworth.stats.resampling import ConfidenceInterval

MEASURE_NAMES = {"spearman": "Spearman ρ", "kendall": "Kendall τ-b", "kendall-c": "Kendall τ-c", "pearson": "Pearson r"}


FEWEST_QUERIES = 20
"""Queries below which no decision should rest on the result."""


def few_queries_hint(number: int) -> str:
    """A sentence that warns of few queries; empty if there are enough."""
    return f" With {count_queries(number)} this is only a hint." if number < FEWEST_QUERIES else ""


def count_queries(number: int) -> str:
    return format_count(number, "query", "queries")


MAX_DIGITS = 6
"""Digits after the point, at most."""


def digits_within(width: float) -> int:
    """Digits that an interval of this width allows: 2 for most metrics, more if it is narrow, fewer if it is wide."""
    if width >= 0.05:
        return 2 if width < 2 else 1 if width < 20 else 0
    return min(math.ceil(-math.log10(width / 5)), MAX_DIGITS) if width > 0 else 2


def digits_beside_zero(low: float, high: float, digits: int) -> int:
    """Digits with which an interval that excludes 0 doesn't end in a rounded 0: −0.0004, not −0.000."""
    while low * high > 0 and digits < MAX_DIGITS and 0 in (round(low, digits), round(high, digits)):
        digits += 1
    return digits


def signed(value: float, digits: int = 2) -> str:
    """A number with a real minus sign, and none before a zero."""
    made = f"{value:.{digits}f}".replace("-", "−")
    return made if any(each in "123456789" for each in made) else made.removeprefix("−")


def between(span: ConfidenceInterval | None) -> str:
    """An interval in brackets."""
    return f"[{signed(span.low)}, {signed(span.high)}]" if span is not None else "(no interval)"


def percent_interval(span: ConfidenceInterval | None) -> str:
    """An interval of shares in brackets, in per cent."""
    return f"[{signed(100 * span.low, 1)}, {signed(100 * span.high, 1)}]" if span is not None else "(no interval)"


def with_interval(estimate: Estimate) -> str:
    """An estimate with its interval."""
    return f"{signed(estimate.value or 0.0)} {between(estimate.interval)}"


def best_words(
    names: list[str],
    *,
    sure: bool,
    verb: str = "predict",
    how: str = "best",
    none: str = "no metric reliably predicts the outcome",
    surest: bool = False,
) -> str:
    """Who predicts best, or comes closest if it isn't sure that any does.

    ``surest``: others are higher, but not sure.
    """
    who, s = format_list(names, 20), "s" if len(names) == 1 else ""
    among = " of those that reliably do" if surest else ""
    return f"{who} {verb}{s} {how}{among}" if sure else f"{none}; {who} come{s} closest"


def p_words(p: float | None) -> str:
    if p is None:
        return "no p-value"
    return f"p = {p:.3f}" if p >= 0.001 else "p < 0.001"


def share_of_all(share: float, decided: int, asked: int) -> str:
    """Return the range of a share in all answers, as ``9 to 74 %``: none of the undecided ones count, or all."""
    low, high = 100 * share * decided / asked, 100 * (share * decided + asked - decided) / asked
    return f"{low:.0f} to {high:.0f} %"
