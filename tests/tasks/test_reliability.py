"""Numbers and words that say how far judges can be trusted."""

from __future__ import annotations

import polars as pl
import pytest

from ragworth.tasks.reliability import agreement_checks, judgment_warnings

BOTH = pl.DataFrame({"query": list("abcd"), "value": [0.0, 1.0, 2.0, 2.0], "other": [0.0, 2.0, 2.0, 2.0]})


def test_steps_of_a_scale_nearly_agree_and_names_do_not() -> None:
    # Plain: 3/4 equal; by chance 1/4 · 1/4 + 2/4 · 3/4 = 7/16; κ = (3/4 − 7/16) / (9/16) = 5/9.
    (plain,) = agreement_checks("t", BOTH, labelled=True)
    assert plain.measure == "Cohen κ"
    assert plain.value == pytest.approx(5 / 9)
    # Quadratic: mean squared difference 1/4; by chance (0·1 + 4·3 + 1·1 + 1·3 + 2·(4·1 + 0·3)) / 16 = 24/16; κ = 5/6.
    (steps,) = agreement_checks("t", BOTH, labelled=True, ordinal=True)
    assert steps.measure == "Cohen κ, quadratic"
    assert steps.value == pytest.approx(5 / 6)


def test_of_two_labels_weights_say_nothing() -> None:
    (one,) = agreement_checks("t", BOTH.with_columns(pl.col("value", "other").clip(1)), labelled=True, ordinal=True)
    assert one.measure == "Cohen κ"


def test_quantities() -> None:
    assert [one.measure for one in agreement_checks("t", BOTH, labelled=False, ordinal=True)] == [
        "Spearman ρ",
        "mean difference",
    ]


def test_nothing_to_doubt() -> None:
    assert judgment_warnings(pl.DataFrame({"value": [1.0, 2.0], "mass": [0.9, 0.01]}), "grade") == []
    assert judgment_warnings(pl.DataFrame({"value": [1.0]}), "grade") == []
    assert (
        judgment_warnings(
            pl.DataFrame({"value": [None, None], "mass": [None, None]}, schema_overrides={"mass": pl.Float64}), "x"
        )
        == []
    )


def test_labels_without_probability() -> None:
    frame = pl.DataFrame({"value": [1.0, 2.0, 1.0], "mass": [0.01, 0.9, 0.02]})
    assert judgment_warnings(frame, "rating") == [
        "the labels hold little probability (median 0.02 over 3 ratings): the model would rather say something else"
    ]


def test_all_the_same() -> None:
    assert judgment_warnings(pl.DataFrame({"value": [1.0, None, 1.0]}), "rating") == ["all 2 ratings are the same: 1"]
    assert judgment_warnings(pl.DataFrame({"label": ["wrong"] * 3}), "grade", "label") == [
        "all 3 grades are the same: wrong"
    ]
