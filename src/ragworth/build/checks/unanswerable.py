"""``unanswerable``: the reader declines on everything that is retrieved for a question declared unanswerable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ragworth.build.checks.contract import Check, CheckFinding, Evidence, Reading
from ragworth.build.question_set import Question
from ragworth.errors import format_count, quote_short


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
