"""Bounds must hold whatever is hidden."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ragworth.llm.openai.bounds import entropy_bounds, shares_by_text
from ragworth.llm.openai.replies import TokenLogprob
from tests.llm.openai import endpoint_toy as toy


def distribution(seed: int, size: int, sharpness: float) -> list[float]:
    """Log-probabilities, the greatest first."""
    chance = random.Random(seed)
    logits = [chance.gauss(0, sharpness) for _ in range(size)]
    total = math.log(math.fsum(map(math.exp, logits)))
    return sorted((logit - total for logit in logits), reverse=True)


def entropy(logprobs: list[float]) -> float:
    return -math.fsum(math.exp(value) * value for value in logprobs)


@given(st.integers(0, 10**6), st.integers(2, 400), st.floats(0.01, 12), st.integers(1, 25), st.integers(0, 10**5))
def test_the_true_entropy_is_within_bounds(seed: int, size: int, sharpness: float, shown: int, unused: int) -> None:
    values = distribution(seed, size, sharpness)
    low, high = entropy_bounds(values[:shown], size + unused)
    assert low - 1e-9 <= entropy(values) <= high + 1e-9


def test_by_hand() -> None:
    # Visible 1/2 and 1/4; hidden 1/4, which fits into one token: least is that of (1/2, 1/4, 1/4) = 1.5 bits.
    # Greatest with 6 tokens: 4 unseen with 1/16 each: 1/2·1 + 1/4·2 + 4·1/16·4 = 2 bits.
    low, high = entropy_bounds([math.log(0.5), math.log(0.25)], 6)
    assert low == pytest.approx(1.5 * math.log(2))
    assert high == pytest.approx(2 * math.log(2))


@given(st.lists(st.floats(-1e39, 0) | st.just(-math.inf), min_size=1, max_size=6), st.integers(2, 10**9))
@example([-0.7, -745.0], 300_000)
@example([-0.7, -3.4e38], 300_000)
def test_bounds_are_numbers_whatever_is_shown(values: list[float], vocabulary: int) -> None:
    low, high = entropy_bounds(sorted(values, reverse=True), vocabulary)
    assert 0 <= low <= high < math.inf


LABELS = ("Yes", "No", "Maybe", "zebra", "abc", "Yesterday", "é")


@example("§", 8, ["é", *LABELS[:-1]], 1)
@given(st.text(max_size=6), st.integers(1, 40), st.permutations(LABELS), st.integers(1, 7))
def test_the_true_share_of_a_label_is_within_bounds(text: str, most: int, labels: list[str], count: int) -> None:
    context = toy.encode(text, bos=True)
    visible = [TokenLogprob(toy.decode([one]), toy.logprobs(context)[one]) for one in toy.likeliest(context, most)]
    shares = shares_by_text(labels[:count], visible)
    for label, probability, low, high in zip(labels[:count], *shares, strict=True):
        true = math.exp(toy.logprobs(context)[toy.encode(label)[0]])
        assert low <= probability <= high + 1e-12
        assert low - 1e-12 <= true <= high + 1e-12


def test_labels_by_hand() -> None:
    visible = [TokenLogprob(text, math.log(p)) for text, p in (("Yes", 0.5), ("N", 0.2), ("", 0.1), ("Rel", 0.05))]
    shares = shares_by_text(["Yes", "No", "Relevant", "Related", "Maybe"], visible)
    # Hidden are 0.15, but no hidden token has more than the 0.05 of the least likely that is shown.
    assert shares.probabilities == pytest.approx((0.5, 0.2, 0, 0, 0))
    assert shares.low == pytest.approx((0.5, 0, 0, 0, 0))
    assert shares.high == pytest.approx((0.5, 0.2, 0.05, 0.05, 0.05))
