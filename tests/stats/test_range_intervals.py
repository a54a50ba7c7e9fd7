"""Intervals of shares and of samples in which few values differ: never of length 0, and they cover."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from ragworth.stats.bootstrap import mean_intervals
from ragworth.stats.range_intervals import few_differ, range_interval, wilson_interval
from tests.strategies import examples

UNIT = (0.0, 1.0)


@pytest.mark.parametrize(("successes", "n"), [(0, 20), (20, 20), (7, 30), (500, 1000)])
def test_wilson_equals_scipy(successes: int, n: int) -> None:
    expected = binomtest(successes, n).proportion_ci(0.95, method="wilson")
    assert wilson_interval(successes, n, 0.95) == pytest.approx((expected.low, expected.high), abs=1e-9)


@pytest.mark.parametrize("n", [10, 13, 20, 50, 100])
def test_shares_are_covered(n: int) -> None:
    """Exactly, over all outcomes. No interval of a share covers the same for all shares: that is in steps."""
    ends = np.array([wilson_interval(k, n, 0.95) for k in range(n + 1)])
    steps = ends[(ends > 0.0) & (ends < 1.0)]  # coverage is least just beside the ends
    shares = np.concatenate([np.linspace(0.001, 0.999, 997), steps - 1e-9, steps + 1e-9])
    chances = binom.pmf(np.arange(n + 1), n, shares[:, None])
    covered = (chances * ((ends[:, 0] <= shares[:, None]) & (shares[:, None] <= ends[:, 1]))).sum(axis=1)
    assert covered.min() >= 0.909
    assert 0.95 <= covered[:997].mean() <= 0.965


def test_one_success_by_hand() -> None:
    # A Poisson number is 0 with a chance of 95 % if its mean is −ln 0.95 = 0.0513: a share of 0.00256 of 20.
    assert wilson_interval(1, 20, 0.95)[0] == pytest.approx(0.0512933 / 20, abs=1e-7)
    assert wilson_interval(19, 20, 0.95)[1] == pytest.approx(1 - 0.0512933 / 20, abs=1e-7)


def test_twenty_of_twenty_is_no_certainty() -> None:
    interval = mean_intervals(np.ones((20, 1)), bounds=UNIT)
    assert (interval.low[0], interval.high[0]) == pytest.approx((0.8389, 1.0), abs=1e-4)
    two = mean_intervals(np.zeros((2, 1)), bounds=UNIT)
    assert two.high[0] > 0.6


def test_shares_need_no_bounds_if_both_outcomes_occur() -> None:
    values = np.array([[1.0, 1.0]] * 15 + [[0.0, 1.0]] * 5)
    free, bound = mean_intervals(values), mean_intervals(values, bounds=UNIT)
    assert (free.low[0], free.high[0]) == (bound.low[0], bound.high[0])
    assert np.isnan(free.low[1])
    assert bound.low[1] < bound.high[1]


def test_half_an_unseen_value_by_hand() -> None:
    # The weight of half an observation beside 20 others follows Beta(0.5, 20); its 97.5 % quantile is 0.1191.
    low, high = range_interval(np.full(20, 0.25), UNIT, 0.95, 50_000, seed=0)
    assert low == pytest.approx(0.25 - 0.25 * 0.1191, abs=1e-3)
    assert high == pytest.approx(0.25 + 0.75 * 0.1191, abs=3e-3)


@pytest.mark.parametrize("n", [20])
@pytest.mark.parametrize("share", [0.02, 0.1])
@pytest.mark.parametrize("kind", ["moderate", "small", "both signs"])
def test_few_values_off_zero_are_covered(n: int, share: float, kind: str) -> None:
    rng = np.random.default_rng(n)
    shape = (n, 400)
    sizes = rng.beta(1, 9, size=shape) if kind == "small" else rng.beta(2, 2, size=shape)
    signs = rng.choice([-1.0, 1.0], size=shape) if kind == "both signs" else 1.0
    values = np.where(rng.random(shape) < share, sizes * signs, 0.0)
    truth = share * {"moderate": 0.5, "small": 0.1, "both signs": 0.0}[kind]
    found = mean_intervals(values, resamples=400, bounds=(-1.0, 1.0) if kind == "both signs" else UNIT)
    assert (found.high > found.low).all()
    assert ((found.low <= truth) & (truth <= found.high)).mean() >= 0.93


@examples(30)
@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=2, max_size=40))
def test_intervals_have_a_length_and_hold_the_mean(values: list[float]) -> None:
    sample = np.array(values)[:, None]
    found = mean_intervals(sample, resamples=400, bounds=UNIT)
    assert 0.0 <= found.low[0] < found.high[0] <= 1.0
    assert found.low[0] <= sample.mean() <= found.high[0]
    free = mean_intervals(sample, resamples=400)
    assert np.isnan(free.low[0]) or free.low[0] < free.high[0]


def test_a_million_equal_values() -> None:
    values = np.zeros((1_000_000, 1))
    bounded = mean_intervals(values, bounds=(-1.0, 1.0))
    assert -1e-5 < bounded.low[0] < 0 < bounded.high[0] < 1e-5
    values[:3] = 0.5
    some = mean_intervals(values, bounds=(-1.0, 1.0))
    assert some.low[0] < 1.5e-6 < some.high[0] < 1e-5


def test_rounding_makes_no_difference() -> None:
    assert few_differ(np.array([0.3, 0.1 + 0.2, 0.3, 0.3]))
    assert not few_differ(np.arange(12.0))
    assert not few_differ(np.array([0.0] * 11 + [1.0] * 10))
    assert few_differ(np.array([0.0] * 12 + [1.0] * 9))


def test_a_value_beyond_the_bounds_widens_them() -> None:
    found = mean_intervals(np.full((10, 1), 1.5), bounds=UNIT)
    assert found.low[0] < found.high[0] <= 1.5 + 1e-9
