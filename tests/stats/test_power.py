"""Power: against statsmodels, in simulation, and at the edges."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtri, stdtrit

from ragworth.stats.paired import t_test
from ragworth.stats.power import (
    FEW,
    FLAT,
    HOPELESS,
    LAX,
    _detectable_effect,
    detectable_difference,
    smallest_enough,
    t_test_power,
)


@pytest.mark.parametrize("n", [2, 5, 30, 400])
@pytest.mark.parametrize("alpha", [0.05, 0.01])
def test_equal_to_statsmodels(n: int, alpha: float) -> None:
    other = pytest.importorskip("statsmodels.stats.power").TTestPower()
    for effect in np.array([0.0, 1.0, 2.5, 4.0]) / np.sqrt(n):  # beyond that it has none
        assert t_test_power(2 * effect, 2.0, n, alpha=alpha) == pytest.approx(other.power(effect, n, alpha), abs=1e-9)
    if n > 2:
        # Its power there, not its solver: that stops at a relative error of 10⁻⁷ to 10⁻⁵, by machine.
        found = detectable_difference(np.random.default_rng(n).normal(size=n), alpha=alpha)
        assert found.value is not None and found.spread is not None
        assert other.power(found.value / found.spread, n, alpha) == pytest.approx(0.8, abs=1e-9)


@pytest.mark.slow
def test_in_simulation() -> None:
    rng = np.random.default_rng(0)
    found = np.mean([t_test(rng.normal(0.4, 1, size=30)) < 0.05 for _ in range(2000)])
    assert found == pytest.approx(t_test_power(0.4, 1.0, 30), abs=0.035)


@pytest.mark.parametrize("n", [3, 50])
def test_a_difference_of_the_detectable_size_is_detected_four_times_out_of_five(n: int) -> None:
    rng = np.random.default_rng(11)
    effect = detectable_difference([-np.sqrt((n - 1) / 2), *[0.0] * (n - 2), np.sqrt((n - 1) / 2)])
    assert effect.value is not None and effect.spread == pytest.approx(1)
    found = [t_test(rng.normal(effect.value, 1, size=n)) < 0.05 for _ in range(4000)]
    assert np.mean(found) == pytest.approx(0.8, abs=0.02)


@pytest.mark.parametrize("n", [2, 3, 5])
def test_few_queries_need_more_than_the_sum_of_two_quantiles(n: int) -> None:
    values = np.arange(n, dtype=float)
    found = detectable_difference(values).value
    assert found is not None
    quantiles = stdtrit(n - 1, 0.975) + stdtrit(n - 1, 0.8)
    assert found > 1.01 * quantiles * values.std(ddof=1) / np.sqrt(n)


@pytest.mark.parametrize("n", [10**4, 10**7])
def test_many_queries_need_what_the_normal_distribution_says(n: int) -> None:
    found = _detectable_effect(n, 0.05, 0.8)
    assert found == pytest.approx((ndtri(0.975) + ndtri(0.8)) / np.sqrt(n), rel=2e-4)


def test_edges() -> None:
    assert t_test_power(1.0, 1.0, 1) == 0.0
    assert t_test_power(0.0, 1.0, 30) == pytest.approx(0.05)
    assert t_test_power(-0.4, 1.0, 30) == t_test_power(0.4, 1.0, 30)
    assert t_test_power(5.0, 0.001, 1000) == 1.0
    assert detectable_difference([]) == (None, FEW, None, 0, 0)
    assert detectable_difference([1.0, np.nan]) == (None, FEW, None, 1, 1)
    assert detectable_difference([0.1, 0.1, 0.1]) == (None, FLAT, 0.0, 3, 0)
    assert detectable_difference([-1.0, 0.0, 1.0], alpha=0.9) == (None, LAX, 1.0, 3, 0)
    assert smallest_enough(lambda n: n >= 37) == 37
    assert smallest_enough(lambda n: True) == 1
    assert smallest_enough(lambda n: False) is None


def test_what_makes_no_sense_is_refused() -> None:
    for wrong in ({"alpha": 0.0}, {"chance": 1.0}):
        with pytest.raises(ValueError, match="is not between"):
            detectable_difference([0.0, 1.0, 3.0], **wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not above 0"):
        t_test_power(1.0, 0.0, 30)


def test_few_queries_show_nothing_by_a_test_that_flips_signs() -> None:
    values = [0.1, 0.15, 0.16, 0.17, 0.18]  # two of 32 flips are as extreme: p is never below 0.06
    assert detectable_difference(values, test="randomisation")[:2] == (None, HOPELESS)
    assert detectable_difference(values).value is not None
    assert detectable_difference([*values, 0.2], test="wilcoxon").value is not None
