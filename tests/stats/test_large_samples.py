"""Above LARGE observations nothing is resampled value by value; what comes out agrees with resampling."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ragworth.stats.bootstrap import bootstrap_means, mean_intervals
from ragworth.stats.large_samples import LARGE, bootstrap_quantiles, is_dominated, resampled_moments, sign_flip_p
from ragworth.stats.paired import TESTS, bootstrap_test, bootstrap_tests, randomisation_test, t_test
from tests.tiers import slow

Floats = np.ndarray[tuple[int], np.dtype[np.float64]]
N = 1500


def sparse(rng: np.random.Generator, some: int) -> Floats:
    values = np.zeros(N)
    values[:some] = rng.normal(0.3, 1, size=some)
    return values


KINDS: dict[str, Callable[[np.random.Generator], Floats]] = {
    "normal": lambda rng: rng.normal(size=N),
    "0 or 1": lambda rng: (rng.random(N) < 0.1).astype(np.float64),
    "many zeros": lambda rng: np.where(rng.random(N) < 0.9, 0.0, rng.beta(2, 3, size=N)),
    "12 that are not 0": lambda rng: sparse(rng, 12),
    "heavy tails": lambda rng: rng.standard_cauchy(size=N),
}


@pytest.mark.parametrize("kind", ["0 or 1", "heavy tails", *slow("normal", "many zeros", "12 that are not 0")])
def test_quantiles_agree_with_resampling(kind: str) -> None:
    sample = KINDS[kind](np.random.default_rng(1))
    drawn = bootstrap_means(sample[:, None], 10_000, seed=2)[:, 0]
    for tail in (0.025, 0.005):
        found = bootstrap_quantiles(sample, tail, 10_000, seed=3)
        expected = np.quantile(drawn, [tail, 1 - tail])
        # A quantile of 10,000 resamples has an error of about 0.05 (0.1 at 0.005) standard errors
        # of the mean, and a mean of 0 or 1 has gaps of 0.09 between its values.
        assert np.abs(np.array(found) - expected).max() / drawn.std() < (0.2 if tail == 0.025 else 0.4)


def test_the_correction_for_skewness_matters() -> None:
    sample = np.random.default_rng(1).exponential(size=1000)
    assert not is_dominated(sample - sample.mean())
    low, high = bootstrap_quantiles(sample, 0.025, 100, seed=0)
    expected = np.quantile(bootstrap_means(sample[:, None], 10_000, seed=2)[:, 0], [0.025, 0.975])
    error = sample.std() / np.sqrt(1000)
    plain = sample.mean() + error * np.array([-1.96, 1.96])
    assert np.abs(np.array([low, high]) - expected).max() < 0.6 * np.abs(plain - expected).max()


@pytest.mark.parametrize("kind", ["12 that are not 0", *slow("normal", "heavy tails")])
def test_tests_agree_with_resampling(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    d = KINDS[kind](np.random.default_rng(5))
    d = d[d != 0]
    drawn = randomisation_test(d, resamples=10_000, seed=1)
    assert sign_flip_p(d, 10_000, seed=2) == pytest.approx(drawn, abs=0.015)
    drawn = bootstrap_test(d, resamples=10_000, seed=1)
    monkeypatch.setattr("ragworth.stats.paired.LARGE", 5)
    assert bootstrap_test(d, resamples=10_000, seed=1) == pytest.approx(drawn, abs=0.02)


def test_moments_of_many_distinct_values_keep_mean_and_spread() -> None:
    sample = np.random.default_rng(0).pareto(1.5, size=20_000)
    means, squares = resampled_moments(sample, 4000, seed=1).T
    assert means.mean() == pytest.approx(sample.mean(), rel=0.01)
    assert means.std() == pytest.approx(sample.std() / np.sqrt(len(sample)), rel=0.03)
    assert squares.mean() == pytest.approx((sample**2).mean(), rel=0.02)


def test_p_is_no_smaller_than_resampling_could_show() -> None:
    d = np.random.default_rng(0).normal(1.0, 1.0, size=LARGE + 1)
    for name in ("randomisation", "bootstrap"):
        assert TESTS[name](d, resamples=400, seed=0) == pytest.approx(1 / 401)
        assert TESTS[name](np.full(LARGE + 1, 0.5), resamples=400, seed=0) == pytest.approx(1 / 401)


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
