"""Above LARGE observations nothing is resampled value by value; the limit agrees with resampling."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ragworth.stats.bootstrap import bootstrap_means, mean_intervals, normal_limits
from ragworth.stats.paired import TESTS, bootstrap_test, bootstrap_tests, t_test
from ragworth.stats.range_intervals import LARGE
from tests.tiers import slow

Floats = np.ndarray[tuple[int], np.dtype[np.float64]]
N = 1500

KINDS: dict[str, Callable[[np.random.Generator], Floats]] = {
    "normal": lambda rng: rng.normal(size=N),
    "0 or 1": lambda rng: (rng.random(N) < 0.1).astype(np.float64),
    "many zeros": lambda rng: np.where(rng.random(N) < 0.9, 0.0, rng.beta(2, 3, size=N)),
    "skewed": lambda rng: rng.exponential(size=N),
}


@pytest.mark.parametrize("kind", ["0 or 1", "skewed", *slow("normal", "many zeros")])
def test_the_limit_agrees_with_resampling(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sample = KINDS[kind](np.random.default_rng(1))
    drawn = bootstrap_means(sample[:, None], 10_000, seed=2)[:, 0]
    for tail, error in ((0.025, 0.2), (0.005, 0.4)):
        # A quantile of 10,000 resamples has an error of about 0.05 (0.1 at 0.005) standard errors
        # of the mean, and a mean of 0 or 1 has gaps of 0.09 between its values.
        expected = np.quantile(drawn, [tail, 1 - tail])
        assert np.abs(normal_limits(sample, tail) - expected).max() / drawn.std() < error
    shifted = sample - sample.mean() + drawn.std()
    resampled = [TESTS[name](shifted, resamples=10_000, seed=1) for name in ("randomisation", "bootstrap")]
    monkeypatch.setattr("ragworth.stats.paired.LARGE", 5)
    limit = [TESTS[name](shifted, resamples=10_000, seed=1) for name in ("randomisation", "bootstrap")]
    assert limit == pytest.approx(resampled, abs=0.03)


def test_the_correction_for_skewness_matters() -> None:
    sample = np.random.default_rng(1).exponential(size=1000)
    expected = np.quantile(bootstrap_means(sample[:, None], 10_000, seed=2)[:, 0], [0.025, 0.975])
    plain = sample.mean() + sample.std() / np.sqrt(1000) * np.array([-1.96, 1.96])
    assert np.abs(normal_limits(sample, 0.025) - expected).max() < 0.6 * np.abs(plain - expected).max()


def test_p_is_no_smaller_than_resampling_could_show() -> None:
    d = np.random.default_rng(0).normal(1.0, 1.0, size=LARGE + 1)
    for name in ("randomisation", "bootstrap"):
        assert TESTS[name](d, resamples=400, seed=0) == pytest.approx(1 / 401)
        assert TESTS[name](np.full(LARGE + 1, 0.5), resamples=400, seed=0) == pytest.approx(1 / 401)


@pytest.mark.parametrize(("some", "p"), [(4, 0.125), (6, 0.03125), (12, 2 / 2**12)])
def test_few_of_many_differences_have_no_limit(some: int, p: float) -> None:
    d = np.zeros(2 * LARGE)
    d[:some] = 1.0
    for name in ("randomisation", "bootstrap"):
        assert TESTS[name](d, resamples=10_000, seed=0) == pytest.approx(p)


def test_small_differences_beside_few_large_ones_have_no_limit() -> None:
    d = np.where(np.arange(LARGE + 100) % 2, 1e-6, -1e-6)
    d[:4] = 1.0
    # The large ones have one sign in 2/2⁴ of the flips; in half of these, the small ones subtract from their sum.
    for name in ("randomisation", "bootstrap"):
        assert TESTS[name](d, resamples=10_000, seed=0) == pytest.approx(0.0625, abs=0.01)


def test_columns_with_few_of_many_rows_are_resampled() -> None:
    rng = np.random.default_rng(3)
    values = np.full((LARGE + 50, 2), np.nan)
    values[::500, 0] = rng.random(len(values[::500]))
    values[:, 1] = rng.random(len(values))
    known = values[::500, :1]
    found, alone = mean_intervals(values, seed=4), mean_intervals(known, seed=4)
    assert (found.low[0], found.high[0]) == (alone.low[0], alone.high[0])
    assert found.high[1] - found.low[1] == pytest.approx(2 * 1.96 * values[:, 1].std() / np.sqrt(len(values)), rel=0.01)
    p = bootstrap_tests(values - 0.45, resamples=500, seed=4)
    assert p[0] == bootstrap_test(known[:, 0] - 0.45, resamples=500, seed=4)
    assert p[1] == max(t_test(values[:, 1] - 0.45), 1 / 501)


def test_a_million_queries_draw_next_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Resampling 10⁶ values 10,000 times would draw 10¹⁰ random numbers; none of these paths draws by the value."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("resampled value by value")

    monkeypatch.setattr("ragworth.stats.bootstrap.bootstrap_means", refuse)
    monkeypatch.setattr("ragworth.stats.paired.bootstrap_means", refuse)
    rng = np.random.default_rng(0)
    many = np.where(rng.random(1_000_000) < 0.7, 0.0, rng.normal(size=1_000_000))
    few = np.zeros(1_000_000)
    few[:30] = rng.normal(size=30)
    interval = mean_intervals(np.stack([many, few], axis=1), resamples=10_000)
    assert (interval.low < interval.high).all()
    for name in TESTS:
        for d in (many, few):
            assert 0 < TESTS[name](d, resamples=10_000, seed=0) <= 1
