"""Findings about single answers from contributions."""

from __future__ import annotations

import polars as pl
import pytest

from ragworth.diagnosis.contributions import diagnose_contributions
from ragworth.judging.contribution.rows import DETAIL_COLUMNS, passage_rows

KEYS = {"system": pl.String, "query": pl.String, "repeat": pl.Int64, "aspect": pl.String, "status": pl.String,
        "reason": pl.String, "source": pl.String}  # fmt: skip
CARRIED, SHARED = [9.0, 0.2], [5.0, 4.0]


def passages(*answers: list[float] | None) -> pl.DataFrame:
    """The rows of the passages of several answers to one query; one without contributions couldn't be split."""
    rows = [
        {"system": "s", "query": "q", "repeat": n, "aspect": "reliance", "status": "ok" if values else "declined"}
        | ({"passages": ["a", "b"], "contributions": values, "errors": [None] * 2, "removed": values,
            "sentences": ["It is."], "by_sentence": [values], "cited": []} if values else {})
        for n, values in enumerate(answers)
    ]  # fmt: skip
    return passage_rows(pl.DataFrame(rows, schema={**KEYS, **DETAIL_COLUMNS}, orient="row"))


@pytest.mark.parametrize(
    ("answers", "grades", "count"),
    [
        ([CARRIED], ["wrong"], (1, 1)),
        ([SHARED], ["wrong"], (0, 1)),  # no passage carries most of it
        ([CARRIED, SHARED], ["correct", "wrong"], (0, 2)),  # the answer that one passage carries is right
        ([SHARED, CARRIED], ["correct", "wrong"], (1, 2)),
        ([None, CARRIED], ["abstained", "wrong"], (1, 1)),
        ([CARRIED, CARRIED], ["wrong", None], (1, 1)),
        ([CARRIED, CARRIED], ["wrong"], None),  # one grade of two answers
    ],
)
def test_each_answer_goes_with_its_own_grade(
    answers: list[list[float] | None], grades: list[str | None], count: tuple[int, int] | None
) -> None:
    found = diagnose_contributions(passages(*answers), None, {("s", "q"): grades})
    counts = {row[1]: row[2:] for row in found.counts.iter_rows()}
    assert counts.get("misled-by") == count
    assert counts["redundant-with"][1] == sum(each is not None for each in answers)
