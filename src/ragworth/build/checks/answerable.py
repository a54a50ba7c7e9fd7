"""``answerable``: a reader that is shown the passages answers, and its answer agrees with the accepted ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ragworth.build.checks.contract import Check, CheckFinding, Evidence, Reading
from ragworth.build.question_set import Question
from ragworth.errors import quote_short


@dataclass(frozen=True)
class AnswerableWithPassages(Check):
    """The probability that the reader declines when it is shown the question's passages; low is good."""

    name: ClassVar[str] = "answerable"
    title: ClassVar[str] = "answerable with its passages"
    measures: ClassVar[str] = "p(abstain) with the passages"
    asks_reader: ClassVar[bool] = True

    def readings(self, question: Question, evidence: Evidence) -> Sequence[Reading]:
        if question.answerable is False or not question.passages:
            return ()
        return [Reading(question.id, question.passages)]

    def find(self, question: Question, evidence: Evidence) -> CheckFinding:
        if question.answerable is False:
            return CheckFinding("n/a", None, "declared unanswerable: see the check unanswerable")
        if not question.passages:
            return CheckFinding("unknown", None, "no passage is relevant to it")
        reply = evidence.read(Reading(question.id, question.passages))
        if isinstance(reply, CheckFinding):
            return reply
        if not reply.answers:
            return CheckFinding("fail", reply.p_abstain, "the reader declines")
        said = quote_short(reply.answer or "", 60)
        if reply.grade == "wrong":
            return CheckFinding("fail", reply.p_abstain, f"the reader answers {said}: {reply.why}")
        if reply.grade == "abstained":
            return CheckFinding("fail", reply.p_abstain, f"the reader declines in words: {said}")
        if reply.grade != "correct":
            return CheckFinding("unknown", reply.p_abstain, f"the reader answers {said}: {reply.why}")
        return CheckFinding("pass", reply.p_abstain)
