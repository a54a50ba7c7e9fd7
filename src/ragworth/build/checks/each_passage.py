"""``each-passage``: a question on several passages needs every one of them. Leave one out, and it can't be answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ragworth.build.checks.contract import Check, CheckFinding, Evidence, Reading
from ragworth.build.question_set import Question
from ragworth.errors import quote_short

MAX_PASSAGES = 8
"""With more relevant passages, the question doesn't claim to need them all."""


@dataclass(frozen=True)
class NeedsEachPassage(Check):
    """The lowest probability of declining over all contexts that lack one passage; high is good."""

    name: ClassVar[str] = "each-passage"
    title: ClassVar[str] = "needs each of its passages"
    measures: ClassVar[str] = "lowest p(abstain) with one passage left out"
    asks_reader: ClassVar[bool] = True

    def readings(self, question: Question, evidence: Evidence) -> Sequence[Reading]:
        if question.answerable is False or not 2 <= len(question.passages) <= MAX_PASSAGES:
            return ()
        return [Reading(question.id, some) for some in (question.passages, *without_one(question.passages))]

    def find(self, question: Question, evidence: Evidence) -> CheckFinding:
        if question.answerable is False or len(question.passages) < 2:
            return CheckFinding("n/a", None, "it has one passage at most")
        if len(question.passages) > MAX_PASSAGES:
            return CheckFinding("unknown", None, f"it has more than {MAX_PASSAGES} passages")
        whole = evidence.read(Reading(question.id, question.passages))
        if isinstance(whole, CheckFinding):
            return whole
        lowest, doubt = 1.0, ""
        for left_out, rest in zip(question.passages, without_one(question.passages), strict=True):
            reply = evidence.read(Reading(question.id, rest))
            if isinstance(reply, CheckFinding):
                return reply
            lowest = min(lowest, reply.p_abstain)
            if not reply.answers or reply.grade in ("abstained", "wrong"):
                continue
            if reply.grade == "correct":
                return CheckFinding("fail", lowest, f"the reader answers it without {quote_short(left_out, 60)}")
            doubt = f"without {quote_short(left_out, 60)} the reader answers {quote_short(reply.answer or '', 40)}"
        if doubt:
            return CheckFinding("unknown", lowest, f"{doubt}: undecided")
        if not whole.answers or whole.grade in ("abstained", "wrong"):
            return CheckFinding("unknown", lowest, "the reader doesn't answer it from all of its passages either")
        return CheckFinding("pass", lowest)


def without_one(passages: tuple[str, ...]) -> list[tuple[str, ...]]:
    """All but one of the passages, for each of them."""
    return [passages[:at] + passages[at + 1 :] for at in range(len(passages))]
