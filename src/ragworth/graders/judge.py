"""``judge``: correct, abstained or wrong, by a model that sees the accepted answers.

Paper: Trappolini, Cuconasu et al., Redefining Retrieval Evaluation in the Era of LLMs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import polars as pl

from ragworth.calls.programs import NoValue, Steps
from ragworth.generation.answer_book import Answer, Support
from ragworth.graders.contract import Grader
from ragworth.graders.deterministic import ABSTAINED, CORRECT, PARTIAL, VALUES, WRONG
from ragworth.tasks.findings import Finding
from ragworth.tasks.labels import Scale, label, way_for, way_setting
from ragworth.tasks.options import setting
from ragworth.tasks.reliability import doubts

GRADES = Scale(("CORRECT", "WRONG", "ABSTAINED"), (VALUES[CORRECT], VALUES[WRONG], VALUES[ABSTAINED]))
"""Words that begin with different letters, so that a first token tells them apart."""


@dataclass(frozen=True)
class Judge(Grader):
    """1 correct, 0.5 partially correct, 0 abstained, −1 wrong, by a model as judge; ``label`` has the word.

    The judge sees question, accepted answers and answer, and gives one of three labels; the likeliest one counts.
    ``expected`` is the mean of the three values weighted by their probabilities, and ``mass`` how much probability the
    labels hold together. A correct answer is partially correct when relevance is known, and so is what was
    shown, and no relevant passage is in it; the judge does not see the passages.
    """

    how: str = way_setting()
    length: int = setting(32, "most tokens of what the model writes", low=1)
    swapped: bool = setting(False, "ask with the options in the other order, to see whether that matters")
    level: float = setting(1.0, "lowest relevance that counts as relevant")
    partial: bool = setting(True, "a correct answer from a context without a relevant passage is partially correct")

    kind: ClassVar[str] = "judge"
    title: ClassVar[str] = "correct, abstained or wrong, by the model as judge"
    aspects: ClassVar[tuple[str, ...]] = ("grade",)
    labelled: ClassVar[bool] = True
    possible: ClassVar[Mapping[str, float]] = VALUES
    asks: ClassVar[bool] = True
    prompts: ClassVar[tuple[str, ...]] = ("grade",)
    details: ClassVar[Mapping[str, Any]] = {
        "label": pl.String,
        "expected": pl.Float64,
        "mass": pl.Float64,
        "probabilities": pl.List(pl.Float64),
        "relevant_shown": pl.Boolean,
    }

    def check(self) -> None:
        way_for(self.model, self.how, "judge")

    def check_for(self, answers: Sequence[Answer]) -> None:
        self.need_queries(answers)
        self.need_accepted(answers)

    @cached_property
    def support(self) -> Support:
        return Support(self.texts, self.book, self.level)

    def judge(self, answer: Answer) -> Steps[Finding]:
        values = {
            "query": self.texts.query(answer.query),
            "answers": self.texts.answers(answer.query),
            "answer": self.text(answer),
        }
        way = way_for(self.model, self.how, "judge")
        found = yield from label(self.prompt.render(values), GRADES, self.model, way, length=self.length)
        word = found.label.lower()
        shown = self.support.relevant(answer) if self.partial and word == CORRECT else None
        word = PARTIAL if shown is False else word
        detail = {
            "label": word,
            "raw": found.raw,
            "expected": found.expected,
            "mass": found.mass,
            "probabilities": list(found.probabilities) if found.probabilities is not None else None,
            "relevant_shown": shown,
        }
        return Finding({"grade": VALUES[word]}, detail, found.estimator)

    def notes(self, answers: Sequence[Answer], controls: Sequence[Finding | NoValue]) -> list[str]:
        return self.support.notes(answers) if self.partial else []

    def doubts(self, frame: pl.DataFrame) -> list[str]:
        # Whether a correct answer is only partially so is none of the judge's doing.
        return doubts(frame.with_columns(pl.col("label").replace(PARTIAL, CORRECT)), "grade", "label")
