"""Bounds must hold whatever is hidden."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ragworth.llm.openai.bounds import shares_by_text
from ragworth.llm.openai.protocol import TokenLogprob
from tests.llm.openai import endpoint_toy as toy

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
