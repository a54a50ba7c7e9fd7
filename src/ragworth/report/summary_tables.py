"""Frames arranged for reading: fewer columns, intervals in brackets, n of N."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from ragworth.answer_outcomes import SHARES
from ragworth.comparison import Comparison, missing_interval
from ragworth.report.render import format_p_value
from ragworth.report.wording import share_of_all


def _interval(row: Mapping[str, Any]) -> str:
    if "n_baseline" in row and row["p"] is None and row["n"]:
        return "not compared: values for fewer than half"
    if row["low"] is None or row["high"] is None:
        return missing_interval(row["n"], row.get("conversations"))
    return f"[{row['low']:.4f}, {row['high']:.4f}]"


def _sizes(row: Mapping[str, Any]) -> dict[str, object]:
    """How many queries have a value, and of how many conversations where there are any."""
    clusters = {"conversations": row["conversations"]} if "conversations" in row else {}
    return {"n of N": f"{row['n']} of {row['total']}", **clusters}


def _of_all(row: Mapping[str, Any]) -> str:
    """Return the range of a share in all answers; empty if all are decided, and for other means."""
    share = row["metric"].rpartition("-")[2] in SHARES and row["mean"] is not None
    return share_of_all(row["mean"], row["n"], row["total"]) if share and row["n"] < row["total"] else ""


def summary_table(summary: pl.DataFrame, level: float) -> pl.DataFrame:
    """Means with intervals, and groups where there are any: one row for each metric and system.

    Beside a share of the decided answers stands what it can be of all.
    """
    percent = f"{100 * level:g} % interval"
    partly = any(map(_of_all, summary.iter_rows(named=True)))
    rows = [
        {
            "metric": row["metric"],
            "system": row["system"],
            **({"group": row["group"]} if "group" in row else {}),
            "mean": row["mean"],
            percent: _interval(row),
            **_sizes(row),
            **({"of all": _of_all(row)} if partly else {}),
            "missing": row["missing"],
        }
        for row in summary.iter_rows(named=True)
    ]
    frame = pl.DataFrame(rows, schema_overrides={"mean": pl.Float64})
    return frame.drop("missing") if not any(row["missing"] for row in rows) else frame


def difference_table(comparison: Comparison) -> pl.DataFrame:
    """Differences with intervals, tests, wins and what could have been seen."""
    percent = f"{100 * comparison.level:g} % interval"
    many = comparison.differences.height > comparison.differences["metric"].n_unique()
    rows = [
        {
            "metric": row["metric"],
            "system": f"{row['system']} − {row['baseline']}",
            "difference": "–" if row["difference"] is None else f"{row['difference']:+.4f}",
            percent: _interval(row),
            "p": format_p_value(row["p"]),
            "Holm p": format_p_value(row["p_holm"]),
            "won/tied/lost": "–" if row["wins"] is None else f"{row['wins']}/{row['ties']}/{row['losses']}",
            **_sizes(row),
            "detectable": row["detectable"],
        }
        for row in comparison.differences.iter_rows(named=True)
    ]
    frame = pl.DataFrame(rows, schema_overrides={"detectable": pl.Float64})
    return frame if many else frame.drop("Holm p")


def change_table(comparison: Comparison) -> pl.DataFrame:
    """The queries that changed most."""
    return comparison.changes.select(
        "metric",
        pl.format("{} − {}", "system", "baseline").alias("system"),
        "query",
        "before",
        "after",
        "difference",
    )


def correlation_table(correlations: pl.DataFrame) -> pl.DataFrame:
    """Agreement of metrics, with the usual signs for names."""
    return correlations.rename({"pearson": "Pearson r", "spearman": "Spearman ρ", "kendall": "Kendall τ-b"})


def estimate_table(estimates: pl.DataFrame, level: float) -> pl.DataFrame:
    """Estimates of judging on a budget, beside what either judge says alone."""
    percent = f"{100 * level:g} % interval"
    rows = [
        {
            "metric": row["metric"],
            "system": row["system"],
            "estimate": row["estimate"],
            percent: _interval(row),
            "sample alone": row["sample"],
            f"its {percent}": _interval({**row, "low": row["sample_low"], "high": row["sample_high"]}),
            "cheap alone, biased": row["cheap"],
            "λ": row["weight"],
            "r": row["correlation"],
            **_sizes(row),
            "effective": row["effective"],
            "judged": row["judged"],
            "saved": row["saved"],
            "missing": row["missing"],
        }
        for row in estimates.iter_rows(named=True)
    ]
    numbers = dict.fromkeys(["estimate", "sample alone", "cheap alone, biased", "λ", "r"], pl.Float64)
    whole = dict.fromkeys(["effective", "judged", "saved"], pl.Int64)
    frame = pl.DataFrame(rows, schema_overrides={**numbers, **whole})
    return frame.drop("missing") if not any(row["missing"] for row in rows) else frame


def estimated_difference_table(differences: pl.DataFrame, level: float) -> pl.DataFrame:
    """Differences of judging on a budget."""
    percent = f"{100 * level:g} % interval"
    rows = [
        {
            "metric": row["metric"],
            "system": f"{row['system']} − {row['baseline']}",
            "difference": "–" if row["difference"] is None else f"{row['difference']:+.4f}",
            percent: _interval(row),
            "p": format_p_value(row["p"]),
            "Holm p": format_p_value(row["p_holm"]),
            "sample alone": row["sample"],
            f"its {percent}": _interval({**row, "low": row["sample_low"], "high": row["sample_high"]}),
            "cheap alone, biased": row["cheap"],
            "λ": row["weight"],
            **_sizes(row),
            "effective": row["effective"],
        }
        for row in differences.iter_rows(named=True)
    ]
    numbers = dict.fromkeys(["sample alone", "cheap alone, biased", "λ"], pl.Float64)
    frame = pl.DataFrame(rows, schema_overrides={**numbers, "effective": pl.Int64})
    return frame if differences.height > differences["metric"].n_unique() else frame.drop("Holm p", strict=False)
