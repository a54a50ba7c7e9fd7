"""Paired tests against SciPy, by exact enumeration, and in simulation."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ragworth.stats.bootstrap import FEW_CLUSTERS
from ragworth.stats.estimate import Estimate, Resampling
from ragworth.stats.paired import (
    NOT_ABOVE_0,
    NOT_SURELY_ABOVE_0,
    NOTHING,
    SINGLE,
    TESTS,
    Test,
    bootstrap_test,
    bootstrap_tests,
    compare_paired,
    holm,
    randomisation_test,
    ratio_of_means,
    sign_test,
    t_test,
    wilcoxon_test,
)
from ragworth.stats.range_intervals import TOO_FEW
from tests.strategies import examples

SAMPLE = np.array([0.3, -0.1, 0.2, 0.0, 0.25, 0.4, -0.05, 0.15, 0.1, 0.0, 0.35, -0.2])


def test_t_equals_scipy() -> None:
    assert t_test(SAMPLE) == pytest.approx(stats.ttest_1samp(SAMPLE, 0).pvalue, rel=1e-12)


def test_wilcoxon_equals_scipy() -> None:
    distinct = np.array([0.1, -0.21, 0.33, 0.42, -0.05])
    assert wilcoxon_test(distinct) == pytest.approx(stats.wilcoxon(distinct, method="exact").pvalue, rel=1e-12)
    many = np.random.default_rng(1).normal(0.2, 1, size=50)
    assert wilcoxon_test(many) == pytest.approx(stats.wilcoxon(many, method="exact").pvalue, rel=1e-9)
    for sample in ([*many, 0.7], [*many.round(1), *many.round(1)]):
        more = np.array(sample, dtype=np.float64)
        moved = more[more != 0]
        assert len(moved) > 50
        assert wilcoxon_test(more) == pytest.approx(stats.wilcoxon(moved, method="approx").pvalue, rel=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_wilcoxon_of_few_ties_is_that_of_all_ways_to_flip_the_signs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d = rng.choice([-1.0, -0.5, 0.0, 0.5, 1.0], size=4 + seed)
    moved = d[d != 0]
    ranks = stats.rankdata(np.abs(moved))
    found = stats.permutation_test(
        (np.sign(moved),),
        lambda signs, axis: np.abs((signs * ranks).sum(axis=axis)),
        permutation_type="samples",
        n_resamples=np.inf,
        alternative="greater",
        vectorized=True,
    )
    assert wilcoxon_test(d) == pytest.approx(found.pvalue, rel=1e-12)


def test_wilcoxon_by_hand() -> None:
    assert wilcoxon_test(np.ones(4)) == 0.125  # two of 16 ways; the normal approximation has 0.0455
    assert wilcoxon_test(np.array([1.0, 1.0, 1.0, -1.0])) == pytest.approx(10 / 16)
    # Ranks 1.5, 1.5, 3: those above 0 add up to 0, 1.5, 1.5, 3, 3, 4.5, 4.5 or 6, on average to 3.
    assert wilcoxon_test(np.array([0.5, 0.5, 1.0])) == 0.25
    assert wilcoxon_test(np.array([0.5, -0.5, 1.0])) == pytest.approx(6 / 8)


def test_rounding_parts_no_ties() -> None:
    noisy = np.array([0.3 - 0.1, 0.2, -(0.3 - 0.1), 0.5 - 0.3, 0.9 - 0.7, 1.2 - 1.0])
    assert len(set(np.abs(noisy))) > 1
    assert wilcoxon_test(noisy) == wilcoxon_test(np.array([0.2, 0.2, -0.2, 0.2, 0.2, 0.2]))
    assert wilcoxon_test(np.array([1e-15, 0.1 + 0.2 - 0.3])) == 1.0


def test_sign_equals_scipy() -> None:
    # 7 up, 3 down, 2 unchanged and left out.
    assert sign_test(SAMPLE) == pytest.approx(stats.binomtest(3, 10).pvalue, rel=1e-12)


def test_randomisation_is_exact_when_all_flips_can_be_tried() -> None:
    d = np.array([0.5, 0.25, -0.125, 0.75])
    sums = [abs(sum(s * x for s, x in zip(signs, d, strict=True))) for signs in product((1, -1), repeat=4)]
    exact = sum(x >= abs(d.sum()) - 1e-12 for x in sums) / 16
    assert randomisation_test(d) == pytest.approx(exact)


def test_randomisation_by_sampling_agrees_with_the_exact_value() -> None:
    d = np.random.default_rng(4).normal(0.3, 1, size=12)
    exact = randomisation_test(d, resamples=2**12)
    assert randomisation_test(d, resamples=4000, seed=1) == pytest.approx(exact, abs=0.02)
    assert randomisation_test(d, resamples=4000, seed=1) != exact


def test_many_resamples_are_drawn_only_as_far_as_needed() -> None:
    rng = np.random.default_rng(2)
    equal, clear = rng.normal(0.1, 1, 60), rng.normal(2, 1, 60)
    few = randomisation_test(equal, resamples=100_000)
    assert randomisation_test(equal, resamples=10**9) == pytest.approx(few, rel=0.1)
    assert randomisation_test(clear, resamples=10**9) == pytest.approx(1e-9)


@pytest.mark.parametrize("name", TESTS)
def test_no_difference_at_all_gives_1(name: str) -> None:
    assert TESTS[name](np.zeros(20)) == 1.0
    assert TESTS[name](np.array([])) == 1.0


@pytest.mark.parametrize("name", TESTS)
def test_missing_differences_are_left_out(name: str) -> None:
    with_gaps = np.insert(SAMPLE, [0, 5, 12], np.nan)
    found = TESTS[name](with_gaps, resamples=4000, seed=0)
    assert found == pytest.approx(TESTS[name](SAMPLE, resamples=4000, seed=0), abs=0.02 if name == "bootstrap" else 0)


@pytest.mark.parametrize("name", TESTS)
def test_p_is_never_0(name: str) -> None:
    for d in (np.full(2000, 0.5), np.random.default_rng(0).normal(50, 1, size=3000)):
        assert 0 < TESTS[name](d, resamples=200, seed=0) < 0.01


@pytest.mark.parametrize("name", TESTS)
@examples(30)
@given(st.lists(st.sampled_from([-0.5, -0.25, 0.0, 0.25, 0.5, 1.0]), min_size=0, max_size=40))
def test_p_is_a_probability_and_does_not_care_for_the_sign(name: str, values: list[float]) -> None:
    d = np.array(values)
    p, mirrored = (TESTS[name](x, resamples=300, seed=5) for x in (d, -d))
    assert 0 < p <= 1
    assert p == pytest.approx(mirrored, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["randomisation", "t", "wilcoxon", "sign", "bootstrap"])
@pytest.mark.parametrize("n", [30, 100])
def test_true_nulls_are_rejected_as_often_as_they_should_be(name: str, n: int) -> None:
    rng = np.random.default_rng(7)
    # Differences of two systems of equal worth: symmetric, many of them exactly 0.
    trials = 600
    p = [TESTS[name](np.round(rng.normal(size=n), 1), resamples=400, seed=i) for i in range(trials)]
    rejected = float(np.mean(np.array(p) < 0.05))
    assert 0.02 <= rejected <= 0.075  # 5 % ± three standard errors; the sign test is discrete and conservative


@pytest.mark.slow
def test_bounded_holds_its_level_where_the_others_do_not() -> None:
    """One system is right on 10 % of the queries, the other scores about 0.1 on all of them."""
    rng = np.random.default_rng(3)
    drawn = [(rng.random(20) < 0.1) - rng.beta(2, 18, size=20) for _ in range(400)]
    rejected = {
        name: np.mean([TESTS[name](d, resamples=400, seed=i) < 0.05 for i, d in enumerate(drawn)])
        for name in ("randomisation", "t", "bootstrap", "bounded")
    }
    assert min(rejected["randomisation"], rejected["t"], rejected["bootstrap"]) > 0.08
    assert rejected["bounded"] <= 0.05
    shifted = [np.clip(rng.beta(0.5, 1, size=50) - rng.beta(0.5, 1, size=50) + 0.25, -1, 1) for _ in range(100)]
    assert np.mean([TESTS["bounded"](d, resamples=400, seed=i) < 0.05 for i, d in enumerate(shifted)]) > 0.8


def test_bounded_needs_a_range() -> None:
    with pytest.raises(ValueError, match="range"):
        compare_paired([1.0, 2.0], [2.0, 1.0], "bounded")
    with pytest.raises(ValueError, match="range"):
        compare_paired([1.0, 2.0], [2.0, 1.0], "bounded", bounds=(0.0, np.inf))


def test_equal_differences_have_an_interval_with_a_length() -> None:
    a = np.full(20, 0.25)
    for b in (a, a + 0.5):
        bare, known = compare_paired(a, b), compare_paired(a, b, bounds=(0.0, 1.0))
        assert (bare.interval, bare.reason) == (None, TOO_FEW)
        assert known.interval is not None and known.reason == ""
        assert known.interval.low < b[0] - a[0] < known.interval.high


@pytest.mark.slow
@pytest.mark.parametrize("name", ["randomisation", "t", "wilcoxon", "bootstrap"])
def test_real_differences_are_found(name: str) -> None:
    rng = np.random.default_rng(7)
    found = [TESTS[name](rng.normal(0.5, 1, size=50), resamples=400, seed=i) < 0.05 for i in range(100)]
    assert np.mean(found) > 0.8


def test_bootstrap_is_near_t_for_normal_data() -> None:
    d = np.random.default_rng(3).normal(0.2, 1, size=200)
    assert bootstrap_test(d, seed=1) == pytest.approx(t_test(d), abs=0.01)


@pytest.mark.parametrize("name", ["t", "bootstrap"])
def test_equal_differences_say_no_more_than_their_signs(name: str) -> None:
    # Rounding must not make a spread of them, nor its absence certainty: two queries prove nothing.
    for d, n in ((0.2, 20), (0.1, 3), (0.3, 10), (1.0, 2)):
        p = TESTS[name](np.full(n, d), resamples=10_000, seed=0)
        assert p == pytest.approx(max(2.0 ** (1 - n), 1 / 10_001), rel=0.01), (d, n)


def test_holm_by_hand() -> None:
    # Sorted: .01 × 4 = .04; .02 × 3 = .06; .03 × 2 = .06; .04 × 1 = .04 → .06 (never below an earlier one).
    np.testing.assert_allclose(holm(np.array([0.04, 0.01, 0.03, 0.02])), [0.06, 0.04, 0.06, 0.06])


def test_holm_caps_at_1_and_passes_over_missing() -> None:
    result = holm(np.array([0.9, np.nan, 0.6]))
    np.testing.assert_allclose(result[[0, 2]], [1.0, 1.0])
    assert np.isnan(result[1])


@pytest.mark.parametrize("rows", [4, 12, 1000])
def test_the_seed_decides_and_chunks_do_not(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    d = np.random.default_rng(2).normal(0.2, 1, size=31)
    once = [TESTS[name](d, resamples=333, seed=3) for name in ("randomisation", "bootstrap")]
    monkeypatch.setattr("ragworth.stats.paired.CHUNK", rows * len(d))
    monkeypatch.setattr("ragworth.stats.bootstrap.CHUNK", rows * len(d))
    assert [TESTS[name](d, resamples=333, seed=3) for name in ("randomisation", "bootstrap")] == once
    assert randomisation_test(d, resamples=333, seed=4) != once[0]


def test_many_bootstrap_tests_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    d = rng.normal(0.3, 1, size=(40, 6))
    d[:, 1], d[:, 2], d[1:, 3], d[:, 4] = 0.0, 0.25, np.nan, np.nan
    monkeypatch.setattr("ragworth.stats.paired.COLUMNS", 1)
    found = bootstrap_tests(d, resamples=500, seed=1)
    assert found[[1, 3, 4]].tolist() == [1.0, 1.0, 1.0]
    for column in (0, 2, 5):
        assert found[column] == bootstrap_test(d[:, column], resamples=500, seed=1)
    # A query that one comparison lacks does not count in it.
    d[::2, 0] = np.nan
    assert bootstrap_tests(d, resamples=4000, seed=1)[0] == pytest.approx(
        bootstrap_test(d[1::2, 0], resamples=4000), abs=0.03
    )


@pytest.mark.parametrize("test", TESTS)
def test_two_sides_with_missing_values(test: Test) -> None:
    a = np.array([0.1, 0.5, np.nan, 0.2, 0.9, 0.4])
    b = np.array([0.3, 0.5, 0.7, 0.1, np.nan, 0.8])
    found = compare_paired(a, b, test, resamples=500, bounds=(0.0, 1.0))
    # Differences 0.2, 0, −0.1, 0.4.
    assert found.value == pytest.approx(0.125)
    assert found.counts == {"wins": 2, "ties": 1, "losses": 1}
    assert (found.n, found.n_left_out, found.reason) == (4, 2, "")
    assert found.p == TESTS[test](np.array([0.3 - 0.1, 0.0, 0.1 - 0.2, 0.8 - 0.4]), resamples=500, seed=0)
    assert found.interval is not None and found.interval.low < 0 and found.interval.high > 0.4  # Student's, of four


def test_two_sides_at_the_edges() -> None:
    none = {"wins": 0, "ties": 0, "losses": 0}
    assert compare_paired([], []) == Estimate(reason=NOTHING, counts=none)
    assert compare_paired([np.nan, 1.0], [1.0, np.nan]) == Estimate(n_left_out=2, reason=NOTHING, counts=none)
    assert compare_paired([1.0], [2.0]) == Estimate(1.0, p=1.0, n=1, reason=SINGLE, counts={**none, "wins": 1})
    assert compare_paired([0.3], [0.1 + 0.2]).counts["ties"] == 1
    with pytest.raises(ValueError, match="none of randomisation"):
        compare_paired([1.0], [1.0], "z")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="against"):
        compare_paired([1.0], [1.0, 2.0])


def test_a_ratio_of_means_and_the_paired_t_test_agree() -> None:
    draw = np.random.default_rng(3)
    second = draw.uniform(0.2, 0.8, 25)
    first = 1.3 * second + draw.normal(0, 0.1, 25)
    found = ratio_of_means(np.append(first, np.nan), np.append(second, 0.5), Resampling())
    assert found.value == pytest.approx(first.mean() / second.mean() - 1)
    assert found.p == pytest.approx(stats.ttest_rel(first, second).pvalue) and (found.n, found.n_left_out) == (25, 1)
    for end in (found.low, found.high):  # the ratios that the test just doesn't reject
        assert end is not None and stats.ttest_rel(first, (1 + end) * second).pvalue == pytest.approx(0.05)
    pairs = np.repeat(np.arange(25), 2)
    twice = ratio_of_means(np.repeat(first, 2), np.repeat(second, 2), Resampling(), clusters=pairs)
    assert twice[:4] == pytest.approx(found[:4]) and twice.clusters == 25


def test_a_ratio_of_means_that_cannot_be_had() -> None:
    some, plan = np.array([0.1, 0.5, 0.3, 0.2, 0.9, 0.6]), Resampling()
    assert ratio_of_means(some, 0 * some, plan).reason == NOT_ABOVE_0
    assert ratio_of_means(some[:0], some[:0], plan).reason == NOTHING
    one = ratio_of_means(some[:1], some[1:2], plan)
    assert one.value == pytest.approx(-0.8) and (one.interval, one.reason) == (None, SINGLE)
    far = ratio_of_means(some, np.array([5.0, -4.0, 3.0, -4.0, 2.0, 1.0]), plan)
    assert (far.interval, far.reason) == (None, NOT_SURELY_ABOVE_0)
    assert ratio_of_means(some, some[::-1].copy(), plan, clusters=[0, 0, 1, 1, 2, 2]).reason == FEW_CLUSTERS


def test_a_ratio_of_means_is_not_biased_by_a_noisy_denominator() -> None:
    """Two answers of a model that ignores its context: of a query as hard for both, but different by chance."""
    draw, rejected, biased, trials = np.random.default_rng(0), 0, 0, 300
    for _ in range(trials):
        level = draw.uniform(0.2, 0.6, 80)
        first, second = (level * draw.lognormal(0, 0.5, 80) for _ in range(2))
        found = ratio_of_means(first, second, Resampling(resamples=100))
        assert found.p is not None and found.low is not None and found.high is not None
        assert (found.low <= 0 <= found.high) == (found.p >= 0.05)
        rejected += found.p < 0.05
        ratios = first / second - 1
        biased += ratios.mean() > 0 and stats.ttest_1samp(ratios, 0).pvalue < 0.05
    # The test errs as often as it should: in 5 %, give or take three standard errors of so many trials.
    assert rejected <= 0.05 * trials + 3 * (0.05 * 0.95 * trials) ** 0.5
    assert biased > 0.5 * trials  # the mean of the ratios is "significantly" above 0


def test_holm_equals_statsmodels() -> None:
    other = pytest.importorskip("statsmodels.stats.multitest")
    p = np.random.default_rng(0).random(12) ** 3
    np.testing.assert_allclose(holm(p), other.multipletests(p, method="holm")[1])
