"""Which passage the greedy ideal of α-nDCG takes next."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from ragworth.metrics.coverage import _best_passage, _exact_fraction, _sequential_sum


def test_gains_that_floats_cannot_tell_apart() -> None:
    # Both gain 1 for the first sub-question; the second passage gains 0.1¹⁷ more, which 1 + 0.1¹⁷ loses.
    answers, seen = np.array([[True, False], [True, True]]), np.array([0, 17])
    gain = _sequential_sum(answers, 0.1**seen)
    assert gain[0] == gain[1]
    assert _best_passage(gain, answers, seen, Fraction(1, 10)) == 1


def test_gains_that_only_rounding_makes_unequal() -> None:
    # 1/3 against three times 1/9, which a sum of floats may put above it; the larger sum is taken, as in ndeval.
    answers = np.array([[True] + [False] * 3, [False] + [True] * 3])
    seen, keep = np.array([1, 2, 2, 2]), Fraction(1, 3)
    gain = np.array([float(keep), 3 * float(keep) ** 2 + 1e-16])
    assert gain[0] != gain[1]
    assert _best_passage(gain, answers, seen, keep) == 1
    # Equal as floats too: the first.
    assert _best_passage(np.array([1 / 3, 1 / 3]), answers, seen, keep) == 0


@pytest.mark.parametrize(
    ("number", "meant"),
    [(0.9, Fraction(9, 10)), (1 / 3, Fraction(1, 3)), (0.0, Fraction(0)), (0.123456789012, Fraction("0.123456789012"))],
)
def test_the_number_that_was_meant(number: float, meant: Fraction) -> None:
    assert _exact_fraction(number) == meant
