"""Fleiss' κ and Krippendorff's α: published examples, by hand, other implementations, and the edges."""

from __future__ import annotations

from itertools import permutations, product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragworth.stats import resampling
from ragworth.stats.agreement import cohen_kappa
from ragworth.stats.estimate import Resampling
from ragworth.stats.judge_panels import precision_recall
from ragworth.stats.range_intervals import wilson_interval
from ragworth.stats.raters import CONSTANT, NOTHING, MeasurementLevel, fleiss_kappa, krippendorff_alpha
from tests.strategies import examples

LEVELS: tuple[MeasurementLevel, ...] = ("nominal", "ordinal", "interval")
N = np.nan
# Krippendorff (2011), Computing Krippendorff's Alpha-Reliability, four observers of twelve units.
PUBLISHED = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, N, N, N],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, N, 3],
        [N, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, N],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, N],
    ]
).T
# Fourteen raters put ten subjects into five categories.
CATEGORIES = np.array(
    [
        [0, 0, 0, 0, 14],
        [0, 2, 6, 4, 2],
        [0, 0, 3, 5, 6],
        [0, 3, 9, 2, 0],
        [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0],
        [3, 2, 6, 3, 0],
        [2, 5, 3, 2, 2],
        [6, 5, 2, 1, 0],
        [0, 2, 2, 3, 7],
    ]
)
ratings = st.lists(st.lists(st.sampled_from([0.0, 1.0, 2.0, 5.0, N]), min_size=3, max_size=3), min_size=1, max_size=12)


