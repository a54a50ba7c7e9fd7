"""``round-trip``: retrieval finds the question's passages. A flag, not a filter.

Dropping what BM25 doesn't find would make a collection on which BM25 looks good. So the findings of two different
retrievers are reported, with their scores on all questions and on those that both find.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ragworth.build.checks.contract import Check, CheckFinding, Evidence
from ragworth.build.question_set import Question
from ragworth.errors import format_count


@dataclass(frozen=True)
class RoundTrip(Check):
    """The share of retrievers that rank a passage of the question among their first k."""

    k: int = 10

    name: ClassVar[str] = "round-trip"
    title: ClassVar[str] = "found by retrieval"
    measures: ClassVar[str] = "share of retrievers that find a passage"
    flag: ClassVar[bool] = True
    retrieves: ClassVar[bool] = True

    def find(self, question: Question, evidence: Evidence) -> CheckFinding:
        if question.answerable is False:
            return CheckFinding("n/a", None, "declared unanswerable: there is nothing to find")
        if not question.passages:
            return CheckFinding("unknown", None, "no passage is relevant to it")
        if not evidence.retrieved:
            return CheckFinding("unknown", None, "; ".join(evidence.missing.values()) or "no retriever is available")
        number = evidence.questions.passages.height
        if number <= self.k:
            reason = f"the collection has {format_count(number, 'passage')}, so the top {self.k} finds them all"
            return CheckFinding("unknown", None, reason)
        wanted = set(question.relevant)
        lost = [
            name for name, found in evidence.retrieved.items() if not wanted & set(found.get(question.id, ())[: self.k])
        ]
        share = 1 - len(lost) / len(evidence.retrieved)
        if lost:
            return CheckFinding("fail", share, f"not in the top {self.k} of {' and '.join(lost)}")
        return CheckFinding("pass", share)
