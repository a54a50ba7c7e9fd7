"""Whether a metric prefers the context with the better outcome: τ = (C − D)/(C + D) over pairs of contexts."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ragworth.stats.bootstrap import FEW_CLUSTERS, FEWEST_CLUSTERS, Clusters
from ragworth.stats.estimate import Estimate
from ragworth.stats.paired import sign_test
from ragworth.stats.resampling import resample_counts, tau_interval, unit_numbers

CHUNK = 1 << 22
"""Maximum numbers in memory while resampling."""

NOTHING = "no pair differs in outcome"
TIED = "the metric tells no such pair apart"


def concordance(
    values: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    queries: npt.ArrayLike | None = None,
    *,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
    clusters: Clusters = None,
) -> Estimate:
    """τ of pairs of contexts, from the metric's ``values`` (pairs × 2) and the ``outcomes`` of both.

    Only pairs that differ in outcome count. ``queries`` gives the query of each pair, by default a different one; whole
    queries are resampled. ``clusters`` gives the cluster of each pair's query, if queries aren't independent. ``n``
    counts queries with a concordant or discordant pair, ``counts`` has the pairs: C and D, those ``tied`` in the
    metric, and ``even`` ones, that don't differ in outcome. p is of a two-sided sign test over queries (or clusters)
    with more pairs of one kind than of the other.
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
    }
    none = Estimate(n_left_out=int((~there).sum()), counts=counts)
    if not told.any():
        return none._replace(reason=TIED if differs.any() else NOTHING)
    inner = np.unique(unit[told], return_inverse=True)[1].reshape(-1)
    net, size = np.bincount(inner, agreed[told]).astype(np.float64), np.bincount(inner).astype(np.float64)
    number = len(np.unique(query[told]))
    none = none._replace(value=float(net.sum() / size.sum()), p=sign_test(net), n=number)
    if len(size) < number:
        none = none._replace(clusters=len(size))
        if len(size) < FEWEST_CLUSTERS:
            return none._replace(reason=FEW_CLUSTERS)
    step = max(1, CHUNK // len(size))
    draws = [drawn @ net / (drawn @ size) for drawn in resample_counts(len(size), resamples, seed, step)]
    return none.with_interval(tau_interval(np.concatenate([np.empty(0), *draws]), len(size), level))


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
