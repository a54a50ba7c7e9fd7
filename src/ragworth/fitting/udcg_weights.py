"""Learning the weights of UDCG_θ from contexts, judgments and outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ragworth import __version__
from ragworth.core.errors import InputError, format_count
from ragworth.data import Contexts, Judgments, Outcomes
from ragworth.fitting.ranking_svm import LOSSES, SVMRANK_C, Loss, RankedPairs, fit_ranking_svm, ranked_pairs
from ragworth.fitting.rows import (
    Bools,
    FittingRows,
    FittingTables,
    Floats,
    Ints,
    assign_folds,
    build_fitting_rows,
    column_means,
    describe_sources,
    round_to_digits,
)
from ragworth.metrics import METRICS
from ragworth.metrics.declaration import Metric
from ragworth.metrics.theta import VARIANTS, Theta, Variant, digest_query
from ragworth.metrics.utility import UdcgWeights
from ragworth.stats.estimate import Estimate
from ragworth.stats.within_query import query_correlations, within_query_correlations, within_query_gaps

C_GRID = tuple(float(f"1e{n}") for n in range(-4, 3))
"""Values of C that are tried."""

FOLDS = 5
MIN_QUERIES = 2
"""Queries that each part has at least."""


def fit(
    contexts: Contexts,
    judgments: Judgments,
    outcomes: Outcomes,
    k: int = 5,
    *,
    variant: Variant = "full",
    outcome: str = "grade",
    **settings: Any,
) -> Theta:
    """Learn the weights of UDCG_θ from the tables of one collection; see :func:`fit_tables`."""
    return fit_tables([FittingTables(contexts, judgments, outcomes)], k, variant=variant, outcome=outcome, **settings)


def fit_tables(
    tables: Sequence[FittingTables],
    k: int = 5,
    *,
    variant: Variant = "full",
    outcome: str = "grade",
    rel: float = 1.0,
    loss: Loss = "squared-hinge",
    grid: Sequence[float] | None = None,
    folds: int = FOLDS,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Theta:
    """Learn the weights of UDCG_θ from contexts of the same query whose outcomes differ.

    Parameters
    ----------
    k: passages of a context that are weighed; where fewer are shown, the other places add nothing.
    variant: ``full``; ``relevance``, without harm; ``binary``, in which besides a relevant passage counts 1.
    outcome: the aspect of the outcomes; a higher value is better (correct above abstained above wrong).
    rel: the lowest relevance that counts as relevant.
    loss: ``squared-hinge``, or ``svmrank`` with SVMrank's convention for C; see :mod:`ragworth.fitting.ranking_svm`.
    grid: values of C, of which the one is taken that does best on queries held out; by default :data:`C_GRID`, and for
        ``svmrank`` its default alone.
    folds: parts of the queries, for cross-validation.

    A query may stand in one of several tables only.

    Figures are mean rank correlations within queries. ``in_sample`` is of the weights on what they were learned from.
    ``held_out`` is of weights that saw nothing of the query, C being chosen without it too (so there is a
    cross-validation within each part's training queries): what may be hoped for on other queries of this kind.
    ``udcg`` is UDCG(γ = 1/3) on the same queries, ``gain`` the paired difference of the two: what learning bought.
    """
    if variant not in VARIANTS:
        raise InputError(f"there is no variant {variant!r}", expected=" or ".join(VARIANTS))
    grid = check_settings(k, folds, loss, grid)
    metrics = [*feature_metrics(k, variant, rel), udcg_metric(k, rel)]
    rows = FittingRows.together([build_fitting_rows(each, metrics, outcome) for each in tables])
    used = with_pairs(rows, folds)
    x = used.values[:, :-1]
    data = FitData(x, used.outcome, used.query, ranked_pairs(used.outcome, used.query), loss)
    if not (x[:, :k] > 0).any():
        raise InputError(
            f"in {format_count(len(used.outcome), 'context')} no passage with a relevance of {rel:g} or more helps",
            remedy="give the lowest relevance that counts as relevant in these labels: --rel",
        )
    _check_features(x, data.pairs)
    c = _best_c(data, grid, folds, seed, np.ones(len(used.outcome), dtype=bool))
    weights = scale_weights(fit_ranking_svm(x, data.pairs, c, loss), k)
    again: dict[str, Any] = {"level": level, "resamples": resamples, "seed": seed}
    (learned,) = within_query_correlations(round_to_digits(x @ weights)[:, None], used.outcome, used.query, **again)
    tested = np.stack([held_out_scores(data, grid, folds, seed), used.values[:, -1]], axis=1)
    honest, base = within_query_correlations(tested, used.outcome, used.query, **again)
    (gain,) = within_query_gaps(tested, used.outcome, used.query, pairs=[(0, 1)], **again)
    return Theta(
        k,
        variant,
        tuple(float(each) for each in weights[:k]),
        tuple(float(each) for each in weights[k:]) or (0.0,) * k,
        float(rel),
        c,
        {
            "in_sample": mean_figure(learned),
            "held_out": mean_figure(honest),
            "udcg": mean_figure(base),
            "gain": gap_figure(gain),
        },
        describe_sources(tables, outcome)
        | {
            "queries": used.queries,
            "contexts": len(used.outcome),
            "pairs": len(data.pairs.better),
            "all_queries": rows.queries,
            "queries_without_pairs": rows.queries - used.queries,
            "query_digests": " ".join(sorted({digest_query(str(each)) for each in used.ids})),
            "loss": loss,
            "left_out": dict(rows.left_out),
            "folds": folds,
            "level": level,
            "resamples": resamples,
        },
        seed,
        __version__,
    )


def check_settings(k: int, folds: int, loss: Loss, grid: Sequence[float] | None) -> Sequence[float]:
    """Refuse settings that cannot be; the values of C to try."""
    if loss not in LOSSES:
        raise InputError(f"there is no loss {loss!r}", expected=" or ".join(LOSSES))
    values = grid if grid is not None else (SVMRANK_C,) if loss == "svmrank" else C_GRID
    if k < 1 or folds < 2 or not values or min(values) <= 0:
        raise InputError("these settings cannot be", expected="k from 1, folds from 2, and values of C above 0")
    return values


def feature_metrics(k: int, variant: Variant, rel: float) -> list[Metric]:
    """u⁺ of each place, and u⁻ where harm has a part: each is UDCG_θ, without σ, with a single weight of 1.

    So what is learned from and what the metric computes cannot differ, in values or in what has none.
    """
    ones = np.eye(k)
    nothing = (0.0,) * k
    each = [UdcgWeights(tuple(one), nothing, variant == "binary") for one in ones]
    each += [UdcgWeights(nothing, tuple(one)) for one in ones] if variant == "full" else []
    metric = METRICS.get("UDCG")
    names = [f"{variant}-{place}" for place in range(len(each))]
    return [metric.bind(k, raw=True, rel=rel, theta=name).given(theta=w) for name, w in zip(names, each, strict=True)]


def udcg_metric(k: int, rel: float) -> Metric:
    """What learned weights are compared with: UDCG with γ = 1/3."""
    return METRICS.get("UDCG").bind(k, rel=rel)


def scale_weights(weights: Floats, k: int) -> Floats:
    """Weights such that those of help add up to 1, as those of UDCG do (each 1/k).

    **Choice**: a machine learns which context is better, not by how much, so how large its weights are says more of C
    than of the contexts; and σ of a large sum is 1 whatever the sum. Scaled so, values can be set beside UDCG's, and
    the sum of the weights of harm beside γ. The order of contexts stays what it was.
    """
    total = np.abs(weights[:k]).sum() or np.abs(weights).sum()
    return np.asarray(weights / total if total > 0 else weights)


class FitData(NamedTuple):
    """Features and outcome of rows, the number of each row's query, and pairs of rows."""

    x: Floats
    outcome: Floats
    query: Ints
    pairs: RankedPairs
    loss: Loss = "squared-hinge"

    def trained(self, which: Bools, c: float) -> Floats:
        """Scores of all rows by weights learned from the pairs of some."""
        mine = which[self.pairs.better]
        weights = fit_ranking_svm(self.x, RankedPairs(*(each[mine] for each in self.pairs)), c, self.loss)
        return round_to_digits(self.x @ weights)


def held_out_scores(data: FitData, grid: Sequence[float], folds: int, seed: int) -> Floats:
    """A score of each row by weights, and a C, that were learned without its query."""
    part = assign_folds(data.query, folds, seed)
    scores = np.empty(len(part))
    for fold in range(folds):
        there = part != fold
        c = _best_c(data, grid, folds, seed + 1, there)
        scores[~there] = data.trained(there, c)[~there]
    return scores


def _best_c(data: FitData, grid: Sequence[float], folds: int, seed: int, rows: Bools) -> float:
    """The C that does best in a cross-validation within some rows; of equal ones the smallest, which trusts least."""
    if len(grid) == 1:
        return float(grid[0])
    part = np.full(len(rows), -1)
    part[rows] = assign_folds(data.query[rows], folds, seed)
    scores = np.empty((len(rows), len(grid)))
    for fold in range(folds):
        for place, c in enumerate(grid):
            scores[part == fold, place] = data.trained((part >= 0) & (part != fold), c)[part == fold]
    means = column_means(query_correlations(scores[rows], data.outcome[rows], data.query[rows]).values)
    return min(zip(-np.nan_to_num(means, nan=-1.0).round(12), map(float, grid), strict=True))[1]


def with_pairs(rows: FittingRows, folds: int) -> FittingRows:
    """The rows of queries in which outcomes differ; too few queries are an error."""
    if not len(rows.outcome):
        said = [f"{reason}: {format_count(n, 'context')}" for reason, n in rows.left_out.items()]
        raise InputError("no context has both its judgments and an outcome", more=tuple(said))
    if np.ptp(rows.outcome) == 0:
        raise InputError(
            f"all {format_count(len(rows.outcome), 'outcome')} are {rows.outcome[0]:g}: there is nothing to learn",
            remedy="take contexts of which some lead to correct answers and some do not",
        )
    pairs = ranked_pairs(rows.outcome, rows.query)
    used = rows.where(np.isin(rows.query, pairs.query))
    if used.queries < MIN_QUERIES * folds:
        raise InputError(
            f"{format_count(used.queries, 'query has', 'queries have')} contexts whose outcomes differ, "
            f"of {rows.queries:,}",
            expected=f"at least {MIN_QUERIES * folds}, for {folds} parts",
            remedy="take more queries, or more contexts of each: ragworth study alignment makes them",
        )
    return used


def _check_features(x: Floats, pairs: RankedPairs) -> None:
    if not (x[pairs.better] != x[pairs.worse]).any():
        raise InputError(
            "contexts whose outcomes differ have the same utilities: there is nothing to learn",
            remedy="take contexts of other passages, or judge more of them",
        )


def mean_figure(found: Estimate) -> dict[str, Any]:
    """A mean correlation within queries."""
    counts = {"queries": found.n, "contexts": found.counts["contexts"], "left_out": dict(found.reasons)}
    return {"value": found.value, "low": found.low, "high": found.high, **counts}


def gap_figure(found: Estimate) -> dict[str, Any]:
    """A paired difference of two correlations."""
    return {"value": found.value, "low": found.low, "high": found.high, "p": found.p, "queries": found.n}
