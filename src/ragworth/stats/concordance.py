"""Whether a metric prefers the context with the better outcome: τ = (C − D)/(C + D) over pairs of contexts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ragworth.stats.clustered import FEW_CLUSTERS, FEWEST_CLUSTERS, Clusters
from ragworth.stats.paired import sign_test
from ragworth.stats.resampling import ConfidenceInterval, expanded_interval, resample_counts, unit_numbers

CHUNK = 1 << 22
"""Maximum numbers in memory while resampling."""

NOTHING = "no pair differs in outcome"
TIED = "the metric tells no such pair apart"


class Concordance(NamedTuple):
    """How often metric and outcome prefer the same context of a pair.

    Attributes
    ----------
    value: τ = (C − D)/(C + D), from −1 to 1; None if undefined.
    reason: why it is undefined, or empty.
    interval: expanded percentile bootstrap over queries, or None.
    p: two-sided sign test over queries with more pairs of one kind than of the other; never 0.
    concordant, discordant: C and D.
    tied: pairs that differ in outcome but not in the metric; counted in neither.
    even: pairs that don't differ in outcome; they are left out.
    missing: pairs with a NaN; they are left out.
    queries: queries with a concordant or discordant pair.
    clusters: number of clusters of these queries; None if queries are independent.
    """

    value: float | None
    reason: str
    interval: ConfidenceInterval | None
    p: float
    concordant: int
    discordant: int
    tied: int
    even: int
    missing: int
    queries: int
    clusters: int | None = None


def concordance(
    values: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    queries: npt.ArrayLike | None = None,
    *,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
    clusters: Clusters = None,
) -> Concordance:
    """τ of pairs of contexts, from the metric's ``values`` (pairs × 2) and the ``outcomes`` of both.

    Only pairs that differ in outcome count. ``queries`` gives the query of each pair, by default a different one; whole
    queries are resampled. ``clusters`` gives the cluster of each pair's query, if queries aren't independent.
    """
    x = np.asarray(values, dtype=np.float64).reshape(-1, 2)
    y = np.asarray(outcomes, dtype=np.float64).reshape(-1, 2)
    if len(x) != len(y):
        raise ValueError(f"{len(x)} pairs of values with {len(y)} pairs of outcomes")
    query = unit_numbers(queries, len(x))
    unit = query if clusters is None else unit_numbers(clusters, len(x))
    there = ~(np.isnan(x).any(axis=1) | np.isnan(y).any(axis=1))
    metric, outcome = ((v[:, 0] > v[:, 1]).astype(np.float64) - (v[:, 0] < v[:, 1]) for v in (x, y))
    differs = there & (outcome != 0)
    agreed = metric * outcome
    told = differs & (agreed != 0)
    counts = {
        "concordant": int((agreed[told] > 0).sum()),
        "discordant": int((agreed[told] < 0).sum()),
        "tied": int((differs & (agreed == 0)).sum()),
        "even": int((there & (outcome == 0)).sum()),
        "missing": int((~there).sum()),
    }
    if not told.any():
        return Concordance(None, TIED if differs.any() else NOTHING, None, 1.0, queries=0, **counts)
    inner = np.unique(unit[told], return_inverse=True)[1].reshape(-1)
    net, size = np.bincount(inner, agreed[told]).astype(np.float64), np.bincount(inner).astype(np.float64)
    step = max(1, CHUNK // len(size))
    draws = [drawn @ net / (drawn @ size) for drawn in resample_counts(len(size), resamples, seed, step)]
    number = len(np.unique(query[told]))
    clustered = len(size) < number
    few = clustered and len(size) < FEWEST_CLUSTERS
    interval = None if few else expanded_interval(np.concatenate([np.empty(0), *draws]), len(size), level)
    return Concordance(
        float(net.sum() / size.sum()),
        FEW_CLUSTERS if few else "",
        interval,
        sign_test(net),
        queries=number,
        clusters=len(size) if clustered else None,
        **counts,
    )


def macro_f1(values: npt.ArrayLike, outcomes: npt.ArrayLike) -> float | None:
    """F1 of predicting by the higher value which context of a pair has the better outcome, averaged over both classes
    (the first is better, the second is better).

    Over pairs that differ in both. None if one class is never predicted, or never true.
    """
    x, y = (np.asarray(each, dtype=np.float64).reshape(-1, 2) for each in (values, outcomes))
    there = ~(np.isnan(x).any(axis=1) | np.isnan(y).any(axis=1)) & (x[:, 0] != x[:, 1]) & (y[:, 0] != y[:, 1])
    predicted, true = x[there, 0] > x[there, 1], y[there, 0] > y[there, 1]
    classes = [(predicted, true), (~predicted, ~true)]
    if any(not said.any() or not was.any() for said, was in classes):
        return None
    return float(np.mean([2 * (said & was).sum() / (said.sum() + was.sum()) for said, was in classes]))
