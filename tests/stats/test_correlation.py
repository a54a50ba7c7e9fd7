"""Correlations against SciPy, by hand, and at the edges."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ragworth.stats.correlation import (
    CORRELATIONS,
    INFINITE,
    MEASURES,
    NOTHING,
    SINGLE,
    Measure,
    average_ranks,
    correlation,
    kendall,
    kendall_c,
    pearson,
    spearman,
)
from tests.strategies import examples

pairs = st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=2, max_size=30)


@examples(80)
@given(pairs)
def test_equal_to_scipy_with_ties(values: list[tuple[int, int]]) -> None:
    x, y = (np.array(column, dtype=float) for column in zip(*values, strict=True))
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert all(np.isnan(measure(x, y)) for measure in MEASURES.values())
        return
    assert pearson(x, y) == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-12)
    assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)
    assert kendall(x, y) == pytest.approx(stats.kendalltau(x, y).statistic, abs=1e-12)
    assert kendall_c(x, y) == pytest.approx(stats.kendalltau(x, y, variant="c").statistic, abs=1e-12)


def test_by_hand() -> None:
    # x 1 2 2 3, y 0 0 1 1. Pairs: (1,2) up/even, (1,2') up/up C, (1,3) up/up C, (2,2') even/up, (2,3) up/up C,
    # (2',3) up/even. C = 3, D = 0; untied in x 5, in y 4; τ-b = 3/√20; τ-c = 2·3·2/(4²·1) = 0.75.
    x, y = np.array([1.0, 2, 2, 3]), np.array([0.0, 0, 1, 1])
    assert kendall(x, y) == pytest.approx(3 / np.sqrt(20))
    assert kendall_c(x, y) == pytest.approx(0.75)
    # Deviations of x: −1, 0, 0, 1; of y: −½, −½, ½, ½. Products 1, squares 2 and 1: r = 1/√2. Ranks 1 2.5 2.5 4
    # deviate by −1.5, 0, 0, 1.5, those of y by −1, −1, 1, 1: 3/√(4.5·4).
    assert pearson(x, y) == pytest.approx(1 / np.sqrt(2))
    assert spearman(x, y) == pytest.approx(3 / np.sqrt(18))


def test_ranks_share_ties() -> None:
    np.testing.assert_array_equal(average_ranks(np.array([10.0, 20.0, 10.0, 30.0])), [1.5, 3.0, 1.5, 4.0])


@pytest.mark.parametrize("name", MEASURES)
def test_too_few_pairs_have_none(name: str) -> None:
    assert np.isnan(MEASURES[name](np.array([]), np.array([])))
    assert np.isnan(MEASURES[name](np.array([1.0]), np.array([1.0])))


@pytest.mark.parametrize("name", MEASURES)
def test_perfect_agreement_and_perfect_disagreement(name: str) -> None:
    x = np.array([1.0, 2.0, 3.0, 5.0])
    assert MEASURES[name](x, 2 * x + 1) == pytest.approx(1)
    assert MEASURES[name](x, -x) == pytest.approx(-1)


@pytest.mark.parametrize("measure", MEASURES)
def test_why_there_is_none(measure: Measure) -> None:
    for x, y, reason, n, missing in (
        ([], [], NOTHING, 0, 0),
        ([np.nan, 1.0], [1.0, np.nan], NOTHING, 0, 2),
        ([1.0, np.nan], [2.0, 1.0], SINGLE, 1, 1),
        ([1.0, 1.0, np.nan], [1.0, 2.0, 3.0], "the first is constant", 2, 1),
        ([1.0, 2.0], [3.0, 3.0], "the second is constant", 2, 0),
    ):
        assert correlation(x, y, measure) == (None, reason, n, missing)
    found = correlation([1.0, 2.0, np.nan, 3.0], [1.0, 3.0, 9.0, 5.0], measure)
    assert found.value == pytest.approx(1.0)
    assert (found.reason, found.n, found.missing) == ("", 3, 1)
    endless = correlation([1.0, np.inf, 3.0], [1.0, 2.0, 3.0], measure)
    if measure == "pearson":
        assert (endless.value, endless.reason) == (None, INFINITE)
    else:
        assert endless.value is not None and 0 < endless.value < 1


def test_what_is_no_correlation_is_refused() -> None:
    with pytest.raises(ValueError, match="none of pearson, spearman"):
        correlation([1.0], [1.0], "phi")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="values with"):
        correlation([1.0], [1.0, 2.0])


def test_the_matrix_of_metrics_keeps_its_three() -> None:
    assert list(CORRELATIONS) == ["pearson", "spearman", "kendall"]
