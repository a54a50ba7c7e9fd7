"""Notes on a table of differences between systems."""

from __future__ import annotations

import polars as pl

from ragworth.comparison import Comparison, least_holm_p, out_of_reach
from ragworth.comparison.comparison import DECIDE_MORE
from ragworth.core.errors import format_list
from ragworth.report.render import format_p_value
from ragworth.stats.power import enough_resamples

MANY_METRICS = 5
"""Number of metrics from which a note says that p isn't corrected for them."""


def difference_notes(result: Comparison) -> tuple[str, ...]:
    """Note what the table of differences doesn't show: why p-values are missing, can't be small, or mislead."""
    differences, notes = result.differences, []
    empty = differences.filter(differences["n"] == 0).group_by("metric", "baseline", maintain_order=True).agg("system")
    for metric, baseline, systems in empty.iter_rows():
        notes.append(
            f"no query has a value of {metric} for both {baseline} and {format_list(systems, 5)}, so they can't be "
            "compared; score them on the same queries"
        )
    notes += _untested_notes(differences)
    notes += [note for part in result.families if (note := _hopeless_note(part, result))]
    notes += _opposed_notes(result)
    metrics = differences["metric"].unique(maintain_order=True).to_list()
    if result.family == "metric" and len(metrics) >= MANY_METRICS and bool((differences["p_holm"] < 0.05).any()):
        notes.append(
            f"p isn't corrected for the {len(metrics):,} metrics; of so many, some may be below 0.05 by chance: "
            "--family all corrects for them"
        )
    return tuple(notes)


def _untested_notes(differences: pl.DataFrame) -> list[str]:
    """Say for each metric which systems are not compared, because they have too few values."""
    rows = differences.filter((pl.col("n") > 0) & pl.col("p").is_null())
    return [
        f"by {metric}, {format_list(list(dict.fromkeys(pairs)), 5)} can't be compared: one of them has a value for "
        f"fewer than half of its queries; {DECIDE_MORE}"
        for metric, pairs in rows.group_by("metric", maintain_order=True)
        .agg(pl.format("{} and {}", "baseline", "system").alias("pairs"))
        .iter_rows()
    ]


def _hopeless_note(family: pl.DataFrame, result: Comparison) -> str:
    """Say if Holm's correction leaves no p of several comparisons below the level, however large the differences."""
    alpha = 1 - result.level
    tested = family.filter(family["p"].is_not_null())
    if tested.height < 2 or not out_of_reach(tested, result.test, result.resamples, alpha):
        return ""
    metrics = tested["metric"].unique(maintain_order=True).to_list()
    where = f" by {metrics[0]}" if len(metrics) == 1 else ""
    least = least_holm_p(tested, result.test, result.resamples)
    enough = enough_resamples(tested.height, alpha)
    few = out_of_reach(tested, result.test, max(enough, result.resamples), alpha)
    remedy = "use more queries, or compare fewer systems" if few else f"use --resamples {enough}"
    return (
        f"no difference{where} can be significant: for {tested.height:,} comparisons, Holm's correction makes p "
        f"{format_p_value(min(least, 1.0))} at least; {remedy}"
    )


def _opposed_notes(result: Comparison) -> list[str]:
    """Say if a significant test of signs or ranks contradicts the means."""
    name = {"sign": "the sign test", "wilcoxon": "Wilcoxon's test"}.get(result.test, "")
    rows = result.differences.filter(result.differences["p_holm"] < 1 - result.level).iter_rows(named=True)
    return [
        f"{name} points the other way than the means of {row['system']} and {row['baseline']} by {row['metric']}: "
        "many small differences against few large ones; --test randomisation tests the means"
        for row in rows
        if (row["metric"], row["baseline"], row["system"]) in result.opposed
    ]