def listed(table: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Counts of categories as ratings."""
    return np.array([np.repeat(np.arange(table.shape[1]), row) for row in table])


def plain_alpha(items: list[list[float]], level: MeasurementLevel) -> float | None:
    """From the definition, by all pairs of ratings."""
    kept = [[r for r in item if r == r] for item in items]
    kept = [item for item in kept if len(item) > 1]
    every = [r for item in kept for r in item]

    def differ(a: float, b: float) -> float:
        if level == "nominal":
            return float(a != b)
        if level == "interval":
            return (a - b) ** 2
        low, high = sorted((a, b))
        between = sum(low <= r <= high for r in every)
        return (between - (every.count(a) + every.count(b)) / 2) ** 2 if a != b else 0.0

    n = len(every)
    seen = sum(sum(differ(a, b) for a, b in permutations(item, 2)) / (len(item) - 1) for item in kept) / max(n, 1)
    chance = sum(differ(a, b) for a, b in product(every, every)) / max(n * (n - 1), 1)
    return None if chance == 0 else 1 - seen / chance


@pytest.mark.parametrize(("level", "value"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_published_alpha(level: MeasurementLevel, value: float) -> None:
    found = krippendorff_alpha(PUBLISHED, level)
    assert found.value == pytest.approx(value, abs=0.0005)
    assert (found.n, found.counts["judgments"], found.n_left_out, found.reason, found.interval) == (11, 40, 1, "", None)


def test_published_kappa() -> None:
    # P̄ = 0.378, Pₑ = 0.213: (0.378 − 0.213)/(1 − 0.213) = 0.210.
    found = fleiss_kappa(listed(CATEGORIES))
    assert found.value == pytest.approx(0.210, abs=0.0005)
    assert (found.n, found.counts["judgments"], found.n_left_out) == (10, 140, 0)


def test_by_hand() -> None:
    # a a, a b, b b. Fleiss: agreed 1, 0, 1: P̄ = 2/3; three of six are a: Pₑ = 1/2; κ = (2/3 − 1/2)/(1/2) = 1/3.
    items = [["a", "a"], ["a", "b"], ["b", "b"]]
    assert fleiss_kappa(items).value == pytest.approx(1 / 3)
    # α: 2 of 6 coincidences differ; by chance 2·3·3/(6·5) = 18/30: 1 − (2/6)/(18/30) = 4/9.
    assert krippendorff_alpha(items).value == pytest.approx(4 / 9)


@pytest.mark.parametrize("level", LEVELS)
@examples(80)
@given(ratings)
def test_equal_to_the_definition(level: MeasurementLevel, items: list[list[float]]) -> None:
    found, wanted = krippendorff_alpha(items, level), plain_alpha(items, level)
    assert found.value == (None if wanted is None else pytest.approx(wanted, abs=1e-9))
    assert (found.reason == "") == (found.value is not None)


@pytest.mark.parametrize("level", LEVELS)
def test_equal_to_krippendorff(level: MeasurementLevel) -> None:
    other = pytest.importorskip("krippendorff")
    rng = np.random.default_rng(1)
    items = np.where(rng.random((40, 5)) < 0.3, N, rng.integers(0, 4, (40, 5)))
    wanted = other.alpha(items.T, level_of_measurement=level)
    assert krippendorff_alpha(items, level).value == pytest.approx(wanted, abs=1e-12)


def test_equal_to_statsmodels() -> None:
    other = pytest.importorskip("statsmodels.stats.inter_rater")
    assert fleiss_kappa(listed(CATEGORIES)).value == pytest.approx(other.fleiss_kappa(CATEGORIES), abs=1e-12)


@pytest.mark.parametrize("measured", [fleiss_kappa, krippendorff_alpha])
def test_edges_say_why(measured: type[object]) -> None:
    for items, reason, left in (
        ([], NOTHING, 0),
        ([[1, None], [N, N]], NOTHING, 2),
        ([[1, 1], [1, 1]], CONSTANT, 0),
    ):
        found = measured(items)  # type: ignore[call-arg]
        assert (found.value, found.reason, found.n_left_out) == (None, reason, left)  # type: ignore[attr-defined]
    assert measured([["x", "x", None], ["y", "y", "y"]]).value == 1.0  # type: ignore[call-arg, attr-defined]


def test_what_cannot_be_rated_is_refused() -> None:
    with pytest.raises(ValueError, match="needs numbers"):
        krippendorff_alpha([["a", "b"]], "ordinal")
    with pytest.raises(ValueError, match="none of nominal"):
        krippendorff_alpha([[1, 2]], "ratio")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="items × judges"):
        fleiss_kappa([1, 2])


def test_intervals_over_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 60)
    items = np.where(rng.random((60, 3)) < 0.7, truth[:, None], rng.integers(0, 3, (60, 3)))
    for measured in (fleiss_kappa, krippendorff_alpha):
        one = measured(items, resamples=300)
        fivefold = measured(np.tile(items, (5, 1)), groups=np.tile(np.arange(60), 5), resamples=300)
        assert one.value is not None and one.interval is not None and fivefold.interval is not None
        assert one.interval.low < one.value < one.interval.high
        assert fivefold.interval == pytest.approx(one.interval, abs=0.01)
        with monkeypatch.context() as patch:
            patch.setattr(resampling, "CHUNK", 500)
            assert measured(items, resamples=300).interval == pytest.approx(one.interval)
        assert measured(items, groups=np.zeros(60), resamples=20).interval is None


@pytest.mark.slow
def test_intervals_cover_as_often_as_they_say() -> None:
    rng = np.random.default_rng(3)
    held = []
    for trial in range(200):
        truth = rng.integers(0, 3, 60)
        items = np.where(rng.random((60, 3)) < 0.7, truth[:, None], rng.integers(0, 3, (60, 3)))
        found = krippendorff_alpha(items, "interval", resamples=200, seed=trial).interval
        # Two ratings share the truth with probability 0.7², beyond which they are chance.
        held.append(found is not None and found.low <= 0.49 <= found.high)
    assert 0.9 <= np.mean(held) <= 0.99


def test_perfect_agreement_on_few_items_leaves_doubt() -> None:
    ratings = [[1, 1], [0, 0], [1, 1]]
    few, many = (fleiss_kappa(ratings * times, resamples=50) for times in (1, 40))
    assert (few.value, few.high, many.value, many.high) == (1.0, 1.0, 1.0, 1.0)
    assert few.low is not None and many.low is not None
    assert few.low < 0.1 < 0.9 < many.low < 1
    two = cohen_kappa([1, 0, 1], [1, 0, 1], resamples=50).interval
    assert two is not None and two.low < 0.3 and two.high == 1.0


@pytest.mark.parametrize("measure", [fleiss_kappa, krippendorff_alpha])
def test_few_items_of_a_rare_label_leave_doubt(measure: Any) -> None:
    """Nine items without doubt and one disputed: judges who agree on what is rare have seen none of it."""
    found = measure([[0, 0]] * 9 + [[0, 1]], resamples=500)
    assert found.value == pytest.approx(-0.05, abs=0.06)
    assert found.low < -0.05 and found.high > 0.6
    plain = cohen_kappa([0] * 10, [0] * 9 + [1], resamples=500).interval
    assert plain is not None and plain.low < 0 and plain.high > 0.6


def test_an_interval_contains_its_value() -> None:
    """Raters that never agree can't agree less in any resample."""
    found = fleiss_kappa([[0, 1, 2], [2, 0, 1], [2, 1, 0]], resamples=400)
    assert found.value == pytest.approx(-0.5)
    assert found.value is not None and found.low is not None and found.low <= found.value


def test_shares_of_0_and_1_have_an_interval() -> None:
    yes = np.array([True, True, False, False])
    found = precision_recall(yes, yes, np.arange(4), Resampling(resamples=50))
    # Two items are yes: Wilson's interval of 2 of 2, and not of 4 of 4.
    assert found.precision.interval == wilson_interval(2, 2, 0.95)
