"""Correlations against SciPy, and at the edges."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ragworth.stats.correlation import CORRELATIONS, kendall, pearson, ranks, spearman

pairs = st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=2, max_size=30)


@settings(max_examples=80, deadline=None)
@given(pairs)
def test_equal_to_scipy_with_ties(values: list[tuple[int, int]]) -> None:
    x, y = (np.array(column, dtype=float) for column in zip(*values, strict=True))
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert all(np.isnan(measure(x, y)) for measure in CORRELATIONS.values())
        return
    assert pearson(x, y) == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-12)
    assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)
    assert kendall(x, y) == pytest.approx(stats.kendalltau(x, y).statistic, abs=1e-12)


def test_ranks_share_ties() -> None:
    np.testing.assert_array_equal(ranks(np.array([10.0, 20.0, 10.0, 30.0])), [1.5, 3.0, 1.5, 4.0])


@pytest.mark.parametrize("name", CORRELATIONS)
def test_too_few_pairs_have_none(name: str) -> None:
    assert np.isnan(CORRELATIONS[name](np.array([]), np.array([])))
    assert np.isnan(CORRELATIONS[name](np.array([1.0]), np.array([1.0])))


@pytest.mark.parametrize("name", CORRELATIONS)
def test_perfect_agreement_and_perfect_disagreement(name: str) -> None:
    x = np.array([1.0, 2.0, 3.0, 5.0])
    assert CORRELATIONS[name](x, 2 * x + 1) == pytest.approx(1)
    assert CORRELATIONS[name](x, -x) == pytest.approx(-1)
