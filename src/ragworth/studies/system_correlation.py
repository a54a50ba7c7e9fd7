"""Systems by their means over queries: how well what a metric says of them goes with what became of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ragworth.stats.correlation import MEASURES, Measure, missing_reason
from ragworth.stats.pooled import JACKKNIFED, ONE_QUERY, UNSTEADY
from ragworth.stats.resampling import ConfidenceInterval, fisher_z_interval, resample_counts, standard_error
from ragworth.stats.within_query import query_correlations
from ragworth.studies.system_order import FEW, FEWEST, NOTHING, common_grid

Floats = npt.NDArray[np.float64]
Sides = tuple[Floats, Floats]
"""A metric and an outcome, each queries × systems; NaN where there is none."""

STEP = 256
"""Resamples whose means are held at a time."""


class SystemCorrelation(NamedTuple):
    """A correlation of systems' means, or the average of several.

    ``left_out`` are queries in which some system has no value, so that all means are over the same queries; where
    several are averaged, those that are left out of all.
    """

    value: float | None
    span: ConfidenceInterval | None
    systems: int
    left_out: int
    reason: str


def correlate_systems(
    sides: Sequence[Sides], *, measure: Measure, level: float, resamples: int, seed: int
) -> SystemCorrelation:
    """The correlation of the systems' means of a metric and an outcome, averaged over several such pairs.

    The pairs are of the same queries in the same order, which are drawn for all at once. The interval is Student's on
    Fisher's scale, with the standard error of the bootstrap over queries or of the jackknife, as for correlations over
    all rows (:mod:`ragworth.stats.pooled`).
    """
    known = [common_grid(x, y) for x, y in sides]
    systems = min(int(each.systems.sum()) for each in known)
    some = np.any([each.queries for each in known], axis=0)
    count, lost = int(some.sum()), int((~some).sum())
    parts = [_Part(each.of(x), each.of(y), each.queries[some]) for (x, y), each in zip(sides, known, strict=True)]
    for part in parts:
        if reason := part.why_none(measure):
            return SystemCorrelation(None, None, systems, lost, reason)
    value = float(np.mean([part.correlation(measure) for part in parts]))
    if count < 2:
        return SystemCorrelation(value, None, systems, lost, ONE_QUERY)

    def weighed(weights: Floats) -> Floats:
        return np.asarray(np.mean([part.weighed(weights, measure) for part in parts], axis=0))

    draws = [weighed(weights) for weights in resample_counts(count, resamples, seed, STEP)]
    without = weighed(1.0 - np.eye(count)) if count <= JACKKNIFED else np.empty(0)
    error = standard_error(np.concatenate(draws), without)
    span = fisher_z_interval(value, error, count, level) if error is not None else None
    return SystemCorrelation(value, span, systems, lost, "" if span else UNSTEADY)


class _Part(NamedTuple):
    """A metric and an outcome without gaps, and which of all queries they are of."""

    x: Floats
    y: Floats
    there: npt.NDArray[np.bool_]

    def means(self) -> Sides:
        x, y = (np.round(each.mean(axis=0), 12) for each in (self.x, self.y))
        return x, y

    def why_none(self, measure: Measure) -> str:
        if self.x.shape[1] < FEWEST or not len(self.x):
            return FEW if self.x.shape[1] < FEWEST else NOTHING
        return missing_reason(*self.means(), measure, ("the metric", "the outcome"))

    def correlation(self, measure: Measure) -> float:
        return float(MEASURES[measure](*self.means()))

    def weighed(self, weights: Floats, measure: Measure) -> Floats:
        """The correlation for each way to count all queries (ways × queries); NaN where none of these is drawn."""
        mine = weights[:, self.there]
        total = mine.sum(axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):
            a, b = (np.round(mine @ each / total, 12) for each in (self.x, self.y))
        way = np.repeat(np.arange(len(weights)), self.x.shape[1])
        return query_correlations(a.reshape(-1, 1), b.reshape(-1), way, measure=measure).values[:, 0]
