"""Tests of paired differences: is the mean difference over queries further from 0 than by chance?

All are two-sided. Missing differences (NaN) are left out. Without any difference, p is 1. A p-value is never 0:
resampling tests count the observed data as a resample, and the others are at least the smallest positive number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from ragworth.stats.bootstrap import (
    FEW_CLUSTERS,
    Clusters,
    bootstrap_means,
    cluster_index,
    cluster_means,
    count_clusters,
    mean_intervals,
    tested_numbers,
    too_few_clusters,
)
from ragworth.stats.estimate import Estimate, Resampling
from ragworth.stats.power import detectable_difference
from ragworth.stats.range_intervals import (
    LARGE,
    MAX_VALUES,
    TOO_FEW,
    Bounds,
    difference_bounds,
    is_constant,
    normal_cdf,
    range_p,
    student_quantile,
)
from ragworth.stats.resampling import ConfidenceInterval

Floats = npt.NDArray[np.float64]
K = TypeVar("K")
Test = Literal["randomisation", "t", "wilcoxon", "sign", "bootstrap", "bounded"]

CHUNK = 1 << 22
"""Random bytes drawn at a time."""
ENOUGH_RESAMPLES, ENOUGH_EXTREME = 100_000, 100
"""Resamples after which a randomisation test stops if so many were as extreme as the data: p is known well enough."""
COLUMNS = 128
"""Comparisons resampled at a time."""
DOMINATED = 0.01
"""Share of the squared sum of squares that fourth powers make up, above which few differences decide the mean: 100
equal ones among zeros. The limits of resampling don't hold for them."""
SMALLEST = float(np.finfo(np.float64).tiny)
EXACT = 50
"""Number of differing queries up to which Wilcoxon's test is exact."""
DIGITS = 12
"""Decimals after which differences count as equal."""

NOTHING = "no query has both values"
SINGLE = "only one query has both values, so no interval"
NOT_ABOVE_0 = "the mean to divide by is not above 0"
NOT_SURELY_ABOVE_0 = "the mean to divide by may be 0, so no interval"


