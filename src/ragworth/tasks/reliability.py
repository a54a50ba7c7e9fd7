"""Checks of how far judges can be trusted, and their table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ragworth.calls.budget import JobLimits
from ragworth.calls.job import Job
from ragworth.errors import format_count
from ragworth.stats.agreement import cohen_kappa
from ragworth.stats.correlation import spearman
from ragworth.stats.resampling import ConfidenceInterval

LOW_LABEL_MASS = 0.05
"""If all labels together are less probable than this, the model isn't choosing among them."""


class ReliabilityCheck(NamedTuple):
    """One check of judgments, from ``n`` of ``total`` of them, or the reason why it can't be computed."""

    check: str
    measure: str
    value: float | None
    interval: ConfidenceInterval | None
    n: int
    total: int
    reason: str = ""


def share_budget(job: Job | None, second: Job) -> None:
    """Give a second job what the first one left of its limits."""
    if job is not None and job.limits != JobLimits():
        second.limits = job.limits.less(job.tally)


def mass_checks(frame: pl.DataFrame) -> list[ReliabilityCheck]:
    """Check the total probability of the labels, if the model reports it."""
    if "mass" not in frame.columns or not frame["mass"].count():
        return []
    mass = frame["mass"].drop_nulls().to_numpy()
    title = "labels' probability"
    return [
        ReliabilityCheck(title, "median", float(np.median(mass)), None, len(mass), frame.height),
        ReliabilityCheck(
            title,
            f"share below {LOW_LABEL_MASS:g}",
            float((mass < LOW_LABEL_MASS).mean()),
            None,
            len(mass),
            frame.height,
        ),
    ]


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


def agreement_checks(
    title: str, both: pl.DataFrame, *, labelled: bool, of: str = "", ordinal: bool = False
) -> list[ReliabilityCheck]:
    """Agreement of ``value`` and ``other`` on the same items, as labels or as quantities. Resampled by ``query``.

    ``ordinal`` labels have an order and distances (ratings): near ones disagree less. Others are equal or not.
    """
    total = both.height
    known = both.drop_nulls(["value", "other"])
    a, b = known["value"].to_numpy(), known["other"].to_numpy()
    if labelled:
        many = len({*a.tolist(), *b.tolist()}) > 2  # of two labels, weights change nothing
        return [kappa(title, a, b, known["query"].to_numpy(), total, weighted=ordinal and many, of=of)]
    rho = spearman(a, b)
    reason = "" if rho == rho else "one side is constant, or nothing was judged by both"
    checks = [ReliabilityCheck(title, f"Spearman ρ{of}", rho if rho == rho else None, None, len(a), total, reason)]
    if len(a):
        checks.append(ReliabilityCheck(title, f"mean difference{of}", float(np.abs(a - b).mean()), None, len(a), total))
    return checks


def kappa(title: str, a: Any, b: Any, queries: Any, total: int, *, weighted: bool, of: str = "") -> ReliabilityCheck:
    """Cohen's κ of two judges' labels, weighted quadratically by their distance, or not."""
    found = cohen_kappa(a, b, weights="quadratic" if weighted else None, groups=queries, resamples=1000)
    name = f"Cohen κ{', quadratic' if weighted else ''}{of}"
    return ReliabilityCheck(title, name, found.value, found.interval, found.n, total, found.reason)


def table(checks: Sequence[ReliabilityCheck]) -> pl.DataFrame:
    """Format checks for display."""
    rows = [
        {
            "check": one.check,
            "measure": one.measure,
            "value": one.value,
            "95 % interval": "–" if one.interval is None else f"[{one.interval.low:.3f}, {one.interval.high:.3f}]",
            "n of N": f"{one.n:,} of {one.total:,}",
            "": one.reason,
        }
        for one in checks
    ]
    made = pl.DataFrame(rows, schema_overrides={"value": pl.Float64})
    return made if any(one.reason for one in checks) else made.drop("")
