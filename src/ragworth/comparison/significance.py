"""Which differences of a comparison are significant, and whether any could be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from ragworth.stats.power import smallest_p


def is_different(row: Mapping[str, Any], alpha: float = 0.05) -> bool:
    """Whether two systems differ significantly: by the test, and by the interval where there is one.

    The interval allows for values that no query has shown yet and the test does not, so where few queries differ the
    interval may hold 0 although p is small.
    """
    holds_zero = row["low"] is not None and row["low"] <= 0 <= row["high"]
    return row["p_holm"] is not None and row["p_holm"] < alpha and not holds_zero


def families_of(differences: pl.DataFrame, family: str) -> list[pl.DataFrame]:
    """The comparisons that are corrected together."""
    return [differences] if family == "all" else differences.partition_by("metric", maintain_order=True)


def out_of_reach(rows: pl.DataFrame, test: str, resamples: int, alpha: float, corrected_for: int = 1) -> bool:
    """Whether no p of these comparisons can be below ``alpha`` once Holm's correction has gone over all of them."""
    tested = rows.filter(pl.col("p").is_not_null())
    return tested.height > 0 and least_holm_p(tested, test, resamples, corrected_for) >= alpha


def least_holm_p(tested: pl.DataFrame, test: str, resamples: int, corrected_for: int = 1) -> float:
    """The smallest p that one of the comparisons can have after Holm's correction for all, or for even more."""
    units = tested["conversations"].fill_null(tested["n"]) if "conversations" in tested.columns else tested["n"]
    return smallest_p(test, int(units.max()), resamples) * max(tested.height, corrected_for)  # type: ignore[arg-type]
