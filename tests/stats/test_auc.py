"""AUC and win rates: by hand, by comparing all pairs, and in simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ragworth.stats.auc import auc, auc_interval, pairs_within, win_rate
from ragworth.stats.range_intervals import wilson_interval
from tests.strategies import examples

labelled = st.lists(
    st.tuples(st.sampled_from([-1.0, 0.0, 0.5, 0.5, 2.0]), st.booleans(), st.integers(0, 3)), min_size=0, max_size=30
)
Rows = list[tuple[float, bool, int]]


def all_pairs(rows: Rows) -> float:
    """Every positive against every negative."""
    wins = [
        1.0 if x > y else 0.5 if x == y else 0.0 for x, good, _ in rows if good for y, other, _ in rows if not other
    ]
    return float(np.mean(wins)) if wins else float("nan")


def columns(rows: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return (
        np.array([r[0] for r in rows]),
        np.array([r[1] for r in rows], dtype=bool),
        np.array([r[2] for r in rows], dtype=int),
    )


def test_auc_by_hand() -> None:
    # 3 beats 1 and 2; 2 beats 1 and ties with 2: (1 + 1 + 1 + 0.5)/4.
    assert auc([3.0, 2.0, 2.0, 1.0], [1, 1, 0, 0]) == 0.875
    assert auc([1.0, 2.0], [True, False]) == 0.0
    assert auc([5.0, 5.0], [1, 0]) == 0.5


@examples(150)
@given(labelled)
def test_auc_is_the_share_of_pairs_won(rows: Rows) -> None:
    x, y, _ = columns(rows)
    np.testing.assert_allclose(auc(x, y), all_pairs(rows), atol=1e-12)
    np.testing.assert_allclose(auc(-x, ~y), all_pairs(rows), atol=1e-12)
    if y.any() and not y.all():
        np.testing.assert_allclose(auc(np.exp(x), y), auc(x, y))
        statistic = stats.mannwhitneyu(x[y], x[~y]).statistic
        assert auc(x, y) == pytest.approx(statistic / (y.sum() * (~y).sum()))


def test_auc_leaves_out_what_has_no_value() -> None:
    assert auc([3.0, np.nan, 1.0], [1, 1, 0]) == 1.0
    assert np.isnan(auc([3.0, np.nan], [1, 0]))
    found = auc_interval([3.0, np.nan, 1.0, 0.0], [1, 1, 0, 0], ["q", "q", "r", "s"])
    assert (found.value, found.positives, found.negatives, found.missing, found.groups) == (1.0, 1, 2, 1, 3)


def test_no_auc_without_both_kinds() -> None:
    for values, labels, reason in (
        ([1.0, 2.0], [1, 1], "there is no negative"),
        ([1.0], [0], "there is no positive"),
        ([], [], "nothing has a value"),
        ([np.nan], [1], "nothing has a value"),
    ):
        found = auc_interval(values, labels)
        assert (found.value, found.reason, found.interval) == (None, reason, None)


@examples(25)
@given(labelled)
def test_weighted_resamples_equal_repeated_rows(rows: Rows) -> None:
    """The draws behind an interval against AUCs of rows that are really repeated."""
    from ragworth.stats.auc import _weighted_auc
    from ragworth.stats.resampling import resample_counts

    x, y, group = columns(rows)
    if not y.any() or y.all():
        return
    order = np.argsort(x, kind="stable")
    starts = np.flatnonzero(np.append(True, np.diff(x[order]) > 0))
    (counts,) = resample_counts(4, 8, seed=1, rows=8)
    drawn = _weighted_auc(counts[:, group[order]], y[order], starts)
    for times, value in zip(counts.astype(int), drawn, strict=True):
        repeated = [row for row in rows for _ in range(times[row[2]])]
        np.testing.assert_allclose(value, all_pairs(repeated), atol=1e-12)


@pytest.mark.slow
def test_intervals_of_auc_cover_as_often_as_they_say() -> None:
    """Values of a query rise and fall together; the AUC over all queries of such values is Φ(1/√(2·(1 + 0.5)))."""
    rng = np.random.default_rng(2)
    truth = float(stats.norm.cdf(1 / np.sqrt(2 * 1.5)))
    group = np.repeat(np.arange(40), 6)
    label = np.tile([1, 1, 0, 0, 0, 0], 40)
    trials, covered = 200, 0
    for trial in range(trials):
        level = rng.normal(scale=np.sqrt(0.5), size=40)[group]
        interval = auc_interval(label + level + rng.normal(size=240), label, group, resamples=300, seed=trial).interval
        assert interval is not None
        covered += interval.low <= truth <= interval.high
    assert 0.9 <= covered / trials <= 0.985


def test_groups_are_drawn_whole_and_the_seed_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    x, y, q = rng.normal(size=60), np.arange(60) % 3 == 0, np.arange(60) // 6
    once = auc_interval(x, y, q, resamples=300)
    fivefold = auc_interval(np.tile(x, 5), np.tile(y, 5), np.tile(q, 5), resamples=300)
    assert once.interval is not None
    assert fivefold.interval == pytest.approx(once.interval)
    assert once.interval.low <= auc(x, y) <= once.interval.high
    many = np.arange(402) // 2  # more groups than the jackknife is used for
    assert auc_interval(many % 7, many % 3 == 0, many, resamples=300, seed=1) != auc_interval(
        many % 7, many % 3 == 0, many, resamples=300
    )
    monkeypatch.setattr("ragworth.stats.auc.CHUNK", 100)
    assert auc_interval(x, y, q, resamples=300).interval == pytest.approx(once.interval)
    assert auc_interval(x, y, np.zeros(60), resamples=50).interval is None


def test_win_rate_by_hand() -> None:
    # Query a: won and tied, 0.75; b: lost, 0; c: won, 1. Mean 1.75/3. Two queries won, one lost: p = 1.
    found = win_rate([(2, 1), (1, 1), (0, 3), (5, 4)], ["a", "a", "b", "c"])
    assert found.value == pytest.approx(1.75 / 3)
    assert found.counts == {"wins": 2, "ties": 1, "losses": 1}
    assert (found.n, found.p) == (3, 1.0)


def test_strict_wins_give_nothing_for_ties() -> None:
    # Query a: won and tied, 0.5; b: lost, 0; c: won, 1; d: tied, 0. The sign test sees two won and one lost.
    pairs, queries = [(2, 1), (1, 1), (0, 3), (5, 4), (7, 7)], ["a", "a", "b", "c", "d"]
    found, half = win_rate(pairs, queries, strict=True), win_rate(pairs, queries)
    assert found.value == pytest.approx(1.5 / 4) and half.value == pytest.approx(2.25 / 4)
    assert found.counts == {"wins": 2, "ties": 2, "losses": 1} and found.n == 4
    assert found.p == pytest.approx(half.p)
    assert found.interval is not None and found.interval.low <= 1.5 / 4 <= found.interval.high


def test_sign_test_over_queries_not_over_pairs() -> None:
    # Six queries, all won: 2/2⁶, however many pairs each has.
    for copies in (1, 10):
        pairs = [(1.0, 0.0)] * 6 * copies
        assert win_rate(pairs, np.arange(6 * copies) % 6).p == pytest.approx(2 / 64)


def test_pairs_without_a_value_are_left_out_and_counted() -> None:
    found = win_rate([(1.0, np.nan), (2.0, 1.0)])
    assert (found.value, found.n_left_out, found.n, found.interval) == (1.0, 1, 1, None)
    nothing = win_rate(np.empty((0, 2)))
    assert (nothing.value, nothing.p, nothing.n) == (None, None, 0)
    assert (nothing.reason, found.reason) == ("there are no pairs of values", "there is only one query, so no interval")
    assert win_rate([(np.inf, np.inf), (-np.inf, 0.0)]).value == 0.25


@examples(80)
@given(labelled)
def test_pairs_within_queries(rows: Rows) -> None:
    x, y, query = columns(rows)
    pairs, whose = pairs_within(x, y, query)
    by_hand = [all_pairs([r for r in rows if r[2] == q]) for q in range(4)]
    known = [rate for rate in by_hand if not np.isnan(rate)]
    found = win_rate(pairs, whose)
    assert found.n == len(known)
    assert found.value == (pytest.approx(np.mean(known)) if known else None)
    assert sum(found.counts.values()) == len(pairs)
    swapped = win_rate(pairs[:, ::-1], whose)
    assert (swapped.counts["wins"], swapped.counts["losses"]) == (found.counts["losses"], found.counts["wins"])
    assert swapped.p == found.p


def test_what_cannot_be_ranked_is_refused() -> None:
    with pytest.raises(ValueError, match="labels"):
        auc([1.0, 2.0], [1])
    with pytest.raises(ValueError, match="0 or 1"):
        auc([1.0, 2.0], [1, 2])
    with pytest.raises(ValueError, match="groups"):
        auc_interval([1.0, 2.0], [1, 0], ["q"])


def test_auc_equals_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(0)
    y = rng.random(200) < 0.3
    x = np.round(y + rng.normal(size=200), 1)
    assert auc(x, y) == pytest.approx(metrics.roc_auc_score(y, x), abs=1e-12)


@pytest.mark.parametrize("right", [True, False])
def test_values_that_are_all_on_one_side_have_an_interval(right: bool) -> None:
    """Ten of ten queries told apart prove less than a hundred: as for shares, the interval never has length 0."""
    for n in (2, 10, 100):
        labels = np.tile([1, 0], n)
        found = auc_interval(labels if right else 1 - labels, labels, np.repeat(np.arange(n), 2), resamples=200)
        low, high = wilson_interval(n if right else 0, n, 0.95)
        assert found.value == float(right)
        assert found.interval == pytest.approx((low, high))


def test_equal_values_have_an_interval_around_one_half() -> None:
    for n in (3, 5, 20):
        found = auc_interval(np.zeros(2 * n), np.tile([1, 0], n), np.repeat(np.arange(n), 2), resamples=200)
        assert found.interval is not None
        assert 0 <= found.interval.low < 0.5 and found.interval.low == pytest.approx(1 - found.interval.high, abs=0.01)


def test_few_positives_prove_little_however_many_negatives_there_are() -> None:
    """One positive above 90 of 99 negatives may be above most of them by chance."""
    values, labels = np.arange(100), np.arange(100) == 90
    found = auc_interval(values, labels, resamples=200)
    assert found.value == pytest.approx(90 / 99)
    assert found.interval == pytest.approx((wilson_interval(0, 1, 0.95)[0], 1.0))
    assert found.interval is not None and found.interval.low < 0.5
    two = auc_interval(values, (values == 90) | (values == 80), resamples=200)
    assert two.interval is not None and two.interval.low < 0.5 < two.interval.high


def test_an_interval_of_an_auc_near_1_reaches_further_down_than_up() -> None:
    values, labels = np.array([9, 8, 7, 6, 3, 5, 4, 2, 1, 0]), np.arange(10) < 5
    found = auc_interval(values, labels, resamples=200)
    assert found.value == pytest.approx(0.92) and found.interval is not None
    assert found.interval.high < 1 and 0.92 - found.interval.low > found.interval.high - 0.92
