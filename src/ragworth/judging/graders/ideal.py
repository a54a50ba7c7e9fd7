"""``ideal``: how much of an ideal answer an answer holds, from 1 to 5, by a model as judge.

Paper: Schwartz, Vasilyev and Sawaya, How important is Recall for Measuring Retrieval Quality?
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import Any, ClassVar

import polars as pl

from ragworth.calls.programs import NoValue, Program, combine_programs
from ragworth.core.errors import InputError
from ragworth.judging.answers.answer_book import Answer
from ragworth.judging.answers.writer import ORACLE_SYSTEM
from ragworth.judging.contract import option, prompt_option
from ragworth.judging.findings import AspectValues
from ragworth.judging.graders.contract import Grader
from ragworth.judging.labels import LabelResult, LabelScale, ask_label, choose_label_method, label_method_option

IDEAL_SCALE = LabelScale.numbers(1, 5)
NO_IDEAL = "no-ideal"

GOOD_SCORE = 4.0
"""A judge that gives ideal answers less than this against themselves, in the mean, is none."""


@dataclass(frozen=True)
class IdealGrader(Grader):
    """A score from 1 (far less than the ideal answer holds) to 5 (all of it), by a model as judge.

    The ideal answer is the one from the oracle's context, in the same table of answers; or an accepted answer, the one
    that the answer does best against. The value is the likeliest score; ``expected`` is the mean weighted by the
    scores' probabilities, and ``mass`` how much probability the five hold together. The ideal answers have no outcome
    of their own; what the judge gives them against themselves, which should be 5, is in the notes.
    """

    ideal: str = option("oracle", "where ideal answers come from", choices=("oracle", "accepted"))
    system: str = option(ORACLE_SYSTEM, "the system whose answers are ideal")
    prompt: str = prompt_option("ideal")
    how: str = label_method_option()
    length: int = option(32, "maximum tokens of what the model writes", low=1)

    kind: ClassVar[str] = "ideal"
    title: ClassVar[str] = "how much of an ideal answer it holds, 1 to 5, by the model as judge"
    aspects: ClassVar[tuple[str, ...]] = ("ideal",)
    asks_model: ClassVar[bool] = True
    prompts: ClassVar[tuple[str, ...]] = ("ideal",)
    details: ClassVar[Mapping[str, Any]] = {
        "expected": pl.Float64,
        "mass": pl.Float64,
        "probabilities": pl.List(pl.Float64),
        "against": pl.String,
    }

    def check(self) -> None:
        choose_label_method(self.model, self.how, "ideal")
        _ = self.scale
        if self.ideal == "oracle" and not any(each.system == self.system for each in self.book.answers):
            raise InputError(
                f"there are no answers of the system {self.system!r}",
                expected="ideal answers, to compare with",
                remedy="ragworth answer --oracle makes them; or name their system (system=NAME), or take accepted "
                "answers (ideal=accepted)",
            )

    @cached_property
    def scale(self) -> LabelScale:
        """The labels, as the prompt writes them."""
        return IDEAL_SCALE.for_prompt(self.template)

    def check_for(self, answers: Sequence[Answer]) -> None:
        self.need_queries(answers)
        if self.ideal == "accepted":
            self.need_accepted(answers)

    def graded(self, answer: Answer) -> bool:
        return self.ideal == "accepted" or answer.system != self.system

    def control(self, answer: Answer) -> bool:
        return True

    def program(self, answer: Answer) -> Program[AspectValues]:
        query, text, ideals = self.texts.query(answer.query), self.text(answer), self._ideals(answer)
        way = choose_label_method(self.model, self.how, "ideal")
        asked = [self.template.render({"query": query, "answer": text, "ideal": ideal}) for ideal in ideals]
        made = yield from combine_programs(
            [ask_label(prompt, self.scale, self.model, way, length=self.length) for prompt in asked]
        )
        failed = next((one for one in made if isinstance(one, NoValue)), None)
        if failed is not None:  # it might have been the best
            raise failed
        good = [one for one in made if isinstance(one, LabelResult)]
        best = max(range(len(good)), key=lambda n: (good[n].value, good[n].expected or 0.0, -n))
        found = good[best]
        detail = {
            "raw": found.raw,
            "expected": found.expected,
            "mass": found.mass,
            "probabilities": list(found.probabilities) if found.probabilities is not None else None,
            "against": ideals[best],
        }
        return AspectValues({"ideal": found.value}, detail, found.estimator)

    def _ideals(self, answer: Answer) -> tuple[str, ...]:
        if self.ideal == "accepted":
            return self.texts.answers(answer.query)
        best = self.book.partner(self.system, answer.query, answer.repeat)
        if best is None:
            raise NoValue(NO_IDEAL, f"{self.system} has no answer to the query {answer.query!r}")
        try:
            return (self.text(best),)
        except NoValue as none:
            raise NoValue(NO_IDEAL, f"the answer of {self.system} has no text: {none.status}") from none

    def notes(self, answers: Sequence[Answer], controls: Sequence[AspectValues | NoValue]) -> list[str]:
        values = [one.values["ideal"] for one in controls if isinstance(one, AspectValues)]
        scores = [value for value in values if isinstance(value, float)]
        if not scores:
            return []
        mean, best = fmean(scores), IDEAL_SCALE.values[-1]
        notes = [f"against itself the ideal answer gets a mean of {mean:.2f} ({best:g} expected)"]
        if mean < GOOD_SCORE:
            notes.append(
                f"a mean below {GOOD_SCORE:g} of answers against themselves: this model is unfit as this judge"
            )
        return notes
