"""Bootstrap intervals: right in simulation, defined at the edges."""

from __future__ import annotations

import numpy as np
import pytest

from ragworth.stats.bootstrap import bootstrap_means, mean_intervals


def test_resampled_means_have_the_mean_and_spread_of_the_sample_mean() -> None:
    values = np.random.default_rng(1).gamma(2.0, size=(200, 3))
    means = bootstrap_means(values, 4000, seed=3)
    assert means.shape == (4000, 3)
    np.testing.assert_allclose(means.mean(axis=0), values.mean(axis=0), atol=0.01)
    np.testing.assert_allclose(means.std(axis=0), values.std(axis=0) / np.sqrt(200), rtol=0.05)


def test_columns_share_the_resampled_rows() -> None:
    x = np.random.default_rng(1).normal(size=50)
    means = bootstrap_means(np.stack([x, 2 * x], axis=1), 500, seed=3)
    np.testing.assert_allclose(means[:, 1], 2 * means[:, 0])


def test_missing_values_are_left_out_of_each_mean() -> None:
    values = np.array([[1.0, 5.0], [3.0, np.nan], [np.nan, 7.0]])
    means = bootstrap_means(values, 2000, seed=0)
    seen = means[~np.isnan(means[:, 0]), 0]
    assert set(np.round(np.unique(seen), 6)) == {1.0, round(5 / 3, 6), 2.0, round(7 / 3, 6), 3.0}


def test_chunked_resampling_gives_every_resample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragworth.stats.bootstrap.CHUNK", 64)
    means = bootstrap_means(np.arange(10.0)[:, None], 333, seed=0)
    assert means.shape == (333, 1)
    assert np.isfinite(means).all()


@pytest.mark.slow
@pytest.mark.parametrize("n", [10, 30, 100])
@pytest.mark.parametrize("kind", ["normal", "skewed", "many zeros"])
def test_intervals_cover_as_often_as_they_say(n: int, kind: str) -> None:
    rng = np.random.default_rng(n)
    shape = (n, 1000)  # 1,000 samples as columns: they share resampled rows, which does not matter for coverage
    values, truth, bounds = {
        "normal": (rng.normal(size=shape), 0.0, None),
        "skewed": (rng.beta(0.5, 1.0, size=shape), 1 / 3, (0.0, 1.0)),
        "many zeros": (np.where(rng.random(shape) < 0.6, 0.0, rng.beta(2, 2, size=shape)), 0.2, (0.0, 1.0)),
    }[kind]
    interval = mean_intervals(values, resamples=1000, seed=1, bounds=bounds)
    coverage = float(((interval.low <= truth) & (truth <= interval.high)).mean())
    # Few values off 0 have an interval that is rather too long.
    assert 0.93 <= coverage <= (0.995 if kind == "many zeros" else 0.975)


def test_intervals_widen_with_the_level() -> None:
    values = np.random.default_rng(0).normal(size=(40, 1))
    widths = [
        float((i.high - i.low)[0]) for level in (0.5, 0.8, 0.95, 0.99) if (i := mean_intervals(values, level=level))
    ]
    assert widths == sorted(widths)
    assert widths[0] > 0


def test_edges_constant_single_and_nothing() -> None:
    values = np.array([[2.0, 1.0, np.nan], [2.0, np.nan, np.nan], [2.0, np.nan, np.nan]])
    interval = mean_intervals(values)
    assert np.isnan(interval.low).all()
    assert np.isnan(interval.high).all()
    assert interval.spans() == [None, None, None]
    bounded = mean_intervals(values, bounds=(0.0, 4.0))
    assert bounded.low[0] < 2.0 < bounded.high[0]
    assert np.isnan(bounded.low[1:]).all()


def test_many_columns_are_resampled_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(0).normal(size=(20, 7))
    together = mean_intervals(values)
    monkeypatch.setattr("ragworth.stats.bootstrap.COLUMNS", 3)
    np.testing.assert_allclose(mean_intervals(values), together)


def test_the_seed_decides() -> None:
    values = np.random.default_rng(0).normal(size=(40, 2))
    one, same, other = (mean_intervals(values, seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_few_values_have_an_interval_within_their_range_or_none() -> None:
    """Student's interval of 0.2 and 1 would be 0.6 ± 12.7 · 0.4, which no mean of recalls can be."""
    few = np.array([[0.2], [1.0]])
    found = mean_intervals(few, resamples=400, bounds=(0.0, 1.0))
    assert 0 <= found.low[0] < 0.2 and found.high[0] <= 1
    assert mean_intervals(few).spans() == [None]


@pytest.mark.parametrize(("a", "b"), [(1, 1), (5, 1), (0.3, 0.3)])
def test_intervals_of_few_values_cover(a: float, b: float) -> None:
    for n in (2, 3, 4):
        found = mean_intervals(np.random.default_rng(n).beta(a, b, (n, 200)), resamples=200, bounds=(0.0, 1.0))
        assert ((found.low <= a / (a + b)) & (a / (a + b) <= found.high)).mean() >= 0.95
