"""What each part of UDCG is worth: learned and fixed weights, with and without harm, beside nDCG and precision.

All are compared by their correlation with the outcome on the same queries. Learned weights are tested on queries that
they were not learned from. Paper: Trappolini, Cuconasu et al., Redefining Retrieval Evaluation in the Era of LLMs,
Table 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ragworth.fitting.estimates import SharedQueryCorrelations, average_figure, gap_figure, mean_figure
from ragworth.fitting.ranking_svm import Loss, ranked_pairs
from ragworth.fitting.rows import FittingTables, Floats, build_fitting_rows
from ragworth.fitting.udcg_weights import FOLDS, FitData, check_settings, feature_metrics, udcg_metric, with_pairs
from ragworth.metrics import METRICS

THETA, THETA_RELEVANCE, THETA_BINARY = "UDCG_θ", "UDCG_θ, relevance only", "UDCG_θ, binary"


class AblationResult(NamedTuple):
    """Correlations with the outcome within queries, on one collection.

    Attributes
    ----------
    correlations: a figure for each metric: ``value``, ``low``, ``high``, ``queries``, …
    differences: a figure for each pair of metrics compared, paired by query, with ``p``: UDCG and nDCG first, then what
        each part adds.
    by_query: the correlation of each query (queries × metrics), NaN if undefined.
    queries, test_queries: whose contexts differ in outcome, and those of them that were tested on.
    """

    name: str
    correlations: dict[str, dict[str, Any]]
    differences: dict[tuple[str, str], dict[str, Any]]
    by_query: Floats
    queries: int
    test_queries: int
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
    train: float | None = None,
    test: float | None = None,
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
    learned = [FitData(used.values[:, part], used.outcome, used.query, used.same, pairs, loss) for part in parts]
    split = learned[0].split(train, test, folds if len(grid) > 1 else 1, seed)
    columns = np.column_stack(
        [*(each.scores(split, grid, folds, seed) for each in learned), used.values[:, len(features) :]]
    )
    tested = used.where(split.test)
    shared = SharedQueryCorrelations(columns[split.test], tested, level=level, resamples=resamples, seed=seed)
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
    return AblationResult(
        tables.name,
        dict(zip(names, map(mean_figure, shared.means()), strict=True)),
        {(a, b): gap_figure(shared.gap(names.index(a), names.index(b))) for a, b in compared},
        shared.values,
        used.queries,
        tested.queries,
        dict(rows.left_out),
    )


def average_ablation(
    ablations: Sequence[AblationResult], *, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> AblationResult:
    """The same, averaged over collections; every collection counts the same."""
    again: dict[str, Any] = {"level": level, "resamples": resamples, "seed": seed}
    place = {name: at for at, name in enumerate(ablations[0].correlations)}
    return AblationResult(
        f"average of {len(ablations)} cases",
        {name: average_figure([each.by_query[:, at] for each in ablations], **again) for name, at in place.items()},
        {
            (a, b): average_figure(
                [each.by_query[:, place[a]] - each.by_query[:, place[b]] for each in ablations],
                **again,
                difference=True,
            )
            for a, b in ablations[0].differences
        },
        np.concatenate([each.by_query for each in ablations]),
        sum(each.queries for each in ablations),
        sum(each.test_queries for each in ablations),
        {},
    )
