"""``deterministic``: correct, abstained, wrong or undecided by comparing texts; asks no model.

Paper: Trappolini, Cuconasu et al., Redefining Retrieval Evaluation in the Era of LLMs (the three grades).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import polars as pl

from ragworth.calls.programs import NoValue
from ragworth.generation.answer_book import Answer, ContextSupport
from ragworth.graders.contract import Grader
from ragworth.tables import UNDECIDED
from ragworth.tasks.findings import AspectValues
from ragworth.tasks.options import option
from ragworth.text_match.short_answers import grade_short_answer

CORRECT, PARTIAL, ABSTAINED, WRONG = "correct", "partially-correct", "abstained", "wrong"
GRADER_VALUES = {CORRECT: 1.0, PARTIAL: 0.5, ABSTAINED: 0.0, WRONG: -1.0}
"""What the grades are worth: in this order, which is what studies go by."""


@dataclass(frozen=True)
class DeterministicGrader(Grader):
    """1 correct, 0.5 partially correct, 0 abstained, −1 wrong, against the accepted answers; ``label`` has the word.

    An answer is correct if it gives an accepted one: its words, its yes or no, its quantities in any unit or magnitude.
    It abstains when it says so in one of many phrases. What words can't decide is missing, with the status
    ``undecided``. A correct answer is partially correct when relevance is known, and so is what was shown, and no
    relevant passage is in it: the model knew it by itself. (The answers of the system ``(none)``, which are shown
    nothing, keep their full grade.)
    """

    level: float = option(1.0, "lowest relevance that counts as relevant")
    partial: bool = option(True, "a correct answer from a context without a relevant passage is partially correct")

    kind: ClassVar[str] = "deterministic"
    title: ClassVar[str] = "correct, abstained or wrong, by comparing texts"
    version: ClassVar[int] = 10
    aspects: ClassVar[tuple[str, ...]] = ("grade",)
    labelled: ClassVar[bool] = True
    possible: ClassVar[Mapping[str, float]] = GRADER_VALUES
    details: ClassVar[Mapping[str, Any]] = {"label": pl.String, "why": pl.String, "relevant_shown": pl.Boolean}

    def check_for(self, answers: Sequence[Answer]) -> None:
        self.need_accepted(answers)

    @cached_property
    def support(self) -> ContextSupport:
        return ContextSupport(self.texts, self.book, self.level)

    def value(self, answer: Answer) -> AspectValues:
        text, accepted = self.text(answer), self.texts.answers(answer.query)
        verdict = grade_short_answer(text, accepted, question=self.texts.known_query(answer.query))
        if verdict.label == UNDECIDED:
            return AspectValues({"grade": NoValue(UNDECIDED, verdict.why)}, {"why": verdict.why})
        shown = self.support.relevant(answer) if self.partial and verdict.label == CORRECT else None
        label = PARTIAL if shown is False else verdict.label
        return AspectValues(
            {"grade": GRADER_VALUES[label]}, {"label": label, "why": verdict.why, "relevant_shown": shown}
        )

    def notes(self, answers: Sequence[Answer], controls: Sequence[AspectValues | NoValue]) -> list[str]:
        return self.support.notes(answers) if self.partial else []
