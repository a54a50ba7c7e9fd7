"""Agreement of automatic grades with people's: the numbers, the pairing of aspects, and the order of systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from ragworth.core.errors import InputError
from ragworth.data import Outcomes
from ragworth.judging.graders.agreement import NOT_LABELS, OTHER_SCALE, grade_agreement


def outcomes(values: Mapping[str, Sequence[float | None]], aspect: str = "grade") -> Outcomes:
    rows: list[dict[str, Any]] = [
        {
            "system": system,
            "query": f"q{number}",
            "aspect": aspect,
            "value": value,
            "status": "ok" if value is not None else "undecided",
            "source": "test",
        }
        for system, each in values.items()
        for number, value in enumerate(each)
    ]
    return Outcomes(rows)


def test_accuracy_and_kappa_of_answers_graded_by_both() -> None:
    automatic = outcomes({"a": [1, 1, -1, None], "b": [1, -1, -1, 0]})
    human = outcomes({"a": [1, 1, -1, 1], "b": [-1, -1, -1, 0]})
    (found,) = grade_agreement(automatic, human)
    assert (found.aspect, found.human_aspect, found.n, found.undecided) == ("grade", "grade", 7, 1)
    assert found.accuracy == pytest.approx(6 / 7)
    # Chance: correct 3/7·2/7, wrong 3/7·4/7, abstained 1/7·1/7, together 19/49.
    assert found.kappa.value == pytest.approx((6 / 7 - 19 / 49) / (1 - 19 / 49))
    assert found.kappa.interval is not None and found.kappa.interval.low <= found.kappa.value  # type: ignore[operator]
    assert not found.flips and not found.binary
    assert [(each.system, each.n_automatic, each.n_human) for each in found.systems] == [("a", 3, 4), ("b", 4, 4)]


def test_people_who_say_correct_or_not() -> None:
    automatic = outcomes({"a": [1, 0.5, 0, -1]})
    (found,) = grade_agreement(automatic, outcomes({"a": [1, 1, 0, 1]}, "human"))
    assert found.binary and found.human_aspect == "human"
    assert found.accuracy == pytest.approx(3 / 4)
    (same,) = grade_agreement(automatic, outcomes({"a": [1, 1, -1, 1]}, "human"))  # wrong in words
    assert same.binary and same.accuracy == found.accuracy and same.kappa.value == found.kappa.value


def test_automatic_grades_that_change_the_order() -> None:
    human = outcomes({"a": [1, 1, 1, -1], "b": [1, -1, -1, -1], "c": [-1, -1, -1, -1]})
    automatic = outcomes({"a": [-1, -1, 1, -1], "b": [1, -1, 1, -1], "c": [-1, -1, -1, -1]})
    (found,) = grade_agreement(automatic, human)
    assert found.flips
    (flip,) = found.flips
    assert (flip.better, flip.worse) == ("a", "b")
    assert flip.human_difference == 1.0 and flip.automatic_difference == -0.5


def test_leaving_the_hard_answers_undecided_may_change_the_order() -> None:
    human = outcomes({"a": [1, 1, -1, -1], "b": [1, -1, -1, -1]})
    automatic = outcomes({"a": [1, 1, -1, -1], "b": [1, None, None, None]})
    (found,) = grade_agreement(automatic, human)
    assert found.accuracy == 1.0 and found.undecided == 3
    assert [(flip.better, flip.worse) for flip in found.flips] == [("a", "b")]


def test_a_tie_is_no_change() -> None:
    human = outcomes({"a": [1, 0], "b": [0, 0]})
    assert not grade_agreement(outcomes({"a": [0, 0], "b": [0, 0]}), human)[0].flips
    assert not grade_agreement(human, outcomes({"a": [1, 0], "b": [0, 1]}))[0].flips


def test_quantities_have_no_kappa() -> None:
    values = {"a": [number / 20 for number in range(20)]}
    (found,) = grade_agreement(outcomes(values, "f1"), outcomes(values, "f1"))
    assert found.kappa.value is None and found.kappa.reason == NOT_LABELS and found.accuracy is None


def test_another_scale_has_no_kappa_and_still_a_ranking() -> None:
    human = outcomes({"a": [5, 5, 1], "b": [1, 2, 1]}, "human")
    (found,) = grade_agreement(outcomes({"a": [1, 1, -1], "b": [-1, -1, -1]}), human)
    assert found.accuracy is None and found.kappa.reason == OTHER_SCALE
    assert [each.system for each in found.systems] == ["a", "b"] and not found.flips


def test_nothing_in_common() -> None:
    automatic = outcomes({"a": [1.0]})
    assert grade_agreement(automatic, outcomes({"a": [None]})) == []
    (found,) = grade_agreement(automatic, outcomes({"b": [1.0]}))
    assert found.n == 0 and found.accuracy is None and found.kappa.value is None and not found.flips


def test_aspects_that_do_not_belong_together() -> None:
    theirs = outcomes({"a": [1.0]}, "fluency").frame.vstack(outcomes({"a": [1.0]}, "tone").frame)
    with pytest.raises(InputError, match="fluency"):
        grade_agreement(outcomes({"a": [1.0]}), theirs)
