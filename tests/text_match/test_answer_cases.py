"""Answers with numbers, written by hand with a person's verdict: how many the grader decides, and how well.

Every third case (index % 3 == 2) was held out while the rules were written; ``benchmarks/grading.py`` has the figures.
"""

from __future__ import annotations

import csv
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from ragworth.text_match.short_answers import grade_short_answer

FILE = Path(__file__).parent / "answer_cases.csv"


@cache
def verdicts() -> list[tuple[str, str]]:
    """The grader's label and the person's verdict of every case."""
    with FILE.open(encoding="utf-8", newline="") as stream:
        return [
            (grade_short_answer(row["answer"], [row["accepted"]], question=row["question"]).label, row["verdict"])
            for row in csv.DictReader(stream)
        ]


@pytest.mark.parametrize("held_out", [False, True])
def test_precision_recall_and_share_decided(held_out: bool) -> None:
    cases = [case for place, case in enumerate(verdicts()) if (place % 3 == 2) == held_out]
    decided = [case for case in cases if case[0] != "undecided"]
    right = Counter(decided)["correct", "correct"]
    assert len(cases) >= 100
    assert len(decided) / len(cases) >= 0.8
    assert right / sum(label == "correct" for label, _ in decided) >= 0.95
    assert right / sum(verdict == "correct" for _, verdict in decided) >= 0.85


def test_an_answer_never_becomes_a_refusal_and_few_refusals_are_missed() -> None:
    counts = Counter((label == "abstained", verdict == "abstained") for label, verdict in verdicts())
    assert counts[True, False] / (counts[True, False] + counts[True, True]) <= 0.05
    assert counts[True, True] / (counts[True, True] + counts[False, True]) >= 0.85
