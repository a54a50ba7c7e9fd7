"""``relevance`` and ``ratings``: labels of passages, by a model as judge.

Paper of the ratings: Ju et al., Controlled Retrieval-augmented Context Evaluation for Long-form RAG (CRUX).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from ragworth.calls.programs import Program
from ragworth.judging.contract import option, prompt_option
from ragworth.judging.findings import AspectValues
from ragworth.judging.judge import AnnotationItem, Annotator, LabelJudge
from ragworth.judging.labels import RATING_SCALE, LabelScale
from ragworth.metrics.utility import ANSWERS_SHOWN


@dataclass(frozen=True)
class RelevanceAnnotator(LabelJudge[AnnotationItem], Annotator):
    """1 where the passage holds the answer and 0 where not; or a grade from 0 to 3, without accepted answers.

    The value is the likelier label. ``p`` is the probability of YES among the labels, ``expected`` the mean of the
    grades weighted by their probabilities, ``mass`` how much probability the labels hold together. A model that was
    taught to decline, such as the embedded one, is asked whether it answers from the passage (``answerability``): that
    is the reader's own opinion, by which distraction can't be measured. With accepted answers, use ``containment``.
    """

    graded: bool = option(False, "grades 0 to 3, without looking at accepted answers")
    prompt: str = prompt_option("relevance")
    keep_cut: bool = option(False, "keep values of passages that did not fit whole")

    kind = "relevance"
    title = "whether the passage holds the answer, by the model as judge"
    aspects = ("relevance",)
    prompts = ("relevance", "relevance-graded")
    scales: ClassVar[Mapping[str, LabelScale]] = {
        "relevance": LabelScale(("YES", "NO"), (1.0, 0.0), ("relevant", "irrelevant")),
        "relevance-graded": LabelScale.numbers(0, 3),
    }
    answerable = True

    @property
    def prompt_names(self) -> tuple[str, ...]:
        return self.prompts[1:] if self.graded and self.way != "answerability" else super().prompt_names

    @property
    def answerability_scale(self) -> LabelScale:
        return self.scales[self.prompts[int(self.graded)]]

    def program(self, item: AnnotationItem) -> Program[AspectValues]:
        values = {slot: self.fill(item, slot) for slot in ("query", "passage")}
        values["answers"] = () if self.graded else self.fill(item, "answers")
        found = yield from self.label(**values)
        seen = self.way != "answerability" and "answers" in self.template(self.prompt_names[0]).names
        return self.finding(found, ANSWERS_SHOWN if seen and values["answers"] else "")


@dataclass(frozen=True)
class RatingAnnotator(LabelJudge[AnnotationItem], Annotator):
    """A rating from 0 (does not answer the sub-question) to 5 (answers it fully).

    The value is the likeliest rating, as whole a number as a human's; ``expected`` is the mean weighted by the
    ratings' probabilities, and ``mass`` how much probability the six hold together. A model that was taught to decline,
    such as the embedded one, is asked whether it answers the sub-question from the passage (``answerability``): its
    ratings are that probability mapped to 0–5, not graded quality.
    """

    prompt: str = prompt_option("rating")
    keep_cut: bool = option(False, "keep values of passages that did not fit whole")

    kind = "ratings"
    title = "how well the passage answers each sub-question, 0 to 5"
    unit = "rating"
    aspects = ("rating",)
    compares = ("subquestions",)
    prompts = ("rating",)
    scales: ClassVar[Mapping[str, LabelScale]] = {"rating": RATING_SCALE}
    answerable = True
    details: ClassVar[Mapping[str, Any]] = {"expected": pl.Float64, "mass": pl.Float64, "cut": pl.Int64}

    def fill(self, item: AnnotationItem, slot: str) -> object:
        return super().fill(item, "subquestion" if slot == "query" else slot)
