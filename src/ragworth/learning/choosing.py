"""The best value of a parameter: as it looks on the queries it was chosen on, and as it does on others.

The best value of a grid looks better than it is, because chance has a part in being the best. So the value is also
chosen on all parts of the queries but one and tested on that one, each part in its turn: the figure held out.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal, NamedTuple

import numpy as np

from ragworth.learning.cases import Bools, Floats, Rows
from ragworth.learning.figures import known_means
from ragworth.learning.folds import parted
from ragworth.learning.grids import Grid
from ragworth.stats.correlation import MEASURES, Measure, ranks
from ragworth.stats.intervals import mean_intervals
from ragworth.stats.paired import bootstraps
from ragworth.stats.pooled import pooled, pooled_gaps
from ragworth.stats.resampled import Span
from ragworth.stats.within import by_query

Kind = Literal["within", "pooled"]


class Choice(NamedTuple):
    """The best value by one kind of correlation, and what it is worth.

    Attributes
    ----------
    kind: ``within`` queries, or ``pooled`` over all contexts.
    best, in_sample: the value that does best on all queries, and its correlation on the same.
    chosen: the values chosen in the parts, with how often.
    held_out, interval: the correlation on queries that had no part in the choice: the honest figure.
    default, at_default: the default value and its correlation.
    gain, gain_interval, p: ``held_out`` less ``at_default``, paired by query.
    queries: that the figure held out is from.
    """

    kind: Kind
    best: float
    in_sample: float
    chosen: dict[float, int]
    held_out: float
    interval: Span | None
    default: float
    at_default: float
    gain: float
    gain_interval: Span | None
    p: float | None
    queries: int


class Settings(NamedTuple):
    """How correlations are taken and resampled. ``up`` is −1 where a lower value of the metric is better."""

    measure: Measure = "spearman"
    folds: int = 5
    level: float = 0.95
    resamples: int = 2000
    seed: int = 0
    up: int = 1


def choose_within(grid: Grid, rows: Rows, settings: Settings) -> Choice | None:
    """By the mean correlation within queries; None where too few queries have one.

    As everywhere, a query in which a value of the parameter has no correlation is left out of that value's mean.
    """
    each = by_query(rows.values, rows.outcome, rows.query, measure=settings.measure).values
    each = each[~np.isnan(each).all(axis=1)]
    if (~np.isnan(each[:, grid.default])).sum() < 2 * settings.folds:
        return None
    part = parted(np.arange(len(each)), settings.folds, settings.seed)
    chosen = [_best(known_means(each[part != fold]), grid, settings.up) for fold in range(settings.folds)]
    held = each[np.arange(len(each)), np.array(chosen)[part]]
    gaps = np.round(held - each[:, grid.default], 12)
    if (~np.isnan(gaps)).sum() < 2:
        return None
    again = {"resamples": settings.resamples, "seed": settings.seed}
    ends = mean_intervals(np.stack([held, gaps], axis=1), level=settings.level, **again)
    own, gain = (Span(float(low), float(high)) for low, high in zip(ends.low, ends.high, strict=True))
    means = known_means(each)
    best = _best(means, grid, settings.up)
    return Choice(
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
        float(bootstraps(gaps[:, None], **again)[0]),
        int((~np.isnan(held)).sum()),
    )


def choose_pooled(grid: Grid, rows: Rows, settings: Settings) -> Choice | None:
    """By the correlation over all rows; None where the default value has none.

    Scores by the values chosen in different parts are put on one scale by what knows no outcome: their ranks among all
    rows or, for Pearson's r, their distances from the mean in standard deviations. So where all parts choose the same
    value, the figure held out is that value's own.
    """
    scaled = np.stack([_scaled(column, settings.measure) for column in rows.values.T], axis=1)
    part = parted(rows.query, settings.folds, settings.seed)
    chosen = [
        _best(_correlations(rows, settings.measure, part != fold), grid, settings.up) for fold in range(settings.folds)
    ]
    both = np.stack([scaled[np.arange(len(part)), np.array(chosen)[part]], scaled[:, grid.default]], axis=1)
    facts: dict[str, Any] = settings._asdict()
    del facts["folds"], facts["up"]
    honest, default = pooled(both, rows.outcome, rows.query, **facts)
    gap = pooled_gaps(both, rows.outcome, rows.query, pairs=[(0, 1)], **facts)[0]
    if honest.value is None or default.value is None or gap.value is None:
        return None
    every = _correlations(rows, settings.measure, part >= 0)
    best = _best(every, grid, settings.up)
    return Choice(
        "pooled",
        grid.values[best],
        float(every[best]),
        _counts(grid, chosen),
        honest.value,
        honest.interval,
        grid.values[grid.default],
        default.value,
        gap.value,
        gap.interval,
        gap.p,
        rows.queries,
    )


def _correlations(rows: Rows, measure: Measure, which: Bools) -> Floats:
    return np.array([MEASURES[measure](column, rows.outcome[which]) for column in rows.values[which].T])


def _scaled(column: Floats, measure: Measure) -> Floats:
    if measure != "pearson":
        return ranks(column)
    spread = column.std()
    return np.asarray((column - column.mean()) / (spread if spread > 0 else 1.0))


def _best(figures: Floats, grid: Grid, up: int) -> int:
    """The place of the best figure; of equal ones that whose value is nearest to the default."""
    good = np.where(np.isnan(figures), -np.inf, np.round(up * figures, 12))
    far = np.abs(np.array(grid.values) - grid.values[grid.default])
    return int(np.lexsort((far, -good))[0])


def _counts(grid: Grid, chosen: list[int]) -> dict[float, int]:
    return {grid.values[place]: n for place, n in sorted(Counter(chosen).items())}
