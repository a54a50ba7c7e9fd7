"""Pooled correlations: resamples against really repeated rows, intervals, differences, and the edges."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragworth.stats import correlation
from ragworth.stats.correlation import MEASURES, Measure, make_resampler
from ragworth.stats.pooled import FEW_QUERIES, ONE_DIFFERS, PERFECT, pooled_correlations, pooled_gaps
from ragworth.stats.resampling import expanded_interval, expanded_p, fisher_z_interval, resample_counts, standard_error
from tests.strategies import examples

Floats = npt.NDArray[np.float64]
rows = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 4)), min_size=6, max_size=40)


def made(n: int = 40, each: int = 3, columns: int = 3, seed: int = 0) -> tuple[Floats, Floats, npt.NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(n), each)
    y = rng.normal(size=n)[query] + rng.normal(size=n * each)
    return y[:, None] + rng.normal(size=(n * each, columns)), y, query


@pytest.mark.parametrize("measure", MEASURES)
@examples(40)
@given(rows)
def test_resamples_equal_repeated_rows(measure: Measure, values: list[tuple[int, int, int]]) -> None:
    x, y, q = (np.array(column) for column in zip(*values, strict=True))
    unit = np.unique(q, return_inverse=True)[1].reshape(-1)
    x, y = x + 0.1, y / 3
    (counts,) = resample_counts(int(unit.max()) + 1, 12, seed=1, rows=12)
    found = make_resampler(measure, np.stack([x, -x], axis=1), y, unit).of(counts)
    for times, (value, mirrored) in zip(counts.astype(int)[:, unit], found, strict=True):
        wanted = MEASURES[measure](np.repeat(x, times), np.repeat(y, times))
        np.testing.assert_allclose(value, wanted, atol=1e-9)
        np.testing.assert_allclose(mirrored, -wanted, atol=1e-9)


@pytest.mark.parametrize("measure", MEASURES)
def test_chunks_do_not_matter_and_the_seed_does(measure: Measure, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y, query = made()
    x[::7, 1] = np.nan
    once = pooled_correlations(x, y, query, measure=measure, resamples=150, seed=4)
    gaps = pooled_gaps(x, y, query, pairs=[(0, 2), (1, 2)], measure=measure, resamples=150, seed=4)
    assert pooled_correlations(x, y, query, measure=measure, resamples=150, seed=5)[0].interval != once[0].interval
    for name, size in (("CHUNK", 500), ("WIDEST", 7), ("PAIRS", 300), ("TALL", 3)):
        monkeypatch.setattr(correlation, name, size)
    for a, b in zip(once, pooled_correlations(x, y, query, measure=measure, resamples=150, seed=4), strict=True):
        assert b.value == a.value
        assert b.interval == pytest.approx(a.interval, rel=1e-9)
    again = pooled_gaps(x, y, query, pairs=[(0, 2), (1, 2)], measure=measure, resamples=150, seed=4)
    for one, other in zip(gaps, again, strict=True):
        assert other.interval == pytest.approx(one.interval, rel=1e-9)
        assert other.p == pytest.approx(one.p)


@pytest.mark.parametrize("measure", MEASURES)
def test_intervals_are_made_of_resamples(measure: Measure) -> None:
    """The same from resamples made in a plain loop over really repeated rows."""
    x, y, query = made(n=12, columns=2)
    (counts,) = resample_counts(12, 60, seed=3, rows=60)

    def loop(weights: Floats, column: int) -> Floats:
        times = weights.astype(int)[:, query]
        return np.array([MEASURES[measure](np.repeat(x[:, column], t), np.repeat(y, t)) for t in times])

    draws, left = ([loop(w, column) for column in (0, 1)] for w in (counts, 1 - np.eye(12)))
    found = pooled_correlations(x, y, query, measure=measure, resamples=60, seed=3)
    error = standard_error(draws[0], left[0])
    assert error is not None and found[0].value is not None
    assert found[0].interval == pytest.approx(fisher_z_interval(found[0].value, error, 12, 0.95))
    (gap,) = pooled_gaps(x, y, query, pairs=[(0, 1)], measure=measure, resamples=60, seed=3)
    assert gap.interval == pytest.approx(expanded_interval(draws[0] - draws[1], 12, 0.95))
    assert gap.p == pytest.approx(expanded_p(draws[0] - draws[1], 12))
    assert gap.value == pytest.approx(found[0].value - (found[1].value or 0))


def test_whole_queries_are_drawn() -> None:
    """Ten copies of a query's rows say no more than one."""
    x, y, query = made()
    single = pooled_correlations(x, y, query, resamples=300)
    tenfold = pooled_correlations(np.tile(x, (10, 1)), np.tile(y, 10), np.tile(query, 10), resamples=300)
    apart = pooled_correlations(np.tile(x, (10, 1)), np.tile(y, 10), resamples=300)
    for one, ten, free in zip(single, tenfold, apart, strict=True):
        assert one.interval is not None and ten.interval is not None and free.interval is not None
        assert ten.interval == pytest.approx(one.interval, abs=1e-6)
        assert free.interval.high - free.interval.low < 0.6 * (one.interval.high - one.interval.low)
        assert (ten.counts, free.counts) == ({"queries": 40}, {"queries": 1200})


