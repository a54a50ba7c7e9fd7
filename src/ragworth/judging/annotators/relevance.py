"""``relevance``: whether a passage holds the answer, by a judge who sees the accepted answers if there are any."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from ragworth.calls.programs import Program
from ragworth.judging.annotators.contract import AnnotationItem, Annotator
from ragworth.judging.answerability import ask_answerability, declining_label
from ragworth.judging.contract import option, prompt_option
from ragworth.judging.findings import AspectValues, value_unless_cut
from ragworth.judging.labels import LabelMethod, LabelScale, ask_label, choose_label_method, label_method_option
from ragworth.metrics.utility import ANSWERS_SHOWN

RELEVANCE_LABELS = LabelScale(("YES", "NO"), (1.0, 0.0), ("relevant", "irrelevant"))
RELEVANCE_GRADES = LabelScale.numbers(0, 3)


@dataclass(frozen=True)
class RelevanceAnnotator(Annotator):
    """1 where the passage holds the answer and 0 where not; or a grade from 0 to 3, without accepted answers.

    The value is the likelier label. ``p`` is the probability of YES among the labels, ``expected`` the mean of the
    grades weighted by their probabilities, ``mass`` how much probability the labels hold together. A model that was
    taught to decline, such as the embedded one, is asked whether it answers from the passage (``answerability``): that
    is the reader's own opinion, by which distraction can't be measured. With accepted answers, use ``containment``.
    """

    graded: bool = option(False, "grades 0 to 3, without looking at accepted answers")
    prompt: str = prompt_option("relevance")
    how: str = label_method_option()
    length: int = option(32, "maximum tokens of what the model writes", low=1)
    keep_cut: bool = option(False, "keep values of passages that did not fit whole")

    kind: ClassVar[str] = "relevance"
    title: ClassVar[str] = "whether the passage holds the answer, by the model as judge"
    aspects: ClassVar[tuple[str, ...]] = ("relevance",)
    prompts: ClassVar[tuple[str, ...]] = ("relevance", "relevance-graded")
    scales: ClassVar[Mapping[str, LabelScale]] = {"relevance": RELEVANCE_LABELS, "relevance-graded": RELEVANCE_GRADES}
    labelled: ClassVar[bool] = True
    details: ClassVar[Mapping[str, Any]] = {
        "p": pl.Float64,
        "expected": pl.Float64,
        "mass": pl.Float64,
        "cut": pl.Int64,
    }

    def check(self) -> None:
        _ = self._way

    @property
    def _way(self) -> LabelMethod:
        return choose_label_method(self.card, self.how, "relevance", answerable=True, own_prompt=bool(self.prompt))

    @property
    def prompt_names(self) -> tuple[str, ...]:
        if self._way == "answerability":
            return ("abstention",)
        return ("relevance-graded",) if self.graded else ("relevance",)

    def program(self, item: AnnotationItem) -> Program[AspectValues]:
        query, passage = self.texts.query(item.query), self.texts.passage(item.passage)
        answers = () if self.graded else self.texts.known_answers(item.query)
        (name,), way = self.prompt_names, self._way
        prompt, template = self.ask(name, query=query, passage=passage, answers=answers), self.template(name)
        if way == "answerability":
            scale = RELEVANCE_GRADES if self.graded else RELEVANCE_LABELS
            found = yield from ask_answerability(prompt, scale, self.card, declining_label(template))
        else:
            found = yield from ask_label(prompt, self.scale(name), self.card, way, length=self.length)
        shown = way != "answerability" and answers and "answers" in template.names
        how = " · ".join([found.estimator, ANSWERS_SHOWN]) if shown else found.estimator
        detail = {"raw": found.raw, "mass": found.mass, "expected": found.expected, "cut": found.usage.cut}
        if found.probabilities is not None and not self.graded:
            detail |= {"p": found.probabilities[0] / (found.mass or 1.0), "expected": None}
        return AspectValues({"relevance": value_unless_cut(found.value, found.usage, self.keep_cut)}, detail, how)
