"""Units in clusters: whole clusters are drawn, by every function that takes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ragworth.stats.auc import win_rate
from ragworth.stats.bootstrap import FEW_CLUSTERS
from ragworth.stats.concordance import concordance
from ragworth.stats.estimate import Estimate, Resampling, mean_estimates, mean_of_columns, mean_of_groups
from ragworth.stats.paired import TESTS, Test, bootstrap_tests, difference
from ragworth.stats.pooled import pooled_correlations, pooled_gaps
from ragworth.stats.range_intervals import wilson_interval
from ragworth.stats.systems import correlate_systems, rank_systems
from ragworth.stats.within_query import within_query_correlations, within_query_gaps

PLAN = Resampling(0.95, 400, 0)
SHARE = (0.0, 1.0)
TIMES = 4
"""How often each unit is repeated within its cluster."""

Floats = Any


def mean_of(values: Floats, clusters: Any = None, bounds: Any = None) -> Estimate:
    return mean_estimates(np.asarray(values, dtype=float)[:, None], PLAN, bounds, clusters)[0]


def test_a_clustered_mean_is_the_mean_over_units() -> None:
    found = mean_of([1.0, 0.0, 0.0, 1.0, 1.0, np.nan], ["a", "a", "b", "b", "b", "b"])
    assert found.value == pytest.approx(0.6)  # 3 of 5
    assert (found.n, found.n_left_out, found.clusters) == (5, 1, 2)


def test_the_interval_of_a_mean_is_that_of_one_number_for_each_cluster() -> None:
    """Sizes 1 and 3: the mean over units is (1 + 3 · 2)/4 = 1.75, and the numbers are 1.75 + Σ(v − 1.75) · G/n."""
    sizes, values = np.array([1, 3] * 5), np.array([1.0, 2.0] * 5)
    found = mean_of(np.repeat(values, sizes), np.repeat(np.arange(10), sizes))
    numbers = 1.75 + (values - 1.75) * sizes * 10 / 20  # 1.375 and 2.125
    alone = mean_of(numbers)
    assert found.value == pytest.approx(1.75)
    assert found.low == pytest.approx(alone.low) and found.high == pytest.approx(alone.high)


def test_units_that_are_clusters_of_their_own_change_nothing() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.random(20), rng.random(20)
    a[3] = np.nan
    names = [f"c{at}" for at in rng.permutation(20)]
    for test in TESTS:
        plain = difference(a, b, test, PLAN, SHARE)  # type: ignore[arg-type]
        assert difference(a, b, test, PLAN, SHARE, names) == plain  # type: ignore[arg-type]
    assert mean_of(a, names, SHARE) == mean_of(a, None, SHARE)


@pytest.mark.parametrize("test", TESTS)
def test_repeating_turns_within_conversations_is_no_more_evidence(test: Test) -> None:
    """With every unit repeated in its cluster, all stays as it was; without clusters p and the interval shrink."""
    rng = np.random.default_rng(0)
    moved, nothing = rng.uniform(-0.5, 0.9, 30), np.zeros(30)
    single = difference(moved, nothing, test, PLAN, SHARE)
    again, zeros, clusters = np.repeat(moved, 10), np.zeros(300), np.repeat(np.arange(30), 10)
    clustered, naive = (difference(again, zeros, test, PLAN, SHARE, each) for each in (clusters, None))
    for name in ("value", "low", "high", "p", "detectable"):
        assert getattr(clustered, name) == pytest.approx(getattr(single, name)), name
    assert (clustered.n, clustered.clusters, naive.clusters) == (300, 30, None)
    assert naive.p is not None and clustered.p is not None and naive.p < clustered.p
    assert naive.high - naive.low < 0.6 * (clustered.high - clustered.low)  # type: ignore[operator]


def repeated(rows: Floats) -> Floats:
    return np.repeat(rows, TIMES, axis=0)


def sample() -> dict[str, Floats]:
    """Twelve queries of three contexts each, with two metrics, an outcome, and pairs of values."""
    rng = np.random.default_rng(5)
    outcome = rng.random((12, 3))
    return {
        "outcome": outcome,
        "metrics": np.stack([outcome + rng.normal(0, 0.4, (12, 3)), rng.random((12, 3))], axis=2),
        "pairs": rng.random((12, 2)),
        "grades": rng.integers(0, 2, (12, 2)).astype(float),
    }


def _rows(of: dict[str, Floats]) -> tuple[Floats, Floats, Floats]:
    queries = np.repeat(np.arange(len(of["outcome"])), 3)
    return of["metrics"].reshape(-1, 2), of["outcome"].reshape(-1), queries


def _by_row(clusters: Any) -> Any:
    return None if clusters is None else np.repeat(clusters, 3)


FUNCTIONS: dict[str, Callable[[dict[str, Floats], Any], Estimate]] = {
    "pooled": lambda of, c: pooled_correlations(*_rows(of), **PLAN.options, clusters=_by_row(c))[0],
    "pooled gap": lambda of, c: pooled_gaps(*_rows(of), pairs=[(0, 1)], **PLAN.options, clusters=_by_row(c))[0],
    "within": lambda of, c: within_query_correlations(*_rows(of), **PLAN.options, clusters=_by_row(c))[0],
    "within gap": lambda of, c: within_query_gaps(*_rows(of), pairs=[(0, 1)], **PLAN.options, clusters=_by_row(c))[0],
    "win rate": lambda of, c: win_rate(of["pairs"], **PLAN.options, clusters=c),
    "concordance": lambda of, c: concordance(of["pairs"], of["grades"], **PLAN.options, clusters=c),
    "rank of systems": lambda of, c: rank_systems(of["metrics"][:, :, 0], of["outcome"], PLAN, c),
    "correlation of systems": lambda of, c: correlate_systems(
        [(of["metrics"][:, :, 0], of["outcome"])], "pearson", PLAN, c
    ),
    "mean of columns": lambda of, c: mean_of_columns(of["outcome"], PLAN, c),
    "mean of groups": lambda of, c: mean_of_groups(of["outcome"].T, PLAN, [c] * 3),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_draws_whole_clusters(name: str) -> None:
    of = sample()
    more, clusters = {key: repeated(values) for key, values in of.items()}, np.repeat(np.arange(12), TIMES)
    single, found, naive = FUNCTIONS[name](of, None), FUNCTIONS[name](more, clusters), FUNCTIONS[name](more, None)
    assert found.value == pytest.approx(single.value)
    assert found.interval is not None and found.interval == pytest.approx(single.interval)
    assert found.p == pytest.approx(single.p)
    assert found.clusters is not None and naive.interval is not None
    if name == "concordance":  # of the queries whose outcomes differ
        assert 2 < found.clusters < found.n
    else:
        assert found.clusters % 12 == 0 and single.clusters is None
    assert naive.interval.high - naive.interval.low < found.interval.high - found.interval.low


@pytest.mark.parametrize("name", FUNCTIONS)
def test_fewer_than_five_clusters_have_no_interval(name: str) -> None:
    found = FUNCTIONS[name](sample(), np.repeat(np.arange(4), 3))
    assert found.value is not None
    assert found.interval is None
    assert found.reason == FEW_CLUSTERS


def test_bootstrap_tests_of_columns_draw_clusters() -> None:
    rng = np.random.default_rng(2)
    columns = rng.normal(0.2, 1.0, (15, 3))
    clusters = np.repeat(np.arange(15), TIMES)
    found = bootstrap_tests(repeated(columns), resamples=400, clusters=clusters)
    assert found == pytest.approx(bootstrap_tests(columns, resamples=400))


def test_intervals_stay_within_the_range() -> None:
    sizes = [8, 1, 1, 2, 1, 6]
    values = np.repeat([1.0, 0.0, 1.0, 0.5, 0.9, 1.0], sizes)
    clusters = np.repeat(np.arange(6), sizes)
    free, bounded = mean_of(values, clusters), mean_of(values, clusters, SHARE)
    assert free.high == bounded.high == 1  # as recalls, whose name need not tell their range
    stars = mean_of(4 * values, clusters)
    assert stars.high is not None and stars.high > 4
    moved = difference(values, 1 - values, "randomisation", PLAN, SHARE, clusters)
    assert moved.high is not None and moved.high <= 1


def test_equal_values_of_ten_conversations_have_the_interval_of_ten() -> None:
    """30 of 30 correct turns of ten conversations say no more than 10 of 10."""
    found = mean_of(np.ones(30), np.repeat(np.arange(10), 3), SHARE)
    assert found.interval == pytest.approx(wilson_interval(10, 10, 0.95))


@pytest.mark.slow
def test_clustered_intervals_cover_and_tests_hold_their_level() -> None:
    """40 conversations of 1 to 9 turns; half of the variance is between conversations.

    A standard error of the share covered is 1.1 points with 400 trials.
    """
    rng = np.random.default_rng(7)
    covered, rejected = np.zeros(2), np.zeros(2)
    trials, plan = 400, Resampling(0.95, 300, 0)
    for _ in range(trials):
        sizes = rng.integers(1, 10, 40)
        clusters = np.repeat(np.arange(40), sizes)
        moved = rng.normal(0, 1, 40)[clusters] + rng.normal(0, 1, len(clusters))
        for at, each in enumerate((clusters, None)):
            found = difference(moved, np.zeros(len(moved)), "randomisation", plan, None, each)
            assert found.low is not None and found.high is not None and found.p is not None
            covered[at] += found.low <= 0 <= found.high
            rejected[at] += found.p < 0.05
    assert 0.91 < covered[0] / trials < 0.98
    assert 0.025 < rejected[0] / trials < 0.085
    assert covered[1] / trials < 0.80
    assert rejected[1] / trials > 0.20


def test_differences_on_an_unknown_scale_may_go_the_other_way() -> None:
    """All differences seen are from 0 to 1, which says nothing of the lowest that is possible."""
    sizes = [1, 1, 1, 2, 9, 9]
    clusters = np.repeat(np.arange(6), sizes)
    gains = np.repeat([0.6, 0.3, 0.9, 1.0, 0.4, 0.0], sizes)
    moved = difference(3 + gains, np.full(23, 3.0), "randomisation", PLAN, None, clusters)
    assert moved.value == pytest.approx(gains.mean())
    assert moved.low is not None and moved.low < 0
