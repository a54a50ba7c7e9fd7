"""``judge``: correct, abstained or wrong, by a model that sees the accepted answers.

Paper: Trappolini, Cuconasu et al., Redefining Retrieval Evaluation in the Era of LLMs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import polars as pl

from ragworth.calls.programs import Program
from ragworth.judging.answers.answer_book import Answer
from ragworth.judging.contract import option, prompt_option
from ragworth.judging.findings import AspectValues, judgment_warnings
from ragworth.judging.graders.contract import Grader
from ragworth.judging.graders.deterministic import ABSTAINED, CORRECT, GRADER_VALUES, WRONG
from ragworth.judging.labels import LabelScale, ask_label, choose_label_method, label_method_option

GRADE_LABELS = LabelScale(
    ("CORRECT", "WRONG", "ABSTAINED"), (GRADER_VALUES[CORRECT], GRADER_VALUES[WRONG], GRADER_VALUES[ABSTAINED])
)
"""Words that begin with different letters, so that a first token tells them apart."""


@dataclass(frozen=True)
class JudgeGrader(Grader):
    """1 correct, 0 abstained, −1 wrong, by a model as judge; ``label`` has the word.

    The judge sees question, accepted answers and answer, and gives one of three labels; the likeliest one counts.
    ``expected`` is the mean of the three values weighted by their probabilities, and ``mass`` how much probability the
    labels hold together. The judge does not see the passages.
    """

    prompt: str = prompt_option("grade")
    how: str = label_method_option()
    length: int = option(32, "maximum tokens of what the model writes", low=1)

    kind: ClassVar[str] = "judge"
    title: ClassVar[str] = "correct, abstained or wrong, by the model as judge"
    version: ClassVar[int] = 2
    aspects: ClassVar[tuple[str, ...]] = ("grade",)
    asks_model: ClassVar[bool] = True
    prompts: ClassVar[tuple[str, ...]] = ("grade",)
    details: ClassVar[Mapping[str, Any]] = {
        "label": pl.String,
        "expected": pl.Float64,
        "mass": pl.Float64,
        "probabilities": pl.List(pl.Float64),
    }

    def check(self) -> None:
        choose_label_method(self.model, self.how, "judge")
        _ = self.scale

    @cached_property
    def scale(self) -> LabelScale:
        """The labels, as the prompt writes them."""
        return GRADE_LABELS.for_prompt(self.template)

    def check_for(self, answers: Sequence[Answer]) -> None:
        self.need_queries(answers)
        self.need_accepted(answers)

    def program(self, answer: Answer) -> Program[AspectValues]:
        values = {
            "query": self.texts.query(answer.query),
            "answers": self.texts.answers(answer.query),
            "answer": self.text(answer),
        }
        way = choose_label_method(self.model, self.how, "judge")
        found = yield from ask_label(self.template.render(values), self.scale, self.model, way, length=self.length)
        word = found.label.lower()
        detail = {
            "label": word,
            "raw": found.raw,
            "expected": found.expected,
            "mass": found.mass,
            "probabilities": list(found.probabilities) if found.probabilities is not None else None,
        }
        return AspectValues({"grade": GRADER_VALUES[word]}, detail, found.estimator)

    def warnings(self, frame: pl.DataFrame) -> list[str]:
        return judgment_warnings(frame, "grade", "label")
