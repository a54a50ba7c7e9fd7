"""Prediction-powered means: by hand, against regression, in simulation, and at the edges."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ragworth.stats.prediction_powered import NOTHING, SINGLE, ppi_difference, ppi_mean
from ragworth.stats.range_intervals import TOO_FEW

N = np.nan


def test_by_hand() -> None:
    # Cheap 1 2 3 4 of the sample, mean 2.5, and 5 6 7 8 of the rest; mean of all 4.5. Expensive 2 3 5 6, mean 4.
    # cov/var: deviations −1.5 −.5 .5 1.5 with −2 −1 1 2 give 7 over 5: λ = 1.4. Estimate 4 + 1.4·(4.5 − 2.5) = 6.8.
    # Left over: −2 + 2.1, −1 + .7, 1 − .7, 2 − 2.1 = .1 −.3 .3 −.1: squares .2, over n − 2 = .1.
    # Error² = .1·(1/4 + 2²/5) + 1.4²·6/8 = .105 + 1.47, 6 being the variance of 1 to 8.
    found = ppi_mean([1, 2, 3, 4, 5, 6, 7, 8], [2, 3, 5, 6, N, N, N, N])
    assert found.value == pytest.approx(6.8)
    assert found.weight == pytest.approx(1.4)
    assert found.interval is not None
    half = stats.t.ppf(0.975, 2) * np.sqrt(0.105 + 1.47)
    assert found.interval == pytest.approx((6.8 - half, 6.8 + half))
    assert (found.n, found.total, found.missing, found.cheap, found.plain) == (4, 8, 0, 4.5, 4.0)


def test_taken_at_its_word() -> None:
    # λ = 1: mean of all the cheap, less what it is wrong by in the sample, as first published.
    # 3 + mean(1, 1, 4) − mean(1, 2, 3) = 3 + 2 − 2.
    found = ppi_mean([1, 2, 3, 4, 5], [1, 1, 4, N, N], weight=1.0)
    assert found.value == pytest.approx(3.0)
    # λ' = 2/5: y − λ'f = .6, .2, 2.8, variance 1.96; the rest, 4 and 5, has variance .5. Error² = 1.96/3 + .16·.5/2.
    assert found.interval is not None
    half = stats.t.ppf(0.975, 2) * np.sqrt(1.96 / 3 + 0.04)
    assert found.interval.high - found.interval.low == pytest.approx(2 * half)
    nothing = ppi_mean([1, 2, 3, 4, 5], [1, 1, 4, N, N], weight=0.0)
    assert nothing.interval == pytest.approx(nothing.plain_interval)


def test_with_all_values_bought_it_is_the_plain_mean() -> None:
    y = np.random.default_rng(0).normal(size=20)
    found = ppi_mean(y + 1, y)
    wanted = stats.ttest_1samp(y, 0)
    assert found.value == pytest.approx(y.mean())
    assert found.interval == pytest.approx(tuple(wanted.confidence_interval()))
    assert found.p == pytest.approx(wanted.pvalue)
    assert (found.needed, found.saved, found.weight) == (20, 0, 0.0)


def test_good_predictions_save_and_bad_ones_hardly_cost() -> None:
    rng = np.random.default_rng(1)
    truth = rng.normal(size=2000)
    bought = np.where(np.arange(2000) < 100, truth, N)
    good = ppi_mean(truth + 0.2 * rng.normal(size=2000) + 3, bought)
    bad = ppi_mean(rng.normal(size=2000), bought)
    assert good.saved is not None and bad.saved is not None
    assert good.saved > 500
    assert -15 <= bad.saved <= 15
    # As many values alone have an interval no longer than this; one fewer has not.
    assert good.interval is not None and good.needed is not None
    half = (good.interval.high - good.interval.low) / 2
    spread = truth[:100].std(ddof=1)
    for n, enough in ((good.needed, True), (good.needed - 1, False)):
        assert (stats.t.ppf(0.975, n - 1) * spread / np.sqrt(n) <= half) == enough


def test_differences_are_paired() -> None:
    rng = np.random.default_rng(2)
    hard = 10 * rng.normal(size=400)
    a, b = hard + rng.normal(size=400), hard + 0.5 + rng.normal(size=400)
    some = np.arange(400) < 60
    found = ppi_difference((a + 1, b + 1), (np.where(some, a, N), np.where(some, b, N)))
    # The cheap differences, (b + 1) − (a + 1), are b − a but for rounding.
    same = ppi_mean(b - a, np.where(some, b - a, N))
    assert (found.reason, found.n, found.total, found.missing, found.needed) == same[1:2] + same[5:8] + same[-1:]
    for name in ("value", "p", "weight", "cheap", "plain"):
        assert getattr(found, name) == pytest.approx(getattr(same, name), rel=1e-9)
    for ends, others in ((found.interval, same.interval), (found.plain_interval, same.plain_interval)):
        assert ends is not None and ends == pytest.approx(others, rel=1e-9)
    assert found.value == pytest.approx((b - a).mean(), abs=0.05)
    assert found.p is not None and found.p < 0.01


def test_edges_say_why() -> None:
    nothing = ppi_mean([1.0, 2.0], [N, N])
    assert (nothing.value, nothing.reason, nothing.cheap, nothing.saved) == (None, NOTHING, 1.5, None)
    assert ppi_mean([], []).reason == NOTHING
    assert ppi_mean([N, 1.0], [1.0, N])[:2] == (None, NOTHING)
    single = ppi_mean([1.0, 2.0, N], [3.0, N, 5.0])
    assert (single.value, single.reason, single.interval, single.missing) == (3.0, SINGLE, None, 1)
    few = ppi_mean([1.0, 2.0, 3.0, 4.0], [1.0, 3.0, N, N])
    assert (few.value, few.weight, few.interval) == (2.0, 0.0, few.plain_interval)
    flat = ppi_mean([1.0] * 8, [1.0, 2.0, 3.0, 4.0, N, N, N, N])
    assert (flat.value, flat.weight) == (2.5, 0.0)
    alike = ppi_mean(np.arange(8.0), [0.5] * 4 + [N] * 4)
    # Nothing varies: only the signs can speak, 2/2⁴, and an interval needs the range.
    assert (alike.value, alike.p, alike.interval, alike.reason) == (0.5, 0.125, None, TOO_FEW)
    within = ppi_mean(np.arange(8.0), [0.5] * 4 + [N] * 4, bounds=(0.0, 1.0))
    assert within.interval is not None and within.interval == within.plain_interval
    assert 0 < within.interval.low < 0.4 < 0.6 < within.interval.high < 1
    apart = ppi_difference((np.zeros(8), np.arange(8.0)), (np.zeros(8), np.zeros(8)), bounds=(0.0, 1.0))
    assert apart.interval is not None and apart.interval.low < 0 < apart.interval.high
    assert ppi_mean(np.arange(8.0), [0.0] * 4 + [N] * 4).p == 1.0
    perfect = ppi_mean(np.arange(8.0), [0.0, 1.0, 2.0, 3.0, N, N, N, N])
    assert perfect.value == pytest.approx(3.5)
    last = ppi_mean(np.arange(5.0), [0.0, 1.0, 2.0, 4.0, N], weight=0.5)
    assert last.interval is not None
    with pytest.raises(ValueError, match="cheap values with"):
        ppi_mean([1.0], [1.0, 2.0])


def test_no_interval_goes_beyond_what_is_possible() -> None:
    before, after = np.array([0.0, 1.0, 0.0, 1.0]), np.array([1.0, 0.0, 1.0, 1.0])
    found = ppi_difference((before, after), (before, after), bounds=(0.0, 1.0))
    assert found.interval is not None and found.plain_interval is not None
    assert (found.interval.low, found.plain_interval.high) == (-1.0, 1.0)
    cheap, recall = np.linspace(0.7, 1, 9), np.array([0.8, 0.95, 1.0, 0.9, 1.0, *[N] * 4])  # by a name without a range
    mean = ppi_mean(cheap, recall)
    assert mean.interval is not None and mean.plain_interval is not None
    assert (mean.interval.high, mean.plain_interval.high) == (1.0, 1.0)
    assert ppi_mean(5 * cheap, 5 * recall).interval.high > 5  # type: ignore[union-attr]
    gap = ppi_difference((cheap, 1 - cheap), (recall, 1 - recall))
    assert gap.interval is not None and gap.interval.low == -1.0