def randomisation_test(differences: Floats, *, resamples: int = 10_000, seed: int = 0) -> float:
    """Fisher's randomisation test of the mean: random sign flips of the differences.

    If there are no more possible flips than ``resamples``, all are tried and p is exact. For more than
    :data:`LARGE` differences, p is that of the limit, unless few of them dominate. Of more than
    :data:`ENOUGH_RESAMPLES`, only as many are drawn as it takes, and none if Hoeffding's inequality says
    that p is below what they can show.
    """
    moved = _nonzero(differences)
    n = len(moved)
    if n == 0:
        return 1.0
    # Sums that are equal in exact arithmetic must count as equal.
    observed = abs(moved.sum()) - 1e-10 * np.abs(moved).sum()
    if n < 60 and 2**n <= resamples:
        signs = 1.0 - 2.0 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
        return float((np.abs(signs @ moved) >= observed).mean())
    if n > LARGE and not _is_dominated(moved):
        return max(2 * normal_cdf(-observed / float(np.sqrt(moved @ moved))), 1 / (resamples + 1))
    if resamples > ENOUGH_RESAMPLES and 2 * np.exp(-(observed**2) / 2 / (moved**2).sum()) < 1 / (resamples + 1):
        return 1 / (resamples + 1)
    rng = np.random.default_rng(seed)
    extreme = 0
    tables = _byte_sums(moved)
    # Bytes are drawn in fours: with whole fours of rows, none is lost between chunks.
    step = max(4, CHUNK // len(tables) // 4 * 4)
    for low in range(0, resamples, step):
        drawn = rng.integers(0, 256, size=(min(step, resamples - low), len(tables)), dtype=np.uint8)
        flipped = np.zeros(len(drawn))
        for table, flips in zip(tables, np.ascontiguousarray(drawn.T), strict=True):
            flipped += table.take(flips, mode="clip")  # a byte is always inside, so there is nothing to check
        extreme += int((np.abs(moved.sum() - 2.0 * flipped) >= observed).sum())
        if low + len(drawn) >= ENOUGH_RESAMPLES and extreme >= ENOUGH_EXTREME:
            return (extreme + 1) / (low + len(drawn) + 1)
    return (extreme + 1) / (resamples + 1)


def _byte_sums(values: Floats) -> Floats:
    """For every eight values, the sum of those whose bits are set in each byte, first value first: (bytes × 256)."""
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
    return np.asarray(np.pad(values, (0, -len(values) % 8)).reshape(-1, 8) @ bits.T.astype(np.float64))


def _nonzero(differences: Floats) -> Floats:
    """Differences that are neither 0 nor missing."""
    return np.asarray(differences[(differences != 0) & ~np.isnan(differences)])


def _is_dominated(values: Floats) -> bool:
    """Whether a few values make up most of the spread."""
    squares = values**2
    return float(squares @ squares) > DOMINATED * float(squares.sum()) ** 2


def t_test(differences: Floats, *, resamples: int = 0, seed: int = 0) -> float:
    """Student's paired t-test."""
    from scipy.special import stdtr

    differences = differences[~np.isnan(differences)]
    n = len(differences)
    if n < 2 or not differences.any():
        return 1.0
    if is_constant(differences):
        return randomisation_test(differences)  # no spread, no t: only the signs are left to test
    statistic = abs(differences.mean()) / (differences.std(ddof=1) / np.sqrt(n))
    return max(float(2 * stdtr(n - 1, -statistic)), SMALLEST)


def wilcoxon_test(differences: Floats, *, resamples: int = 0, seed: int = 0) -> float:
    """Wilcoxon's signed-rank test; zero differences are left out, equal differences share their rank.

    Exact, with and without ties, for up to 50 differing queries. For more, the normal approximation, corrected for
    ties. Differences that are equal up to rounding (12 decimals) are ties.
    """
    from scipy import stats

    moved = _nonzero(np.round(differences, DIGITS))
    if not len(moved):
        return 1.0
    if len(moved) <= EXACT:
        return _exact_wilcoxon(moved)
    return float(np.clip(stats.wilcoxon(moved, method="approx").pvalue, SMALLEST, 1.0))


def _exact_wilcoxon(moved: Floats) -> float:
    """Exact p of signed ranks: the share of all sign flips whose sum is as far from its mean.

    Ranks are doubled, so that those of ties are whole numbers too. ``ways[s]`` is the number of flips with s as the sum
    of the positive ranks; a float counts up to 2⁵⁰ of them without rounding.
    """
    from scipy.stats import rankdata

    twice = np.rint(2 * rankdata(np.abs(moved))).astype(np.int64)
    total = int(twice.sum())
    ways = np.zeros(total + 1)
    ways[0] = 1.0
    for rank in twice:
        ways[rank:] += ways[:-rank].copy()
    far = abs(2 * int(twice[moved > 0].sum()) - total)
    return float(ways[np.abs(2 * np.arange(total + 1) - total) >= far].sum() / ways.sum())


def sign_test(differences: Floats, *, resamples: int = 0, seed: int = 0) -> float:
    """Sign test; queries without a difference are left out."""
    from scipy.special import bdtr

    moved = _nonzero(differences)
    n = len(moved)
    if n == 0:
        return 1.0
    fewer = int(min((moved > 0).sum(), (moved < 0).sum()))
    return float(np.clip(2 * bdtr(fewer, n, 0.5), SMALLEST, 1.0))


def bootstrap_test(differences: Floats, *, resamples: int = 10_000, seed: int = 0) -> float:
    """Bootstrap of the studentised mean, under a mean of 0."""
    return float(bootstrap_tests(differences[:, None], resamples=resamples, seed=seed)[0])


def bootstrap_tests(
    differences: Floats, *, resamples: int = 10_000, seed: int = 0, clusters: Clusters = None
) -> Floats:
    """Bootstrap test of each column (queries × comparisons) on the same resamples; NaN is left out."""
    if (group := cluster_index(clusters, len(differences))) is not None:
        differences = cluster_means(differences, group)
    found = np.ones(differences.shape[1])
    centred, varied = [], []
    for place, column in enumerate(differences.T):
        known = column[~np.isnan(column)]
        if len(known) < 2 or not known.any():
            continue
        if is_constant(known):
            found[place] = randomisation_test(known, resamples=resamples, seed=seed)
            continue
        if len(differences) > LARGE:
            found[place] = max(_large_bootstrap(known, resamples, seed), 1 / (resamples + 1))
            continue
        varied.append(place)
        centred.append(column - known.mean())
    for low in range(0, len(varied), COLUMNS):
        part = np.stack(centred[low : low + COLUMNS], axis=1)
        both = bootstrap_means(np.concatenate([part, part**2], axis=1), resamples, seed)
        for place, mean, square in zip(varied[low : low + COLUMNS], *np.split(both.T, 2), strict=True):
            found[place] = _tail_share(differences[:, place], mean, square, resamples)
    return found


def _large_bootstrap(known: Floats, resamples: int, seed: int) -> float:
    """Bootstrap test of a column of many rows: its limit is Student's test, which few large differences mislead."""
    if len(known) <= LARGE:  # a column with few of many rows is resampled without the others
        return bootstrap_test(known, resamples=resamples, seed=seed)
    if _is_dominated(known - known.mean()):
        return randomisation_test(known, resamples=resamples, seed=seed)
    return t_test(known)


def _tail_share(differences: Floats, mean: Floats, square: Floats, resamples: int) -> float:
    """Share of the resamples whose studentised mean is as far from 0 as that of the differences."""
    known = differences[~np.isnan(differences)]
    n = len(known)
    variance = np.maximum(square - mean**2, 0) * n / (n - 1)
    observed = abs(known.mean()) / (known.std(ddof=1) / np.sqrt(n))
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = np.abs(mean) / np.sqrt(variance / n)
    # A resample of one repeated value is infinitely extreme, unless that value is the mean.
    drawn = np.where(variance > 0, drawn, np.where(np.abs(mean) > 0, np.inf, 0))
    return (int((drawn >= observed * (1 - 1e-10)).sum()) + 1) / (resamples + 1)


def bounded_test(differences: Floats, *, resamples: int = 10_000, seed: int = 0, bounds: Bounds = (-1.0, 1.0)) -> float:
    """Test of a mean of 0 that allows for an unseen difference at an end of the range ``bounds``.

    The other tests reject too often if few queries have large differences on one side and many have small ones on the
    other, because the sample may contain none of the large ones. This test is conservative and has less power. For more
    than :data:`LARGE` differences with more than a few values, it is the bootstrap test.
    """
    known = differences[~np.isnan(differences)]
    if len(known) < 2 or not known.any():
        return 1.0
    if len(known) > LARGE and len(np.unique(known)) > MAX_VALUES:
        return bootstrap_test(known, resamples=resamples, seed=seed)
    return range_p(known, bounds, resamples, seed)


def opposes_mean(differences: Floats, test: str, clusters: Clusters = None) -> bool:
    """Whether a test of signs or ranks points the other way than the mean difference.

    A system that is a little better for most queries and far worse for some has a lower mean, but the sign test finds
    it better. The other tests are of the mean itself.
    """
    if test not in ("sign", "wilcoxon"):
        return False
    from scipy.stats import rankdata

    mean = float(np.nansum(differences))
    if (group := cluster_index(clusters, len(differences))) is not None:
        differences = tested_numbers(differences, group, test)
    moved = _nonzero(np.round(differences, DIGITS))
    weights = rankdata(np.abs(moved)) if test == "wilcoxon" else np.ones(len(moved))
    return float(np.sign(moved) @ weights) * mean < 0


TESTS: dict[str, Callable[..., float]] = {
    "randomisation": randomisation_test,
    "t": t_test,
    "wilcoxon": wilcoxon_test,
    "sign": sign_test,
    "bootstrap": bootstrap_test,
    "bounded": bounded_test,
}


def paired_p(
    differences: Floats,
    test: Test,
    *,
    resamples: int,
    seed: int,
    bounds: Bounds | None,
    of: str = "the values",
    clusters: Clusters = None,
) -> float:
    """p of a test by name. ``bounds`` are those of the differences, used only by ``bounded``.

    ``clusters`` has the cluster of each difference, if they aren't independent: whole clusters are flipped or drawn.
    """
    if (group := cluster_index(clusters, len(differences))) is not None:
        differences = tested_numbers(differences, group, test)
    if test != "bounded":
        return TESTS[test](differences, resamples=resamples, seed=seed)
    if bounds is None or not np.isfinite(bounds).all():
        raise ValueError(f"the test 'bounded' needs to know the range of {of}")
    return bounded_test(differences, resamples=resamples, seed=seed, bounds=bounds)


def compare_paired(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    test: Test = "randomisation",
    *,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
    bounds: Bounds | None = None,
    clusters: Clusters = None,
) -> Estimate:
    """Mean of the second side minus the first, with possibly missing values (NaN), its interval and test.

    Differences below 10⁻¹² are ties; ``counts`` has wins, ties and losses of the second side. p is two-sided and never
    0; 1 if there is no difference. ``bounds`` are the lowest and highest possible value of either side; without them,
    there is no interval if fewer than five differences differ from all others. ``clusters`` has the cluster of each
    pair, if pairs aren't independent (:mod:`ragworth.stats.bootstrap`).
    """
    if test not in TESTS:
        raise ValueError(f"test={test!r} is none of {', '.join(TESTS)}")
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 1:
        raise ValueError(f"{a.shape} values against {b.shape}")
    there = ~(np.isnan(a) | np.isnan(b))
    known = (b - a)[there]
    known = np.where(np.abs(known) < 1e-12, 0.0, known)
    counts = {name: int((np.sign(known) == sign).sum()) for name, sign in (("wins", 1), ("ties", 0), ("losses", -1))}
    none = Estimate(n=len(known), n_left_out=len(a) - len(known), counts=counts)
    if not len(known):
        return none._replace(reason=NOTHING)
    group = cluster_index(None if clusters is None else np.asarray(clusters)[there], len(known))
    how: dict[str, Any] = {"resamples": resamples, "seed": seed, "bounds": difference_bounds(bounds), "clusters": group}
    (span,) = mean_intervals(known[:, None], level=level, **how).spans()
    none = none._replace(value=float(known.mean()), p=paired_p(known, test, **how))
    reason = "" if span is not None else TOO_FEW if len(known) > 1 else SINGLE
    if group is not None:
        none = none._replace(clusters=int(count_clusters(known[:, None], group)[0]))
        reason = FEW_CLUSTERS if too_few_clusters(known[:, None], group)[0] else reason
    return none._replace(reason=reason).with_interval(span)


def difference(
    first: Floats,
    second: Floats,
    test: Test,
    plan: Resampling,
    bounds: Bounds | None = None,
    clusters: Clusters = None,
) -> Estimate:
    """The mean of the first minus that of the second over paired units; ``bounds`` are those of either side.

    ``clusters`` has the cluster of each unit, if units aren't independent.
    """
    found = compare_paired(second, first, test, **plan.options, bounds=bounds, clusters=clusters)
    least = detectable_difference(first - second, test=test, alpha=plan.alpha, clusters=clusters).value
    return found._replace(detectable=least)


def ratio_of_means(first: Floats, second: Floats, plan: Resampling, clusters: Clusters = None) -> Estimate:
    """Return the relative difference of the first mean from the second, over paired units.

    The mean of the units' own ratios is too high if the second varies by chance: 1/x is larger below its mean than it
    is small above. Here only the mean of the second varies, so that with n units the bias is about 1/n of that. The
    interval is Fieller's, which contains 0 exactly where the paired t-test of the differences, whose p it has, doesn't
    reject. Without an interval of the mean difference there is none.
    """
    difference = compare_paired(second, first, "t", **plan.options, clusters=clusters)
    there = ~(np.isnan(first) | np.isnan(second))
    pairs = np.stack([first[there], second[there]], axis=1)
    above, below = pairs.mean(axis=0) if len(pairs) else (0.0, 0.0)
    if below <= 0:
        return difference._replace(value=None, low=None, high=None, p=None, reason=difference.reason or NOT_ABOVE_0)
    ratio = difference._replace(value=float(above / below) - 1, low=None, high=None)
    group = cluster_index(None if clusters is None else np.asarray(clusters)[there], len(pairs))
    span = (
        None if difference.interval is None else _fieller(pairs if group is None else cluster_means(pairs, group), plan)
    )
    return ratio._replace(reason=ratio.reason or NOT_SURELY_ABOVE_0) if span is None else ratio.with_interval(span)


def _fieller(pairs: Floats, plan: Resampling) -> ConfidenceInterval | None:
    """Fieller's interval of the ratio of the columns' means, less 1: all ratios that a paired t-test doesn't reject.

    None if it would be unbounded, because the second mean may be 0.
    """
    above, below = pairs.mean(axis=0)
    square = student_quantile(len(pairs) - 1, plan.level) ** 2
    (varied, both), (_, base) = np.cov(pairs.T) * square / len(pairs)
    a, b, c = below**2 - base, above * below - both, above**2 - varied
    if a <= 0:
        return None
    root = math.sqrt(max(b * b - a * c, 0.0))
    return ConfidenceInterval(float(b - root) / float(a) - 1, float(b + root) / float(a) - 1)


def holm(p_values: Floats) -> Floats:
    """Holm's correction of a family of p-values, in their order; NaN stays NaN and doesn't count."""
    result = np.full(len(p_values), np.nan)
    known = np.flatnonzero(~np.isnan(p_values))
    order = known[np.argsort(p_values[known], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    result[order] = np.minimum(np.maximum.accumulate(p_values[order] * factors), 1.0)
    return result


def correct_by_holm(results: Mapping[K, Estimate]) -> dict[K, Estimate]:
    """The same estimates, with p corrected by Holm for all of them."""
    p = holm(np.array([np.nan if one.p is None else one.p for one in results.values()], dtype=np.float64))
    corrected = [None if np.isnan(each) else float(each) for each in p]
    return {key: results[key]._replace(p_holm=each) for key, each in zip(results, corrected, strict=True)}


def correct_alike(found: Sequence[Estimate]) -> list[Estimate]:
    """Estimates with p corrected by Holm; equal ones, as of metrics that rank all contexts alike, are one test."""
    once = correct_by_holm({(one.p, one.value, one.n): one for one in found})
    return [one._replace(p_holm=once[one.p, one.value, one.n].p_holm) for one in found]


def is_reliable(one: Estimate, alpha: float) -> bool:
    """Return whether a correlation is above 0 by its test, corrected for all that were tried."""
    return (one.value or 0.0) > 0 and one.is_significant(alpha)
