"""Do the metrics predict what came of the contexts? Rank correlations with intervals over queries."""

from __future__ import annotations

import numpy as np
import polars as pl

from ragworth.comparison import correlate
from ragworth.stats.correlation import spearman
from ragworth.stats.resampled import expanded
from ragworth.tables import Outcomes, Scores

RESAMPLES = 400
LEVEL = 0.95
SCHEMA = {
    "metric": pl.String,
    "outcome": pl.String,
    "rho": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "n": pl.Int64,
    "queries": pl.Int64,
}


def together(scores: Scores, outcomes: Outcomes | None, metrics: list[str]) -> Scores:
    """Scores, and outcomes as if they were scores, in one table; an outcome is called after its aspect."""
    frame = scores.frame.filter(pl.col("metric").is_in(metrics))
    if outcomes is None:
        return Scores.trusted(frame)
    others = outcomes.frame.filter(pl.col("system").is_in(scores.frame["system"].unique().implode())).select(
        "system", "query", pl.format("outcome: {}", "aspect").alias("metric"), "value", "status"
    )
    return Scores.trusted(pl.concat([frame, others]))


def correlations(scores: Scores, outcomes: Outcomes | None, metrics: list[str]) -> pl.DataFrame:
    """Spearman's ρ of every two metrics, and of metrics with outcomes, over all (system, query).

    Returns first, second, value and n.
    """
    found = correlate(together(scores, outcomes, metrics), over="queries")
    return found.select("first", "second", pl.col("spearman").alias("value"), "n")


def predictions(scores: Scores, outcomes: Outcomes, metrics: list[str], seed: int) -> pl.DataFrame:
    """How well each metric predicts each outcome: Spearman's ρ over all (system, query).

    The interval is an expanded percentile bootstrap that draws whole queries, because contexts of one query are not
    independent. Returns metric, outcome, rho, low, high, n (contexts) and queries.
    """
    rows: list[dict[str, object]] = []
    good = scores.frame.filter(pl.col("value").is_not_null())
    for (aspect,), part in outcomes.frame.filter(pl.col("value").is_not_null()).group_by("aspect", maintain_order=True):
        right = part.select("system", "query", pl.col("value").alias("outcome"))
        for metric in metrics:
            both = good.filter(pl.col("metric") == metric).join(right, on=["system", "query"])
            rho, span, queries = _interval(both, seed)
            if rho is not None:
                ends = {"low": span[0], "high": span[1]} if span is not None else {}
                rows.append(
                    {"metric": metric, "outcome": aspect, "rho": rho, "n": both.height, "queries": queries, **ends}
                )
    found = pl.DataFrame(rows, schema=SCHEMA)
    return pl.concat(
        [
            found.clear(),
            *(part.sort("rho", descending=True) for part in found.partition_by("outcome", maintain_order=True)),
        ]
    )


def _interval(both: pl.DataFrame, seed: int) -> tuple[float | None, tuple[float, float] | None, int]:
    ordered = both.sort("query")
    x, y = ordered["value"].to_numpy(), ordered["outcome"].to_numpy()
    rho = spearman(x, y) if len(x) else float("nan")
    if np.isnan(rho):
        return None, None, 0
    starts = np.flatnonzero(ordered["query"].is_first_distinct().to_numpy())
    spans = np.split(np.arange(len(x)), starts[1:])
    rng = np.random.default_rng(seed)
    draws = []
    for _ in range(RESAMPLES):
        rows = np.concatenate([spans[i] for i in rng.integers(0, len(spans), len(spans))])
        draws.append(spearman(x[rows], y[rows]))
    return rho, expanded(np.array(draws), len(spans), LEVEL), len(spans)
