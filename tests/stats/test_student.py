"""Quantiles against SciPy's."""

from __future__ import annotations

import pytest
from scipy.special import ndtr, ndtri, stdtrit

from ragworth.stats.range_intervals import expanded_tail, normal_cdf, normal_quantile, student_quantile


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
def test_student_quantiles(level: float) -> None:
    for df in (*range(1, 40), 99, 100, 998, 999, 1000, 1001, 10_000, 10**9):
        assert student_quantile(df, level) == pytest.approx(float(stdtrit(df, 0.5 + level / 2)), rel=1e-10)


def test_normal_quantiles() -> None:
    for p in (1e-12, 0.001, 0.3, 0.5, 0.975):
        assert normal_quantile(p) == pytest.approx(float(ndtri(p)), rel=1e-10, abs=1e-12)
        assert normal_cdf(float(ndtri(p))) == pytest.approx(p, rel=1e-10)


def test_the_expanded_tail_is_smaller_for_few_units() -> None:
    assert expanded_tail(10, 0.95) < expanded_tail(100, 0.95) < expanded_tail(10**6, 0.95) < 0.025
    assert expanded_tail(10, 0.95) == pytest.approx(float(ndtr(-stdtrit(9, 0.975) * (10 / 9) ** 0.5)), rel=1e-10)
