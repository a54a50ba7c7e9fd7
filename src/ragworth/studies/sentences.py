"""How studies put numbers into words and rows."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from ragworth.stats.resampling import ConfidenceInterval

NAMES = {"spearman": "Spearman ρ", "kendall": "Kendall τ-b", "kendall-c": "Kendall τ-c", "pearson": "Pearson r"}


def measure_words(measure: str) -> str:
    """A correlation as people call it."""
    return NAMES[measure]


def signed(value: float) -> str:
    """A number with two digits, and a minus that is one."""
    return f"{value:.2f}".replace("-", "−")


def between(span: ConfidenceInterval | None) -> str:
    """An interval in brackets; nothing where there is none."""
    return f"[{signed(span.low)}, {signed(span.high)}]" if span is not None else "(no interval)"


def left_out_rows(rows: Iterable[tuple[str, str, int]]) -> pl.DataFrame:
    """What was left out: case, reason, queries."""
    return pl.DataFrame(list(rows), schema={"case": pl.String, "reason": pl.String, "queries": pl.Int64}, orient="row")
