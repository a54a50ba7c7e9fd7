"""Correlations within queries: against SciPy query by query, what is left out, and differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragworth.stats import within_query as room
from ragworth.stats.bootstrap import mean_intervals
from ragworth.stats.correlation import MEASURES, Measure
from ragworth.stats.paired import bootstrap_test
from ragworth.stats.within_query import (
    FEW,
    FLAT_BOTH,
    FLAT_METRIC,
    FLAT_OUTCOME,
    INFINITE,
    NO_QUERY,
    ONE_QUERY,
    REASONS,
    query_correlations,
    within_query_correlations,
    within_query_gaps,
)
from tests.strategies import examples

rows = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 5)), min_size=1, max_size=50)


@pytest.mark.parametrize("measure", MEASURES)
@examples(60)
@given(rows)
def test_equal_to_one_query_at_a_time(measure: Measure, values: list[tuple[int, int, int]]) -> None:
    x, y, q = (np.array(column, dtype=float) for column in zip(*values, strict=True))
    x[x == 3] = np.nan
    found = query_correlations(np.stack([x, y], axis=1), y, q, measure=measure)
    for place, query in enumerate(np.unique(q)):
        mine = (q == query) & ~np.isnan(x)
        np.testing.assert_allclose(found.values[place, 0], MEASURES[measure](x[mine], y[mine]), atol=1e-12)
        assert found.rows[place, 0] == mine.sum()
        assert (REASONS[found.why[place, 0]] == "") == (not np.isnan(found.values[place, 0]))


def test_queries_left_out_are_counted_with_reasons() -> None:
    query = ["a"] * 3 + ["b"] * 3 + ["c"] * 3 + ["d"] * 3 + ["e"] * 3 + ["f"]
    x = [1, 2, 3, 1, 1, 1, 1, 2, 3, 0, 0, 0, np.nan, np.nan, 1, 2]
    y = [1, 3, 2, 1, 2, 3, 5, 5, 5, 1, 1, 1, 1, 2, 3, 4]
    (found,) = within_query_correlations(x, y, query)
    # Only query a: ranks 1 2 3 against 1 3 2, ρ = 1 − 6·2/(3·8) = 0.5.
    assert found.value == pytest.approx(0.5)
    assert found.reasons == {FEW: 2, FLAT_METRIC: 1, FLAT_OUTCOME: 1, FLAT_BOTH: 1} and found.n_left_out == 5
    assert (found.n, found.counts, found.interval, found.reason) == (1, {"contexts": 3}, None, ONE_QUERY)
    (nothing,) = within_query_correlations([1.0, 1.0], [1.0, 2.0], ["a", "a"])
    assert (nothing.value, nothing.reason, nothing.reasons) == (None, NO_QUERY, {FLAT_METRIC: 1})
    (empty,) = within_query_correlations([], [], [])
    assert (empty.value, empty.n, empty.reasons) == (None, 0, {})
    (endless,) = within_query_correlations([1.0, np.inf, 2.0], [1.0, 2.0, 3.0], ["a"] * 3, measure="pearson")
    assert endless.reasons == {INFINITE: 1}


def test_mean_and_interval_are_those_of_a_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    query = np.repeat(np.arange(30), 6)
    y = rng.integers(0, 3, 180).astype(float)
    x = y[:, None] + rng.normal(size=(180, 2)).round()
    for measure in MEASURES:
        each = query_correlations(x, y, query, measure=measure)  # type: ignore[arg-type]
        found = within_query_correlations(x, y, query, measure=measure, resamples=300, seed=2)  # type: ignore[arg-type]
        ends = mean_intervals(each.values, resamples=300, seed=2, bounds=(-1.0, 1.0))
        for place, one in enumerate(found):
            assert one.value == pytest.approx(np.nanmean(each.values[:, place]))
            assert one.interval == (ends.low[place], ends.high[place])
        (gap,) = within_query_gaps(x, y, query, pairs=[(0, 1)], measure=measure, resamples=300, seed=2)  # type: ignore[arg-type]
        both = (each.values[:, 0] - each.values[:, 1])[~np.isnan(each.values).any(axis=1)]
        assert gap.value == pytest.approx(both.mean())
        assert gap.p is not None and 0 < gap.p <= 1
        if len(both) == 30:
            assert gap.p == pytest.approx(bootstrap_test(both, resamples=300, seed=2))
        monkeypatch.setattr(room, "CHUNK", 40)
        np.testing.assert_array_equal(query_correlations(x, y, query, measure=measure).values, each.values)  # type: ignore[arg-type]


def test_differences_at_the_edges() -> None:
    y = np.tile([0.0, 1.0, 2.0], 4)
    query = np.repeat(np.arange(4), 3)
    x = np.stack([y, y, -y, np.zeros(12)], axis=1)
    same, opposite, none = within_query_gaps(x, y, query, pairs=[(0, 1), (0, 2), (0, 3)], resamples=100)
    assert (same.value, same.p, same.n) == (0.0, 1.0, 4)
    # Two apart in all four queries: only the signs can speak, 2/2⁴.
    assert opposite.value == 2.0
    assert opposite.p == pytest.approx(2 / 16)
    assert (none.value, none.reason, none.p, none.n) == (None, NO_QUERY, None, 0)
    (single,) = within_query_gaps(x[:3], y[:3], query[:3], pairs=[(0, 2)])
    assert (single.value, single.p, single.interval, single.reason) == (2.0, None, None, ONE_QUERY)
    assert within_query_gaps(x, y, query, pairs=[]) == []
