"""Learning the weights of UDCG_θ from contexts, judgments and outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from ragworth import __version__
from ragworth.errors import InputError, format_count
from ragworth.fitting.estimates import (
    SharedQueryCorrelations,
    average_same_queries,
    column_means,
    gap_figure,
    mean_figure,
)
from ragworth.fitting.folds import QuerySplit, assign_folds, split_queries
from ragworth.fitting.ranking_svm import LOSSES, SVMRANK_C, Loss, RankedPairs, fit_ranking_svm, ranked_pairs
from ragworth.fitting.rows import (
    Bools,
    FittingRows,
    FittingTables,
    Floats,
    Ints,
    build_fitting_rows,
    describe_sources,
    round_to_digits,
)
from ragworth.formats.theta import VARIANTS, Theta, Variant, digest_query
from ragworth.metrics import METRICS
from ragworth.metrics.declaration import Metric
from ragworth.metrics.utility import UdcgWeights
from ragworth.stats.within_query import query_correlations
from ragworth.tables import Contexts, Judgments, Outcomes

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
    train: float | None = None,
    test: float | None = None,
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
    train, test: how many queries to learn from and to test on, as a share or a number; by default all, by
        cross-validation. Only queries whose contexts differ in outcome count. Without ``test``, all others are tested
        on. ``held_out``, ``udcg`` and ``gain`` are then of the test queries.

    Several tables may have the same queries, such as those of two models: contexts are only compared within a table,
    but a query's id is in one part alone, and counts as one query in every figure. The same table twice is an error.

    Figures are mean rank correlations within queries. ``in_sample`` is of the weights on what they were learned from.
    ``held_out`` is of weights that saw nothing of the query, C being chosen without it too (so there is a
    cross-validation within each part's training queries): what may be hoped for on other queries of this kind.
    ``udcg`` is UDCG(γ = 1/3) on the same queries, ``gain`` the paired difference of the two: what learning bought.
    """
    if variant not in VARIANTS:
        raise InputError(f"there is no variant {variant!r}", expected=" or ".join(VARIANTS))
    grid = check_settings(k, folds, loss, grid)
    _check_apart(tables)
    metrics = [*feature_metrics(k, variant, rel), udcg_metric(k, rel)]
    rows = FittingRows.together([build_fitting_rows(each, metrics, outcome) for each in tables])
    used = with_pairs(rows, folds)
    x = used.values[:, :-1]
    data = FitData(x, used.outcome, used.query, used.same, ranked_pairs(used.outcome, used.query), loss)
    if not (x[:, :k] > 0).any():
        raise InputError(
            f"in {format_count(len(used.outcome), 'context')} no passage with a relevance of {rel:g} or more helps",
            remedy="give the lowest relevance that counts as relevant in these labels: --rel",
        )
    _check_features(x, data.pairs)
    split = data.split(train, test, folds if len(grid) > 1 else 1, seed)
    c = _best_c(data, grid, folds, seed, split.train)
    weights = scale_weights(data.weights(split.train, c), k)
    scores = round_to_digits(x @ weights)
    held = data.scores(split, grid, folds, seed)
    again: dict[str, Any] = {"level": level, "resamples": resamples, "seed": seed}
    learned_rows, tested = used.where(split.train), np.stack([held, used.values[:, -1]], axis=1)[split.test]
    (learned,) = SharedQueryCorrelations(scores[split.train, None], learned_rows, **again).means()
    shared = SharedQueryCorrelations(tested, used.where(split.test), **again)
    honest, base = shared.means()
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
            "gain": gap_figure(shared.gap(0, 1)),
        },
        describe_sources(tables, outcome)
        | {
            "queries": learned_rows.queries,
            "contexts": len(learned_rows.outcome),
            "pairs": int(split.train[data.pairs.better].sum()),
            "test_queries": None if split.cross_validated else used.where(split.test).queries,
            "all_queries": rows.queries,
            "queries_without_pairs": rows.queries - used.queries,
            "query_digests": " ".join(sorted({digest_query(str(each)) for each in learned_rows.ids})),
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
    """Features and outcome of rows, the number of each row's query, which queries are the same, and pairs of rows."""

    x: Floats
    outcome: Floats
    query: Ints
    same: Ints
    pairs: RankedPairs
    loss: Loss = "squared-hinge"

    def split(self, train: float | None, test: float | None, folds: int, seed: int) -> QuerySplit:
        """Rows to learn from and rows to test on; a query of several tables is on one side."""
        return split_queries(self.same[self.query], train, test, seed, MIN_QUERIES * folds)

    def parts(self, folds: int, seed: int, which: Bools | None = None) -> Ints:
        """The part of each row, or of some and −1 for the others; a query of several tables is in one part."""
        if which is None:
            return assign_folds(self.same[self.query], folds, seed)
        part = np.full(len(self.query), -1)
        part[which] = assign_folds(self.same[self.query[which]], folds, seed)
        return part

    def weights(self, which: Bools, c: float) -> Floats:
        """Weights learned from the pairs of some rows."""
        mine = which[self.pairs.better]
        return fit_ranking_svm(self.x, RankedPairs(*(each[mine] for each in self.pairs)), c, self.loss)

    def trained(self, which: Bools, c: float) -> Floats:
        """Scores of all rows by such weights."""
        return round_to_digits(self.x @ self.weights(which, c))

    def scores(self, split: QuerySplit, grid: Sequence[float], folds: int, seed: int) -> Floats:
        """A score of each row to be tested, by weights and a C that were learned without its query."""
        if split.cross_validated:
            return held_out_scores(self, grid, folds, seed)
        return self.trained(split.train, _best_c(self, grid, folds, seed, split.train))


def held_out_scores(data: FitData, grid: Sequence[float], folds: int, seed: int) -> Floats:
    """A score of each row by weights, and a C, that were learned without its query."""
    part = data.parts(folds, seed)
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
    part = data.parts(folds, seed, rows)
    scores = np.empty((len(rows), len(grid)))
    for fold in range(folds):
        for place, c in enumerate(grid):
            scores[part == fold, place] = data.trained((part >= 0) & (part != fold), c)[part == fold]
    each = query_correlations(scores[rows], data.outcome[rows], data.query[rows]).values
    means = column_means(average_same_queries(each, data.same[np.unique(data.query[rows])]))
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
    there, every = (len(set(each.ids.tolist())) for each in (used, rows))
    if there < MIN_QUERIES * folds:
        raise InputError(
            f"{format_count(there, 'query has', 'queries have')} contexts whose outcomes differ, of {every:,}",
            expected=f"at least {MIN_QUERIES * folds}, for {folds} parts",
            remedy="take more queries, or more contexts of each: ragworth study alignment makes them",
        )
    return used


def _check_apart(tables: Sequence[FittingTables]) -> None:
    """Refuse a table that is there twice: what is held out in the one would be learned from in the other."""
    for (at, one), (place, other) in combinations(enumerate(tables, 1), 2):
        a, b = (None if each.outcomes is None else each.outcomes.frame for each in (one, other))
        if a is not None and b is not None and a.equals(b) and one.contexts.frame.equals(other.contexts.frame):
            names = " and ".join(each.name or f"number {n}" for n, each in ((at, one), (place, other)))
            raise InputError(
                f"{names} have the same contexts and the same outcomes", remedy="name each folder of results once"
            )


def _check_features(x: Floats, pairs: RankedPairs) -> None:
    if not (x[pairs.better] != x[pairs.worse]).any():
        raise InputError(
            "contexts whose outcomes differ have the same utilities: there is nothing to learn",
            remedy="take contexts of other passages, or judge more of them",
        )
