"""What each part of UDCG is worth: learned and fixed weights, with and without harm, beside nDCG and precision.

All are compared by their correlation with the outcome on the same queries. Learned weights are tested on queries that
they were not learned from. Paper: Trappolini, Cuconasu et al., Redefining Retrieval Evaluation in the Era of LLMs,
Table 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ragworth.fitting.ranking_svm import Loss, ranked_pairs
from ragworth.fitting.rows import FittingTables, build_fitting_rows
from ragworth.fitting.udcg_weights import (
    FOLDS,
    FitData,
    check_settings,
    feature_metrics,
    gap_figure,
    held_out_scores,
    mean_figure,
    udcg_metric,
    with_pairs,
)
from ragworth.metrics import METRICS
from ragworth.stats.within_query import within_query_correlations, within_query_gaps

THETA, THETA_RELEVANCE, THETA_BINARY = "UDCG_θ", "UDCG_θ, relevance only", "UDCG_θ, binary"


class AblationResult(NamedTuple):
    """Correlations with the outcome within queries, on one collection.

    Attributes
    ----------
    correlations: a figure for each metric: ``value``, ``low``, ``high``, ``queries``, …
    differences: a figure for each pair of metrics compared, paired by query, with ``p``: UDCG and nDCG first, then what
        each part adds.
    queries: whose contexts differ in outcome.
    """

    name: str
    correlations: dict[str, dict[str, Any]]
    differences: dict[tuple[str, str], dict[str, Any]]
    queries: int
    left_out: dict[str, int]


def ablate_tables(
    tables: FittingTables,
    k: int = 5,
    *,
    outcome: str = "grade",
    rel: float = 1.0,
    loss: Loss = "squared-hinge",
    grid: Sequence[float] | None = None,
    folds: int = FOLDS,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> AblationResult:
    """Compare all variants on the contexts of one collection; the options are those of ``fit_tables``."""
    grid = check_settings(k, folds, loss, grid)
    fixed = [
        udcg_metric(k, rel),
        METRICS.get("UDCG").bind(k, rel=rel, gamma=0.0),
        METRICS.get("nDCG").bind(k, ideal="retrieved"),
        METRICS.get("P").bind(k, rel=rel),
    ]
    features = [*feature_metrics(k, "full", rel), *feature_metrics(k, "binary", rel)]
    rows = build_fitting_rows(tables, [*features, *fixed], outcome)
    used = with_pairs(rows, folds)
    pairs = ranked_pairs(used.outcome, used.query)
    parts = [slice(0, 2 * k), slice(0, k), slice(2 * k, 3 * k)]
    learned = [FitData(used.values[:, part], used.outcome, used.query, pairs, loss) for part in parts]
    held = [held_out_scores(each, grid, folds, seed) for each in learned]
    columns = np.column_stack([*held, used.values[:, len(features) :]])
    again: dict[str, Any] = {"level": level, "resamples": resamples, "seed": seed}
    udcg, udcg_relevance, ndcg, precision = map(str, fixed)
    names = [THETA, THETA_RELEVANCE, THETA_BINARY, udcg, udcg_relevance, ndcg, precision]
    compared = [
        (udcg, ndcg),
        (THETA, ndcg),
        (THETA, udcg),
        (THETA, THETA_RELEVANCE),
        (THETA, THETA_BINARY),
        (udcg, udcg_relevance),
    ]
    means = within_query_correlations(columns, used.outcome, used.query, **again)
    places = [(names.index(a), names.index(b)) for a, b in compared]
    gaps = within_query_gaps(columns, used.outcome, used.query, pairs=places, **again)
    return AblationResult(
        tables.name,
        dict(zip(names, map(mean_figure, means), strict=True)),
        dict(zip(compared, map(gap_figure, gaps), strict=True)),
        used.queries,
        dict(rows.left_out),
    )
