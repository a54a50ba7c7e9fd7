"""Do the metrics predict what came of the contexts? Rank correlations with intervals over queries or conversations."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ragworth.comparison import higher_is_better
from ragworth.results import Results
from ragworth.score_rows import ScoreRows, rows_of_aspect
from ragworth.stats.paired import correct_alike, is_reliable
from ragworth.stats.pooled import pooled_correlations, pooled_gaps

RESAMPLES = 400
ALPHA = 0.05
MOST_QUERIES = 20_000
"""Queries that predictions are from; where there are more, so many of them, evenly spaced."""
SCHEMA = {
    "metric": pl.String,
    "outcome": pl.String,
    "rho": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "apart": pl.Boolean,
    "reliable": pl.Boolean,
    "n": pl.Int64,
    "queries": pl.Int64,
}


def outcome_predictions(results: Results, metrics: list[str], seed: int) -> pl.DataFrame:
    """How well each metric predicts each outcome: Spearman's ρ over all (system, query), best first: the
    highest, or the lowest if the metric or the outcome, and not both, is better if lower.

    Intervals and tests are those of :mod:`ragworth.stats.pooled`, as in studies. Returns metric, outcome, rho, low,
    high, apart, reliable, n (contexts) and queries. ``apart`` says whether the best metric predicts significantly
    better: null for the best itself. ``reliable``: the metric predicts the outcome as it should, by a test that is
    corrected for all metrics. ``n`` and ``queries`` are those of a sample if there are many queries.
    """
    rows: list[dict[str, object]] = []
    for aspect in results.outcomes.distinct("aspect") if results.outcomes is not None else []:
        sample = _sampled(rows_of_aspect(results, aspect, metrics))
        data = sample.values, sample.outcome, sample.units
        how: dict[str, Any] = {"resamples": RESAMPLES, "level": 1 - ALPHA, "seed": seed, "clusters": sample.clusters}
        every = correct_alike(pooled_correlations(*data, **how))
        order = sorted(
            (at for at, one in enumerate(every) if one.value is not None), key=lambda at: -(every[at].value or 0.0)
        )
        pairs = [(order[0], at) for at in order[1:]]
        gaps = dict(zip(order[1:], correct_alike(pooled_gaps(*data, pairs=pairs, **how)), strict=True))
        for at in order:
            one, gap = every[at], gaps.get(at)
            up = higher_is_better(metrics[at]) == higher_is_better(aspect)
            ends = (one.low, one.high) if up else (one.high, one.low)
            rho, low, high = (each if up or each is None else 0 - each for each in (one.value, *ends))
            rows.append(
                {
                    "metric": metrics[at],
                    "outcome": aspect,
                    "rho": rho,
                    "low": low,
                    "high": high,
                    "apart": None if gap is None else gap.is_significant(ALPHA),
                    "reliable": is_reliable(one, ALPHA),
                    "n": one.n,
                    "queries": one.counts["queries"],
                }
            )
    return pl.DataFrame(rows, schema=SCHEMA)


def _sampled(rows: ScoreRows) -> ScoreRows:
    """The rows of at most `MOST_QUERIES` queries."""
    units = rows.units
    queries = int(units.max(initial=-1)) + 1
    if queries <= MOST_QUERIES:
        return rows
    return rows.only(np.isin(units, np.linspace(0, queries - 1, MOST_QUERIES).round()))
