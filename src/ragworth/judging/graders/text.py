"""Graders that compare an answer's words with the accepted answers, and ask no model.

Paper: Trappolini, Cuconasu et al., Redefining Retrieval Evaluation in the Era of LLMs (the three grades).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from ragworth.calls.programs import NoValue
from ragworth.data import UNDECIDED
from ragworth.judging.contract import option
from ragworth.judging.findings import AspectValues
from ragworth.judging.judge import Grader
from ragworth.judging.text_lookup import Answer
from ragworth.text_match.overlap import COMPARISONS
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

    kind = "deterministic"
    title = "correct, abstained or wrong, by comparing texts"
    version = 14
    aspects = ("grade",)
    compares = ("answers",)
    details: ClassVar[Mapping[str, Any]] = {"label": pl.String, "why": pl.String}

    def value(self, item: Answer) -> AspectValues:
        text, accepted = self.text(item), self.texts.answers(item.query)
        verdict = grade_short_answer(text, accepted, question=self.texts.known_query(item.query))
        if verdict.label == UNDECIDED:
            return AspectValues({"grade": NoValue(UNDECIDED, verdict.why)}, {"why": verdict.why})
        return AspectValues({"grade": GRADER_VALUES[verdict.label]}, {"label": verdict.label, "why": verdict.why})


@dataclass(frozen=True)
class TextGrader(Grader):
    """Exact match, token F1, containment and ROUGE-L, each from 0 to 1 and the best over the accepted answers."""

    unicode: bool = option(False, "let ROUGE-L see the words of all scripts, not only a-z and 0-9")

    kind = "text"
    title = "exact match, token F1, containment and ROUGE-L"
    compares = ("answers",)
    aspects = ("em", "f1", "containment", "rouge-l")

    @property
    def source(self) -> str:
        return f"text{' · rouge-l-unicode' if self.unicode else ''}"

    def value(self, item: Answer) -> AspectValues:
        text, accepted = self.text(item), self.texts.answers(item.query)
        names = {name: f"{name}-unicode" if name == "rouge-l" and self.unicode else name for name in self.aspects}
        return AspectValues({aspect: COMPARISONS[name](text, accepted) for aspect, name in names.items()})
