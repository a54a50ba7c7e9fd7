"""``consistent``: no other question asks the same in the same words and accepts other answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ragworth.build.checks.contract import Check, CheckFinding, Evidence
from ragworth.build.checks.duplicate import plain_question
from ragworth.build.near_duplicates import block_pairs
from ragworth.build.question_set import Question
from ragworth.errors import quote_short
from ragworth.text_match.short_answers import grade_short_answer


@dataclass(frozen=True)
class ConsistentAnswers(Check):
    """Whether questions with the same words, after the same conversation, accept the same answers.

    Both of two questions that don't are reported, because one of them is wrong and words can't say which. Answers that
    words can't compare don't count.
    """

    name: ClassVar[str] = "consistent"
    title: ClassVar[str] = "no other question contradicts it"
    measures: ClassVar[str] = "whether answers agree"

    def find_all(self, evidence: Evidence) -> list[CheckFinding]:
        questions = evidence.questions.questions
        other: dict[int, int] = {}
        for pair in block_pairs([_key(each) for each in questions]):
            if _disagree(questions[pair[0]], questions[pair[1]]):
                for one, another in (pair, pair[::-1]):
                    other.setdefault(one, another)
        return [
            _contradiction(question, questions[other[at]]) if at in other else CheckFinding("pass", 1.0)
            for at, question in enumerate(questions)
        ]


def _key(question: Question) -> tuple[str, ...]:
    """What two questions that ask the same have in common."""
    history = () if question.rewrite else question.history
    return (plain_question(question.standalone), *history)


def _contradiction(question: Question, other: Question) -> CheckFinding:
    answers = [quote_short(each.answers[0], 40) if each.answers else "no answer" for each in (question, other)]
    return CheckFinding("fail", 0.0, f"it accepts {answers[0]}, and {other.id}, which asks the same, {answers[1]}")


def _disagree(one: Question, other: Question) -> bool:
    """Whether each answer contradicts the other question's, or one question is declared unanswerable."""
    if not one.answers or not other.answers:
        return bool(one.answers) != bool(other.answers) and False in (one.answerable, other.answerable)
    return all(label == "wrong" for label in _labels(one, other))


def _labels(one: Question, other: Question) -> Iterator[str]:
    for mine, accepted in ((one, other), (other, one)):
        for answer in mine.answers:
            yield grade_short_answer(answer, accepted.answers, question=accepted.standalone).label
