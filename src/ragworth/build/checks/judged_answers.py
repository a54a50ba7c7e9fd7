"""Answers of the reader that comparing texts can't decide, graded by a judge."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from ragworth.build.checks.contract import ReaderReply, Reading
from ragworth.build.question_set import QuestionSet
from ragworth.calls.job import Job
from ragworth.calls.programs import NoValue
from ragworth.graders.deterministic import GRADER_VALUES
from ragworth.graders.grading import build_grader, run_grading, to_answer_book

LABELS = {value: label for label, value in GRADER_VALUES.items()}

Replies = Mapping[Reading, ReaderReply | NoValue]


def judge_undecided(
    replies: Replies, questions: QuestionSet, judge: Job, prompts: str | Path | None
) -> tuple[Replies, list[str]]:
    """The replies with the judge's grades where comparing texts was undecided and accepted answers are known."""
    accepted = {question.id for question in questions.questions if any(map(str.strip, question.answers))}
    open_ones = [
        (reading, reply)
        for reading, reply in replies.items()
        if isinstance(reply, ReaderReply) and reply.grade == "undecided" and reading.question in accepted
    ]
    if not open_ones:
        return replies, []
    table = pl.DataFrame(
        {
            "system": [f"reading {number}" for number in range(len(open_ones))],
            "query": [reading.question for reading, _ in open_ones],
            "text": [reply.answer or "" for _, reply in open_ones],
        }
    )
    book = to_answer_book(table)
    grader = build_grader("judge", judge.card, questions.collection, book, prompts, {})
    graded = run_grading(grader, book.answers, judge)
    values = {
        system: value for system, value in graded.frame.select("system", "value").iter_rows() if value is not None
    }
    found = dict(replies)
    for number, (reading, reply) in enumerate(open_ones):
        label = LABELS.get(values.get(f"reading {number}", float("nan")))
        if label is not None:
            found[reading] = reply._replace(grade=label, why=f"graded by {judge.card.name}")
    return found, [f"judge: {note}" for note in graded.notes]
