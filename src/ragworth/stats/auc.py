"""Separation of positives and negatives: AUC overall, and win rate within queries. By default ties count half."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ragworth.stats.bootstrap import (
    FEW_CLUSTERS,
    Clusters,
    cluster_index,
    mean_intervals,
    tested_numbers,
    too_few_clusters,
)
from ragworth.stats.correlation import average_ranks
from ragworth.stats.estimate import Estimate
from ragworth.stats.paired import sign_test
from ragworth.stats.pooled import JACKKNIFED
from ragworth.stats.range_intervals import wilson_interval
from ragworth.stats.resampling import (
    ConfidenceInterval,
    fisher_z_interval,
    resample_counts,
    standard_error,
    unit_numbers,
)

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

CHUNK = 1 << 22
"""Maximum numbers in memory while resampling."""


class AucEstimate(NamedTuple):
    """An AUC with its interval.

    Attributes
    ----------
    value: None if undefined.
    reason: why it is undefined, or empty.
    positives, negatives: number of values.
    missing: NaN values; they are left out.
    groups: number of groups resampled.
    interval: None for fewer than two groups.
    """

    value: float | None
    reason: str
    positives: int
    negatives: int
    missing: int
    groups: int
    interval: ConfidenceInterval | None


def auc(values: npt.ArrayLike, labels: npt.ArrayLike) -> float:
    """Probability that a positive has a higher value than a negative, with ties counting half (area under the ROC
    curve).

    Computed from ranks in O(n log n). NaN values are left out. NaN without positives or without negatives.
    """
    x, positive, there = _check_labels(values, labels)
    x, positive = x[there], positive[there]
    above, below = int(positive.sum()), int((~positive).sum())
    if not above or not below:
        return float("nan")
    return float((average_ranks(x)[positive].sum() - above * (above + 1) / 2) / (above * below))


def auc_interval(
    values: npt.ArrayLike,
    labels: npt.ArrayLike,
    groups: npt.ArrayLike | None = None,
    *,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> AucEstimate:
    """AUC with its interval over ``groups`` (queries), by default over values.

    Values of a query aren't independent, so whole queries are drawn. The interval is Student's on the logit scale, with
    the standard error of the bootstrap or, if larger, of the jackknife (for up to 200 groups). It has one degree of
    freedom less than there are groups with the rarer kind, because a single positive says nothing of the next one,
    however many negatives there are. If that is one group, or if all resamples are the same, as for an AUC of 1, it is
    Wilson's interval over the groups with the rarer kind: the interval never has length 0.
    """
    x, positive, there = _check_labels(values, labels)
    group = unit_numbers(groups, len(x))[there]
    x, positive, missing = x[there], positive[there], int((~there).sum())
    above, below = int(positive.sum()), int((~positive).sum())
    units, group = np.unique(group, return_inverse=True)
    group = group.reshape(-1)
    if not above or not below:
        reason = "nothing has a value" if not len(x) else f"there is no {'negative' if above else 'positive'}"
        return AucEstimate(None, reason, above, below, missing, len(units), None)
    order = np.argsort(x, kind="stable")
    x, positive, group = x[order], positive[order], group[order]
    starts = np.flatnonzero(np.append(True, x[1:] != x[:-1]))
    step = max(1, CHUNK // len(x))
    value = auc(x, positive)
    found = AucEstimate(value, "", above, below, missing, len(units), None)
    if len(units) < 2:
        return found

    def weighted(drawn: Floats) -> Floats:
        return _weighted_auc(drawn[:, group], positive, starts)

    draws = np.concatenate([weighted(drawn) for drawn in resample_counts(len(units), resamples, seed, step)])
    without = weighted(1.0 - np.eye(len(units))) if len(units) <= JACKKNIFED else np.empty(0)
    trials = min(len(np.unique(group[kind])) for kind in (positive, ~positive))
    interval = _logit_interval(value, standard_error(draws, without), trials, level)
    return found._replace(interval=interval or _separated_interval(value, trials, level))


def _logit_interval(value: float, error: float | None, trials: int, level: float) -> ConfidenceInterval | None:
    """Student's interval of an AUC, whose logit is twice Fisher's z of 2·AUC − 1; None if nothing varies."""
    if not error or trials < 2:
        return None
    span = fisher_z_interval(2 * value - 1, 2 * error, trials, level)
    return None if span is None else ConfidenceInterval((span.low + 1) / 2, (span.high + 1) / 2)


def _separated_interval(value: float, trials: int, level: float) -> ConfidenceInterval:
    """An interval for values of which resamples say nothing, such as those all on the right side, or all equal.

    It is the interval of a share of ``trials``. A share between those that so many trials can have lies between the
    shares around it.
    """
    least, most = math.floor(value * trials), math.ceil(value * trials)
    (low, _), (_, high) = (wilson_interval(successes, trials, level) for successes in (least, most))
    return ConfidenceInterval(low, high)


def win_rate(
    pairs: npt.ArrayLike,
    queries: npt.ArrayLike | None = None,
    *,
    strict: bool = False,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
    clusters: Clusters = None,
) -> Estimate:
    """How often the first value of a pair (the positive's) is higher than the second (the negative's).

    A tie counts half, or with ``strict`` nothing; the sign test ignores ties either way.
    ``pairs`` is (n × 2); ``queries`` gives the query of each pair, by default a different one. Every query counts the
    same, however many pairs it has, because pairs that share a passage aren't independent. ``clusters`` gives the
    cluster of each pair's query, if queries aren't independent. ``n`` counts queries with a pair, ``counts`` has wins,
    ties and losses of pairs, and p is of a two-sided sign test over queries, or over clusters of them.
    """
    values = np.asarray(pairs, dtype=np.float64).reshape(-1, 2)
    there = ~np.isnan(values).any(axis=1)
    _, at, query = np.unique(unit_numbers(queries, len(values))[there], return_index=True, return_inverse=True)
    query = query.reshape(-1)
    first, second = values[there].T
    better = (first > second).astype(np.float64) - (first < second)
    counts = {name: int((better == sign).sum()) for name, sign in (("wins", 1), ("ties", 0), ("losses", -1))}
    none = Estimate(n_left_out=int((~there).sum()), counts=counts)
    if not len(better):
        return none._replace(reason="there are no pairs of values")
    size = np.bincount(query)
    net = np.bincount(query, better).astype(np.float64)
    rate = np.bincount(query, better > 0) / size if strict else 0.5 + net / (2 * size)
    group = cluster_index(None if clusters is None else np.asarray(clusters)[there][at], len(rate))
    (span,) = mean_intervals(
        rate[:, None], level=level, resamples=resamples, seed=seed, bounds=(0.0, 1.0), clusters=group
    ).spans()
    reason = "" if span is not None else "there is only one query, so no interval"
    if group is not None:
        net = tested_numbers(net, group, "sign")
        reason = FEW_CLUSTERS if too_few_clusters(rate[:, None], group)[0] else reason
        none = none._replace(clusters=int(group.max()) + 1)
    made = none._replace(value=float(rate.mean()), p=sign_test(net), n=len(rate), reason=reason)
    return made.with_interval(span)


def pair_wins(pairs: Floats, *, strict: bool = False) -> Floats:
    """For each pair 1 for a win, 0 for a loss, ½ (with ``strict`` 0) for a tie; NaN if a value is missing."""
    sign = np.sign(pairs[:, 0] - pairs[:, 1])
    return np.where(np.isnan(sign), np.nan, sign > 0 if strict else 0.5 + sign / 2)


def pairs_within(values: npt.ArrayLike, labels: npt.ArrayLike, queries: npt.ArrayLike) -> tuple[Floats, Ints]:
    """Pair every positive of a query with every negative of it, for :func:`win_rate`; also returns query numbers."""
    x, positive, _ = _check_labels(values, labels)
    query = unit_numbers(queries, len(x))
    pairs: list[Floats] = [np.empty((0, 2))]
    whose: list[Ints] = [np.empty(0, dtype=np.int64)]
    for rows in np.split(np.argsort(query, kind="stable"), np.flatnonzero(np.diff(np.sort(query))) + 1):
        high, low = x[rows[positive[rows]]], x[rows[~positive[rows]]]
        pairs.append(np.stack([np.repeat(high, len(low)), np.tile(low, len(high))], axis=1))
        whose.append(np.full(len(high) * len(low), query[rows[0]] if len(rows) else 0))
    return np.concatenate(pairs), np.concatenate(whose)


def _check_labels(values: npt.ArrayLike, labels: npt.ArrayLike) -> tuple[Floats, Bools, Bools]:
    """Return values, labels as booleans, and where values are known."""
    x, y = np.asarray(values, dtype=np.float64), np.asarray(labels)
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError(f"{x.shape} values with {y.shape} labels")
    if not np.isin(y, (0, 1)).all():
        raise ValueError("labels must be 0 or 1, or False or True")
    return x, y.astype(bool), ~np.isnan(x)


def _weighted_auc(weight: Floats, positive: Bools, starts: Ints) -> Floats:
    """AUC of ascending values, each counted ``weight`` times, for each row of weights.

    ``starts`` is where each distinct value begins.
    """
    good = np.add.reduceat(np.where(positive, weight, 0.0), starts, axis=1)
    bad = np.add.reduceat(np.where(positive, 0.0, weight), starts, axis=1)
    won = (good * (np.cumsum(bad, axis=1) - bad / 2)).sum(axis=1)
    pairs = good.sum(axis=1) * bad.sum(axis=1)
    return np.asarray(np.divide(won, pairs, out=np.full(len(won), np.nan), where=pairs > 0))
