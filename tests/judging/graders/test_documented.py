"""Every status that an answer or an outcome may have is in the documentation."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragworth.data import tables
from ragworth.judging import findings, labels, oracle, text_lookup
from ragworth.judging.graders import coverage, judge, similarity
from ragworth.text_match import bertscore

PAGE = (Path(__file__).parents[3] / "docs" / "answers.md").read_text(encoding="utf-8")
STATUSES = [
    tables.TRUNCATED, tables.EMPTY_ANSWER, findings.CUT, labels.REFUSED, labels.UNPARSABLE,
    text_lookup.NO_QUERY, text_lookup.NO_PASSAGE, text_lookup.EMPTY_PASSAGE, text_lookup.NO_ANSWERS,
    text_lookup.NO_SUBQUESTIONS, text_lookup.NO_RELEVANT,
    oracle.UNJUDGED, oracle.NO_RATINGS, oracle.NO_ANSWERABLE, judge.NO_IDEAL,
    similarity.NO_ZERO_SHOT, similarity.ZERO_SHOT_WORTHLESS,
    coverage.NO_TOKENS, coverage.NO_REQUIRED, bertscore.EMPTY_CANDIDATE, bertscore.EMPTY_REFERENCE, bertscore.NO_WEIGHT,
    "no-label", "too-long", "timed-out", "not-asked",
]  # fmt: skip


@pytest.mark.parametrize("status", dict.fromkeys(STATUSES))
def test_in_the_table_of_statuses(status: str) -> None:
    table = PAGE.partition("## Statuses")[2].partition("\n## ")[0]
    assert f"`{status}`" in table
