"""Warnings about judges whose values may be meaningless, and the budget that two of them share."""

from __future__ import annotations

import polars as pl

from ragworth.calls.budget import JobLimits
from ragworth.calls.job import Job
from ragworth.core.errors import format_count

LOW_LABEL_MASS = 0.05
"""If all labels together are less probable than this, the model isn't choosing among them."""


def share_budget(job: Job | None, second: Job) -> None:
    """Give a second job what the first one left of its limits."""
    if job is not None and job.limits != JobLimits():
        second.limits = job.limits.less(job.tally)


def judgment_warnings(frame: pl.DataFrame, what: str, column: str = "value") -> list[str]:
    """Warn if a model's judgments may be meaningless.

    The labels hold next to no probability (column ``mass``, where there is one), or all judgments are the same.
    ``what`` is one of them in words, such as ``grade``.
    """
    notes = []
    mass = frame["mass"].drop_nulls() if "mass" in frame.columns else pl.Series(dtype=pl.Float64)
    middle = mass.median()
    if isinstance(middle, float) and middle < LOW_LABEL_MASS:
        notes.append(
            f"the labels hold little probability (median {middle:.2g} over {format_count(len(mass), what)}): "
            "the model would rather say something else"
        )
    said = frame[column].drop_nulls()
    if len(said) > 1 and said.n_unique() == 1:
        word = f"{said[0]:g}" if isinstance(said[0], float) else said[0]
        notes.append(f"all {format_count(len(said), what)} are the same: {word}")
    return notes
