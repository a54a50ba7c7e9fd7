"""How many pairs of systems queries tell apart, and the note if they are few."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from ragworth.prediction.system_order import order_notes
from ragworth.stats.estimate import Resampling
from ragworth.stats.systems import rank_systems, separated_pairs


def test_pairs_of_systems_by_t_tests_as_in_scipy() -> None:
    values = np.random.default_rng(0).normal(size=(40, 6)) + np.linspace(0, 1, 6)
    by_hand = [stats.ttest_rel(values[:, a], values[:, b]).pvalue < 0.05 for a, b in combinations(range(6), 2)]
    assert separated_pairs(values, 0.05) == (sum(by_hand), 15)
    assert 0 < sum(by_hand) < 15


@pytest.mark.parametrize(("noise", "noted"), [(4.0, True), (0.1, False)])
def test_an_order_that_is_mostly_chance_is_noted(noise: float, noted: bool) -> None:
    """A metric that ranks eight systems exactly as the outcome does, measured with chance deviations."""
    rng, worth = np.random.default_rng(1), np.linspace(0, 1, 8)
    metric, outcome = (worth + noise * rng.normal(size=(30, 8)) for _ in range(2))
    found = rank_systems(metric, outcome, Resampling(resamples=200))
    assert found.high is not None
    assert (found.high < 1) == noted  # the interval excludes the truth
    notes = order_notes(outcome, "coverage", Resampling())
    assert ["of 28 pairs of systems" in note for note in notes] == [True] * noted


def test_systems_without_a_value_take_no_part() -> None:
    outcome = np.column_stack([np.random.default_rng(2).normal(size=(9, 2)), np.full(9, np.nan)])
    assert order_notes(outcome, "grade", Resampling()) == []  # two systems: nothing to rank
