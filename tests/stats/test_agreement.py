"""Cohen's κ: by hand, against a plain second implementation, and in simulation."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragworth.stats.agreement import CONSTANT, NOTHING, KappaWeights, cohen_kappa
from tests.strategies import examples

WEIGHTS: tuple[KappaWeights | None, ...] = (None, "linear", "quadratic")
grades = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=25)


def plain_kappa(pairs: list[tuple[int, int]], weights: KappaWeights | None) -> float | None:
    """From the definition: every item of one judge against every item of the other is what chance would give."""

    def cost(a: int, b: int) -> float:
        if weights is None:
            return float(a != b)
        return float(abs(a - b) ** (1 if weights == "linear" else 2))

    seen = sum(cost(a, b) for a, b in pairs) / len(pairs)
    chance = sum(cost(a, b) for (a, _), (_, b) in product(pairs, pairs)) / len(pairs) ** 2
    return None if chance == 0 else 1 - seen / chance


def test_by_hand() -> None:
    # 20 both yes, 15 both no, 5 + 10 differ: 0.7 agree; by chance 0.5·0.6 + 0.5·0.4 = 0.5; (0.7 − 0.5)/(1 − 0.5).
    a = ["yes"] * 25 + ["no"] * 25
    b = ["yes"] * 20 + ["no"] * 5 + ["yes"] * 10 + ["no"] * 15
    found = cohen_kappa(a, b)
    assert found.value == pytest.approx(0.4)
    assert (found.reason, found.observed, found.n, found.missing, found.interval) == ("", 0.7, 50, 0, None)


@pytest.mark.parametrize(
    ("weights", "value"),
    [
        # Pairs 0–0, 1–2, 2–2. Seen: one of three differs; chance: 1 − (1·1 + 1·0 + 1·2)/9 = 6/9.
        (None, 1 - (1 / 3) / (6 / 9)),
        # Seen 1/3. Chance: 0 against 0, 2, 2: 4; 1 against them: 3; 2 against them: 2; 9/9.
        ("linear", 1 - (1 / 3) / (9 / 9)),
        # Chance: 8 + 3 + 4 = 15/9.
        ("quadratic", 1 - (1 / 3) / (15 / 9)),
    ],
)
def test_weights_by_hand(weights: KappaWeights | None, value: float) -> None:
    assert cohen_kappa([0, 1, 2], [0, 2, 2], weights=weights).value == pytest.approx(value)


@pytest.mark.parametrize("weights", WEIGHTS)
@examples(80)
@given(grades)
def test_equal_to_the_definition(weights: KappaWeights | None, pairs: list[tuple[int, int]]) -> None:
    a, b = zip(*pairs, strict=True)
    found, wanted = cohen_kappa(a, b, weights=weights), plain_kappa(pairs, weights)
    assert found.value == (None if wanted is None else pytest.approx(wanted, abs=1e-12))
    assert (found.reason == "") == (found.value is not None)
    assert found.observed == pytest.approx(sum(x == y for x, y in pairs) / len(pairs))


@pytest.mark.parametrize("weights", WEIGHTS)
@examples(40)
@given(grades)
def test_judges_can_be_swapped_and_items_come_in_any_order(
    weights: KappaWeights | None, pairs: list[tuple[int, int]]
) -> None:
    a, b = zip(*pairs, strict=True)
    once = cohen_kappa(a, b, weights=weights).value
    assert cohen_kappa(b, a, weights=weights).value == (once if once is None else pytest.approx(once))
    assert cohen_kappa(a[::-1], b[::-1], weights=weights).value == (once if once is None else pytest.approx(once))
    assert once is None or once <= 1


def test_a_grade_nobody_gave_does_not_change_the_distance() -> None:
    # 0 and 5 are five apart, although nothing lies between: 10 of 16 steps by chance, 0 to 1 and 5 to 4 seen.
    wide = cohen_kappa([0, 5, 0, 5], [0, 5, 1, 4], weights="linear")
    narrow = cohen_kappa([0, 1, 0, 1], [0, 1, 1, 0], weights="linear")
    assert wide.value == pytest.approx(1 - (2 / 4) / (40 / 16))
    assert narrow.value == pytest.approx(0.0)


def test_no_kappa_where_chance_cannot_disagree() -> None:
    found = cohen_kappa([1, 1, 1], [1, 1, 1], resamples=100)
    assert (found.value, found.reason, found.observed, found.n) == (None, CONSTANT, 1.0, 3)
    # One judge who always says the same agrees as often as chance would have it.
    assert cohen_kappa([1, 1, 1], [1, 0, 1]).value == pytest.approx(0.0)
    assert cohen_kappa([1, 1], [0, 0]).value == pytest.approx(0.0)


def test_missing_labels_are_left_out_and_counted() -> None:
    for a, b in (
        ([1.0, np.nan, 0.0, 1.0], [1.0, 1.0, 0.0, np.nan]),
        ([1, None, 0, 1], [1, 1, 0, None]),
        (["x", None, "y", "x"], ["x", "x", "y", None]),
    ):
        found = cohen_kappa(a, b)
        assert (found.value, found.n, found.missing) == (1.0, 2, 2)
    nothing = cohen_kappa([np.nan], [1.0])
    assert (nothing.value, nothing.reason, nothing.observed, nothing.n, nothing.missing) == (None, NOTHING, None, 0, 1)
    assert cohen_kappa([], []).reason == NOTHING
    assert cohen_kappa([1, None, 3], [1, 2, 3], weights="linear").value == 1.0


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(ValueError, match="items"):
        cohen_kappa([1, 2], [1])
    with pytest.raises(ValueError, match="needs numbers"):
        cohen_kappa(["a", "b"], ["a", "b"], weights="linear")
    with pytest.raises(ValueError, match="neither linear nor quadratic"):
        cohen_kappa([1, 2], [1, 2], weights="cubic")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="groups"):
        cohen_kappa([1, 2], [1, 2], groups=["q"])


@pytest.mark.slow
@pytest.mark.parametrize("weights", WEIGHTS)
def test_intervals_cover_as_often_as_they_say(weights: KappaWeights | None) -> None:
    rng = np.random.default_rng(5)

    def judged(n: int) -> tuple[np.ndarray, np.ndarray]:
        a = rng.integers(0, 3, n)
        return a, np.where(rng.random(n) < 0.6, a, rng.integers(0, 3, n))

    covered = 0
    for trial in range(250):
        interval = cohen_kappa(*judged(60), weights=weights, resamples=300, seed=trial).interval
        # Whoever guesses 40 % of the time over equally likely labels agrees 0.6 beyond chance, however it weighs.
        covered += interval is not None and interval.low <= 0.6 <= interval.high
    assert 0.9 <= covered / 250 <= 0.985


def test_groups_are_drawn_whole() -> None:
    """Ten copies of each item say hardly more than one: with copies as groups the interval is about as wide."""
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 40)
    b = np.where(rng.random(40) < 0.7, a, 1 - a)
    single = cohen_kappa(a, b, resamples=500, seed=3).interval
    tenfold = cohen_kappa(np.tile(a, 10), np.tile(b, 10), groups=np.tile(np.arange(40), 10), resamples=500, seed=3)
    assert single is not None
    assert tenfold.interval == pytest.approx(single, abs=0.03)
    apart = cohen_kappa(np.tile(a, 10), np.tile(b, 10), resamples=500, seed=3).interval
    assert apart is not None
    assert apart.high - apart.low < 0.5 * (single.high - single.low)


def test_the_seed_decides_and_chunks_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = [0, 1, 2, 1, 0, 2, 2, 1], [0, 1, 1, 1, 0, 2, 0, 1]
    one, same, other = (cohen_kappa(a, b, resamples=200, seed=s).interval for s in (1, 1, 2))
    assert one == same
    assert one != other
    monkeypatch.setattr("ragworth.stats.resampling.CHUNK", 64)
    assert cohen_kappa(a, b, resamples=200, seed=1).interval == pytest.approx(one)
    assert cohen_kappa([1, 0], [1, 0], groups=["q", "q"], resamples=50).interval is None


def test_labels_are_counted_not_ordered() -> None:
    """Without weights any names will do."""
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 4, 50), rng.integers(0, 4, 50)
    names = np.array(["pear", "fig", "apple", "lime"])
    assert cohen_kappa(names[a], names[b]).value == pytest.approx(cohen_kappa(a, b).value)
    assert Counter(names[a])  # all four occur


@pytest.mark.parametrize("weights", WEIGHTS)
def test_equal_to_other_implementations(weights: KappaWeights | None) -> None:
    rng = np.random.default_rng(4)
    a = rng.integers(0, 4, 80)
    b = np.where(rng.random(80) < 0.5, a, rng.integers(0, 4, 80))
    found = cohen_kappa(a, b, weights=weights).value
    metrics = pytest.importorskip("sklearn.metrics")
    assert found == pytest.approx(metrics.cohen_kappa_score(a, b, weights=weights), abs=1e-12)


def test_equal_to_statsmodels() -> None:
    other = pytest.importorskip("statsmodels.stats.inter_rater")
    table = np.array([[20, 5, 1], [3, 15, 4], [0, 6, 12]])
    rows, columns = (np.repeat(axis.ravel(), table.ravel()) for axis in np.indices(table.shape))
    assert cohen_kappa(rows, columns).value == pytest.approx(other.cohens_kappa(table).kappa, abs=1e-12)
    weighted = other.cohens_kappa(table, wt="quadratic").kappa
    assert cohen_kappa(rows, columns, weights="quadratic").value == pytest.approx(weighted, abs=1e-12)
