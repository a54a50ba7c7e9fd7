"""``verbatim``: the quoted source of the answer is in the passage, word for word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ragworth.build.checks.contract import Check, CheckFinding, Evidence
from ragworth.build.question_set import Question
from ragworth.collection import plain_text
from ragworth.errors import quote_short


@dataclass(frozen=True)
class Verbatim(Check):
    """The share of spans that are in their passages; other blanks don't matter. One that isn't fails the question."""

    name: ClassVar[str] = "verbatim"
    title: ClassVar[str] = "source span is in the passage"
    measures: ClassVar[str] = "share of spans found"

    def find(self, question: Question, evidence: Evidence) -> CheckFinding:
        if question.answerable is False:
            return CheckFinding("n/a", None, "declared unanswerable: there is no span")
        if not question.spans:
            return CheckFinding("unknown", None, "the collection states no spans")
        texts = evidence.questions.texts
        if lost := [span.passage for span in question.spans if span.passage not in texts]:
            return CheckFinding("fail", 0.0, f"there is no passage {quote_short(lost[0], 60)}")
        missing = [span for span in question.spans if plain_text(span.text) not in plain_text(texts[span.passage])]
        share = 1 - len(missing) / len(question.spans)
        if missing:
            return CheckFinding("fail", share, f"not in {missing[0].passage}: {quote_short(missing[0].text, 60)}")
        return CheckFinding("pass", share)
