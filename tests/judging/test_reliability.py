"""Warnings about judges."""

from __future__ import annotations

import polars as pl

from ragworth.judging.findings import judgment_warnings


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
