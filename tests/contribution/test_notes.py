"""Whose answers were split, and by which model."""

from __future__ import annotations

import polars as pl
import pytest

from ragworth.contribution.notes import split_answers


@pytest.mark.parametrize(
    ("source", "given", "words"),
    [
        ("m:x@1 · reply@2 · accepted answer · auto · exact", False, "an accepted answer, as measured by m:x@1"),
        ("m:x · reply@2 · given answer · auto", False, "the answer that was given, as measured by m:x"),
        ("m:x · reply@2 · generated answer · auto", False, "the answer that the model wrote, as measured by m:x"),
        ("m:x · reply@2 · auto ← m:y · answer@1", True, "the answer that was given, as measured by m:x"),
        (None, False, "the answer"),
    ],
)
def test_the_source_says_whose_answers_were_split(source: str | None, given: bool, words: str) -> None:
    frame = pl.DataFrame({"aspect": ["reliance"], "source": [source]}, schema_overrides={"source": pl.String})
    assert split_answers(frame, graded=given) == words