def test_a_metric_is_taken_over_the_rows_it_has() -> None:
    x, y, query = made()
    x[query < 10, 1] = np.nan
    y[-1] = np.nan
    found = pooled_correlations(x, y, query, resamples=100)
    alone = pooled_correlations(x[query >= 10, 1], y[query >= 10], query[query >= 10], resamples=100)
    assert found[1]._replace(n_left_out=0) == alone[0]._replace(n_left_out=0)
    assert (found[1].n, found[1].n_left_out, found[1].counts["queries"]) == (89, 31, 30)
    (gap,) = pooled_gaps(x, y, query, pairs=[(0, 1)], resamples=100)
    first = pooled_correlations(x[query >= 10, 0], y[query >= 10], query[query >= 10], resamples=100)[0]
    assert (gap.n, gap.counts["queries"]) == (89, 30)
    assert gap.value == pytest.approx((first.value or 0.0) - (found[1].value or 0.0))


def test_equal_metrics_do_not_differ_and_better_ones_do() -> None:
    x, y, query = made()
    x[:, 1] = x[:, 0]
    x[:, 2] = np.random.default_rng(9).normal(size=len(y))
    same, better, worse = pooled_gaps(x, y, query, pairs=[(0, 1), (0, 2), (2, 0)], resamples=400)
    assert (same.value, same.p, same.interval) == (0.0, 1.0, None)
    assert better.p is not None and 0 < better.p < 0.01
    assert better.interval is not None and better.interval.low > 0
    assert worse.p == better.p and worse.value == -(better.value or 0)


def test_edges_say_why() -> None:
    constant = pooled_correlations(np.ones(4), np.arange(4.0), resamples=20)[0]
    assert (constant.value, constant.reason, constant.interval) == (None, "the metric is constant", None)
    assert pooled_correlations(np.arange(4.0), np.ones(4), resamples=20)[0].reason == "the outcome is constant"
    assert pooled_correlations([], [], resamples=20)[0].reason == "there are no pairs of values"
    assert pooled_correlations([1.0], [2.0], resamples=20)[0].reason == "there is only one pair of values"
    one = pooled_correlations([1.0, 2.0, 4.0], [1.0, 3.0, 2.0], ["q"] * 3, resamples=20)[0]
    assert (one.value, one.reason, one.interval) == (0.5, FEW_QUERIES, None)
    two = pooled_correlations([1.0, 2.0], [1.0, 2.0], resamples=20)[0]
    assert (two.value, two.counts["queries"]) == (1.0, 2)
    perfect = pooled_correlations(np.arange(5.0), np.arange(5.0), resamples=50)[0]
    assert (perfect.value, perfect.interval, perfect.reason) == (1.0, None, PERFECT)
    (gap,) = pooled_gaps(np.stack([np.ones(4), np.arange(4.0)], axis=1), np.arange(4.0), pairs=[(0, 1)])
    assert (gap.value, gap.p) == (None, None)
    assert gap.reason == "the metric is constant"
    assert pooled_gaps(np.ones((3, 2)), np.ones(3), pairs=[]) == []


def test_a_side_that_differs_in_one_query_gives_no_interval() -> None:
    values, outcome = np.stack([np.eye(40)[0], np.arange(40.0)], axis=1), np.eye(40)[1]
    for found in pooled_correlations(values, outcome, resamples=300):
        assert found.value is not None
        assert (found.interval, found.reason) == (None, ONE_DIFFERS)
    (gap,) = pooled_gaps(np.eye(40)[:, [0, 2]], outcome, pairs=[(0, 1)], resamples=300)
    assert gap.value == pytest.approx(0)
    assert (gap.interval, gap.p, gap.reason) == (None, None, ONE_DIFFERS)


def test_four_queries_prove_nothing() -> None:
    """Two of four queries are easy, and a metric that ignores the answers is higher for both in one case of six."""
    query = np.repeat(np.arange(4), 3)
    values = (query < 2) + np.random.default_rng(0).random(12) / 2
    one = pooled_correlations(values, query < 2, query, resamples=200)[0]
    assert one.value is not None and one.value > 0.8
    assert (one.interval, one.p, one.reason) == (None, None, FEW_QUERIES)


def test_few_positives_prove_little_however_many_queries_have_none() -> None:
    """Three positives among 30 queries: the interval is as long as one with two degrees of freedom."""
    rng = np.random.default_rng(0)
    outcome, values = np.arange(30) < 3, rng.normal(size=(30, 2))
    few, other = pooled_correlations(values, outcome, resamples=300)
    assert few.low is not None and few.high is not None
    assert few.high - few.low > 1
    (gap,) = pooled_gaps(values, outcome, pairs=[(0, 1)], resamples=300)
    assert gap.p is not None and gap.p > 0.05 and other.interval is not None
    half, _ = pooled_correlations(values, np.arange(30) < 15, resamples=300)
    assert half.low is not None and half.high is not None
    assert half.high - half.low < 0.8


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="rows × metrics"):
        pooled_correlations(np.ones((3, 2)), np.ones(4))
    with pytest.raises(ValueError, match="none of pearson"):
        pooled_correlations(np.ones(3), np.ones(3), measure="gamma")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="groups"):
        pooled_correlations(np.ones(3), np.ones(3), ["q"])


def test_p_goes_with_the_interval() -> None:
    """p is below 1 − level just when the interval at that level does not hold 0."""
    rng = np.random.default_rng(3)
    for shift in np.linspace(0, 4, 41):
        draws = rng.normal(shift, 1, size=4000)
        p, span = expanded_p(draws, 25), expanded_interval(draws, 25, 0.95)
        assert p is not None and span is not None
        if not 0.045 < p < 0.055:
            assert (p < 0.05) == (span.low > 0)
    assert expanded_p(np.full(100, 0.0), 30) == 1.0
    assert expanded_p(np.array([np.nan]), 30) is None
    assert expanded_p(np.ones(9), 1) is None
    smallest = expanded_p(np.ones(999), 1000)
    assert smallest is not None and 0 < smallest < 0.003
