"""Checks that ask the reader: with all passages, with none, with each left out, and with what is retrieved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ragworth.build.checks.contract import Check, CheckFinding, Evidence, Reading
from ragworth.build.question_set import Question
from ragworth.core.errors import format_count, quote_short


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


@dataclass(frozen=True)
class Unanswerable(Check):
    """The lowest probability of declining over the passages that any retriever ranks among its first k."""

    k: int = 5

    name: ClassVar[str] = "unanswerable"
    title: ClassVar[str] = "declared unanswerable, and no retrieved passage answers it"
    measures: ClassVar[str] = "lowest p(abstain) over the top k"
    asks_reader: ClassVar[bool] = True
    retrieves: ClassVar[bool] = True

    def readings(self, question: Question, evidence: Evidence) -> Sequence[Reading]:
        if question.answerable is not False:
            return ()
        return [Reading(question.id, (passage,)) for passage in self._top(question, evidence)]

    def _top(self, question: Question, evidence: Evidence) -> list[str]:
        lists = (found.get(question.id, ())[: self.k] for found in evidence.retrieved.values())
        return list(dict.fromkeys(passage for each in lists for passage in each))

    def find(self, question: Question, evidence: Evidence) -> CheckFinding:
        if question.answerable is not False:
            return CheckFinding("n/a", None, "it isn't declared unanswerable")
        if not evidence.retrieved:
            return CheckFinding("unknown", None, "no retriever is available")
        top = self._top(question, evidence)
        if not top:
            return CheckFinding("unknown", None, "nothing was retrieved for it, so nothing was read")
        lowest = 1.0
        for passage in top:
            reply = evidence.read(Reading(question.id, (passage,)))
            if isinstance(reply, CheckFinding):
                return reply
            lowest = min(lowest, reply.p_abstain)
            if reply.answers and reply.grade != "abstained":
                said = quote_short(reply.answer or "", 40)
                return CheckFinding("fail", lowest, f"the reader answers {said} from {quote_short(passage, 60)}")
        return CheckFinding("pass", lowest, f"the reader declines on {format_count(len(top), 'passage')}")
