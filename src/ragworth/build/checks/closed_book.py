"""``closed-book``: a reader that is shown nothing can't answer, so that the question tests retrieval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ragworth.build.checks.contract import Check, CheckFinding, Evidence, Reading
from ragworth.build.question_set import Question
from ragworth.errors import quote_short


@dataclass(frozen=True)
class NeedsPassage(Check):
    """The probability that the reader declines without any passage; high is good.

    A reader that guesses instead is asked for its guess, and only a correct guess fails the question.
    """

    name: ClassVar[str] = "closed-book"
    title: ClassVar[str] = "not answerable without a passage"
    measures: ClassVar[str] = "p(abstain) without passages"
    asks_reader: ClassVar[bool] = True

    def readings(self, question: Question, evidence: Evidence) -> Sequence[Reading]:
        return () if question.answerable is False else [Reading(question.id)]

    def find(self, question: Question, evidence: Evidence) -> CheckFinding:
        if question.answerable is False:
            return CheckFinding("n/a", None, "declared unanswerable")
        reply = evidence.read(Reading(question.id))
        if isinstance(reply, CheckFinding):
            return reply
        if not reply.answers or reply.grade == "abstained":
            return CheckFinding("pass", reply.p_abstain)
        said = quote_short(reply.answer or "", 60)
        if reply.grade == "correct":
            return CheckFinding("fail", reply.p_abstain, f"the reader knows it without a passage: {said}")
        if reply.grade == "wrong":
            return CheckFinding("pass", reply.p_abstain, f"the reader guesses, wrongly: {said}")
        return CheckFinding("unknown", reply.p_abstain, f"the reader guesses {said}: {reply.why}")
