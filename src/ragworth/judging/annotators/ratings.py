"""``ratings``: how well a passage answers each sub-question, from 0 to 5.

Paper: Ju et al., Controlled Retrieval-augmented Context Evaluation for Long-form RAG (CRUX).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from ragworth.calls.programs import NoValue, Program
from ragworth.judging.annotators.contract import AnnotationItem, AnnotationUnit, Annotator
from ragworth.judging.answerability import (
    RATED_ANSWERABILITY_NOTE,
    ask_answerability,
    declining_label,
)
from ragworth.judging.contract import option, prompt_option
from ragworth.judging.findings import AspectValues, value_unless_cut
from ragworth.judging.labels import (
    RATING_SCALE,
    LabelMethod,
    LabelScale,
    ask_label,
    choose_label_method,
    label_method_option,
)


@dataclass(frozen=True)
class RatingAnnotator(Annotator):
    """A rating from 0 (does not answer the sub-question) to 5 (answers it fully).

    The value is the likeliest rating, as whole a number as a human's; ``expected`` is the mean weighted by the
    ratings' probabilities, and ``mass`` how much probability the six hold together. A model that was taught to decline,
    such as the embedded one, is asked whether it answers the sub-question from the passage (``answerability``): its
    ratings are that probability mapped to 0–5, not graded quality.
    """

    prompt: str = prompt_option("rating")
    how: str = label_method_option()
    length: int = option(32, "maximum tokens of what the model writes", low=1)
    keep_cut: bool = option(False, "keep values of passages that did not fit whole")

    kind: ClassVar[str] = "ratings"
    title: ClassVar[str] = "how well the passage answers each sub-question, 0 to 5"
    unit: ClassVar[AnnotationUnit] = "rating"
    aspects: ClassVar[tuple[str, ...]] = ("rating",)
    compares: ClassVar[tuple[str, ...]] = ("subquestions",)
    prompts: ClassVar[tuple[str, ...]] = ("rating",)
    scales: ClassVar[Mapping[str, LabelScale]] = {"rating": RATING_SCALE}
    labelled: ClassVar[bool] = True
    slots: ClassVar[tuple[str, ...]] = ("subquestion", "passage")
    details: ClassVar[Mapping[str, Any]] = {"expected": pl.Float64, "mass": pl.Float64, "cut": pl.Int64}

    def check(self) -> None:
        _ = self._way

    @property
    def prompt_names(self) -> tuple[str, ...]:
        return ("abstention",) if self._way == "answerability" else ("rating",)

    @property
    def _way(self) -> LabelMethod:
        return choose_label_method(self.card, self.how, "ratings", answerable=True, own_prompt=bool(self.prompt))

    def program(self, item: AnnotationItem) -> Program[AspectValues]:
        question, passage = self.texts.subquestion(item.query, item.subquestion), self.texts.passage(item.passage)
        if self._way == "answerability":
            prompt = self.ask("abstention", query=question, passage=passage)
            label = declining_label(self.template("abstention"))
            found = yield from ask_answerability(prompt, RATING_SCALE, self.card, label)
            found = found._replace(estimator=f"{found.estimator}, mapped to 0–5")
        else:
            prompt = self.ask("rating", subquestion=question, passage=passage)
            found = yield from ask_label(prompt, self.scale("rating"), self.card, self._way, length=self.length)
        detail = {"raw": found.raw, "mass": found.mass, "expected": found.expected, "cut": found.usage.cut}
        return AspectValues(
            {"rating": value_unless_cut(found.value, found.usage, self.keep_cut)}, detail, found.estimator
        )

    def conclude(
        self, frame: pl.DataFrame, controls: Sequence[AspectValues | NoValue]
    ) -> tuple[pl.DataFrame, list[str]]:
        return frame, [RATED_ANSWERABILITY_NOTE] if self._way == "answerability" else []
