"""The best value of a parameter: as it looks on the queries it was chosen on, and as it does on others.

The best value of a grid looks better than it is, because chance has a part in being the best. So the value is also
chosen on all parts of the queries but one and tested on that one, each part in its turn: the figure held out.
"""

from __future__ import annotations

from collections import Counter
from typing import Literal, NamedTuple

import numpy as np

from ragworth.fitting.grids import ParameterGrid
from ragworth.fitting.rows import Bools, FittingRows, Floats, assign_folds, column_means
from ragworth.fitting.split_correlations import FoldCorrelations
from ragworth.stats.bootstrap import mean_intervals
from ragworth.stats.correlation import MEASURES, Measure
from ragworth.stats.paired import bootstrap_tests
from ragworth.stats.resampling import (
    ConfidenceInterval,
    expanded_interval,
    expanded_p,
    fisher_z_interval,
    standard_error,
)
from ragworth.stats.within_query import query_correlations

CorrelationKind = Literal["within", "pooled"]


class ParameterChoice(NamedTuple):
    """The best value by one kind of correlation, and what it is worth.

    Attributes
    ----------
    kind: ``within`` queries, or ``pooled`` over all contexts.
    best, in_sample: the value that does best on all queries, and its correlation on the same. All correlations that
        are ``pooled`` are means over the parts of that over a part's contexts.
    chosen: the values chosen in the parts, with how often.
    held_out, interval: the correlation on queries that had no part in the choice: the honest figure.
    default, at_default: the default value and its correlation.
    gain, gain_interval, p: ``held_out`` less ``at_default``, paired by query.
    queries: that the figure held out is from.
    """

    kind: CorrelationKind
    best: float
    in_sample: float
    chosen: dict[float, int]
    held_out: float
    interval: ConfidenceInterval | None
    default: float
    at_default: float
    gain: float
    gain_interval: ConfidenceInterval | None
    p: float | None
    queries: int


class CorrelationOptions(NamedTuple):
    """How correlations are taken and resampled. ``up`` is −1 where a lower value of the metric is better."""

    measure: Measure = "spearman"
    folds: int = 5
    level: float = 0.95
    resamples: int = 2000
    seed: int = 0
    up: int = 1


def choose_within(grid: ParameterGrid, rows: FittingRows, settings: CorrelationOptions) -> ParameterChoice | None:
    """By the mean correlation within queries; None where too few queries have one.

    As everywhere, a query in which a value of the parameter has no correlation is left out of that value's mean.
    """
    each = query_correlations(rows.values, rows.outcome, rows.query, measure=settings.measure).values
    each = each[~np.isnan(each).all(axis=1)]
    if (~np.isnan(each[:, grid.default])).sum() < 2 * settings.folds:
        return None
    part = assign_folds(np.arange(len(each)), settings.folds, settings.seed)
    chosen = [_best(column_means(each[part != fold]), grid, settings.up) for fold in range(settings.folds)]
    held = each[np.arange(len(each)), np.array(chosen)[part]]
    gaps = np.round(held - each[:, grid.default], 12)
    if (~np.isnan(gaps)).sum() < 2:
        return None
    again = {"resamples": settings.resamples, "seed": settings.seed}
    own, gain = (
        mean_intervals(each[:, None], level=settings.level, **again, bounds=bounds).spans()[0]
        for each, bounds in ((held, (-1.0, 1.0)), (gaps, (-2.0, 2.0)))
    )
    means = column_means(each)
    best = _best(means, grid, settings.up)
    return ParameterChoice(
        "within",
        grid.values[best],
        float(means[best]),
        _counts(grid, chosen),
        float(np.nanmean(held)),
        own,
        grid.values[grid.default],
        float(means[grid.default]),
        float(np.nanmean(gaps)),
        gain,
        float(bootstrap_tests(gaps[:, None], **again)[0]),
        int((~np.isnan(held)).sum()),
    )


def choose_pooled(grid: ParameterGrid, rows: FittingRows, settings: CorrelationOptions) -> ParameterChoice | None:
    """By the correlation over all rows; None where no part has one both of the value chosen and of the default.

    Parts may choose different values, whose scores are on different scales. So every figure is the mean over the parts
    of the correlation over the rows of a part, also those of the default and of the best value, with which the figure
    held out is compared.
    """
    part = assign_folds(rows.query, settings.folds, settings.seed)
    chosen = [
        _best(_correlations(rows, settings.measure, part != fold), grid, settings.up) for fold in range(settings.folds)
    ]
    best = best_in_sample(grid, rows, settings)[0]
    columns = np.stack(
        [rows.values[np.arange(len(part)), np.array(chosen)[part]], *(rows.values[:, [grid.default, best]].T)], axis=1
    )
    found = FoldCorrelations(columns, rows, part, settings.measure)
    if np.isnan(found.values).any():
        return None
    held, default, in_sample = (float(each) for each in found.values)
    draws = found.draws(settings.resamples, settings.seed)
    error = standard_error(draws[:, 0], found.left_out()[:, 0]) if _mostly_defined(draws[:, 0]) else None
    gaps = draws[:, 0] - draws[:, 1]
    sure = _mostly_defined(gaps)
    return ParameterChoice(
        "pooled",
        grid.values[best],
        in_sample,
        _counts(grid, chosen),
        held,
        fisher_z_interval(held, error, rows.queries, settings.level) if error is not None else None,
        grid.values[grid.default],
        default,
        float(np.round(held - default, 12)),
        expanded_interval(gaps, rows.queries, settings.level) if sure else None,
        expanded_p(gaps, rows.queries) if sure else None,
        rows.queries,
    )


def best_in_sample(grid: ParameterGrid, rows: FittingRows, settings: CorrelationOptions) -> tuple[int, float]:
    """The place of the value that does best over all rows, and its correlation there; NaN where there is none."""
    found = _correlations(rows, settings.measure, np.ones(len(rows.outcome), dtype=bool))
    best = _best(found, grid, settings.up)
    return best, float(found[best])


def _mostly_defined(draws: Floats) -> bool:
    """Whether most resamples have a figure."""
    return 2 * int(np.isnan(draws).sum()) < len(draws)


def _correlations(rows: FittingRows, measure: Measure, which: Bools) -> Floats:
    return np.array([MEASURES[measure](column, rows.outcome[which]) for column in rows.values[which].T])


def _best(figures: Floats, grid: ParameterGrid, up: int) -> int:
    """The place of the best figure; of equal ones that whose value is nearest to the default."""
    good = np.where(np.isnan(figures), -np.inf, np.round(up * figures, 12))
    far = np.abs(np.array(grid.values) - grid.values[grid.default])
    return int(np.lexsort((far, -good))[0])


def _counts(grid: ParameterGrid, chosen: list[int]) -> dict[float, int]:
    return {grid.values[place]: n for place, n in sorted(Counter(chosen).items())}
