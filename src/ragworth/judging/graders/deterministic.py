"""``deterministic``: correct, abstained, wrong or undecided by comparing texts; asks no model.

Paper: Trappolini, Cuconasu et al., Redefining Retrieval Evaluation in the Era of LLMs (the three grades).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from ragworth.calls.programs import NoValue
from ragworth.data import UNDECIDED
from ragworth.judging.answers.answer_book import Answer
from ragworth.judging.findings import AspectValues
from ragworth.judging.graders.contract import Grader
from ragworth.text_match.short_answers import grade_short_answer

CORRECT, ABSTAINED, WRONG = "correct", "abstained", "wrong"
GRADER_VALUES = {CORRECT: 1.0, ABSTAINED: 0.0, WRONG: -1.0}
"""What the grades are worth: in this order, which is what studies go by."""


@dataclass(frozen=True)
class DeterministicGrader(Grader):
    """1 correct, 0 abstained, −1 wrong, against the accepted answers; ``label`` has the word.

    An answer is correct if it gives an accepted one: its words, its yes or no, its quantities in any unit or magnitude.
    It abstains when it says so in one of many phrases. What words can't decide is missing, with the status
    ``undecided``. What was shown doesn't count: a grade that depended on labels of passages would go with metrics that
    read the same labels.
    """

    kind: ClassVar[str] = "deterministic"
    title: ClassVar[str] = "correct, abstained or wrong, by comparing texts"
    version: ClassVar[int] = 13
    aspects: ClassVar[tuple[str, ...]] = ("grade",)
    details: ClassVar[Mapping[str, Any]] = {"label": pl.String, "why": pl.String}

    def check_for(self, answers: Sequence[Answer]) -> None:
        self.need_accepted(answers)

    def value(self, answer: Answer) -> AspectValues:
        text, accepted = self.text(answer), self.texts.answers(answer.query)
        verdict = grade_short_answer(text, accepted, question=self.texts.known_query(answer.query))
        if verdict.label == UNDECIDED:
            return AspectValues({"grade": NoValue(UNDECIDED, verdict.why)}, {"why": verdict.why})
        return AspectValues({"grade": GRADER_VALUES[verdict.label]}, {"label": verdict.label, "why": verdict.why})
