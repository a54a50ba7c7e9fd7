"""Means of groups and of columns, each counting the same, worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from ragworth.stats.estimate import Estimate, Resampling, mean_of_columns, mean_of_groups

PLAN = Resampling(resamples=400)


def test_every_group_counts_the_same_however_large() -> None:
    small, large = np.array([1.0, 0.0, np.nan]), np.array([0.2] * 30)
    one = mean_of_groups([small, large], PLAN)
    assert one.value == pytest.approx((0.5 + 0.2) / 2) and one.n == 32
    assert one.low is not None and one.high is not None and one.low < 0.35 < one.high


def test_the_interval_is_as_wide_as_that_of_the_smallest_group() -> None:
    rng = np.random.default_rng(1)
    few, many = rng.normal(size=5), rng.normal(size=500)
    wide, narrow = mean_of_groups([few, many], PLAN), mean_of_groups([many, many + 0.0], PLAN)
    assert wide.interval is not None and narrow.interval is not None
    assert wide.interval.high - wide.interval.low > 3 * (narrow.interval.high - narrow.interval.low)


def test_a_group_without_a_value_gives_none() -> None:
    one = mean_of_groups([np.array([np.nan]), np.array([1.0, 2.0])], PLAN)
    assert one.value is None and one.n == 2 and one.reason


def test_every_column_counts_the_same_and_rows_without_a_value_not_at_all() -> None:
    values = np.array([[1.0, 0.0], [1.0, np.nan], [np.nan, 0.5], [np.nan, np.nan]])
    one = mean_of_columns(values, PLAN)
    assert one.value == pytest.approx((1.0 + 0.25) / 2) and one.n == 3


def test_an_interval_that_contains_0_is_not_significant_whatever_p_is() -> None:
    assert Estimate(0.08, -0.12, 0.26, p=0.001, p_holm=0.002).is_significant(0.05) is False
    assert Estimate(0.08, 0.02, 0.26, p=0.001, p_holm=0.002).is_significant(0.05)
    assert Estimate(0.08, p=0.001).is_significant(0.05)
