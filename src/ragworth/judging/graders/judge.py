"""``judge`` and ``ideal``: grades by a model that compares an answer with the accepted or the ideal one.

Papers: Trappolini, Cuconasu et al., Redefining Retrieval Evaluation in the Era of LLMs (correct, abstained or wrong);
Schwartz, Vasilyev and Sawaya, How important is Recall for Measuring Retrieval Quality? (1 to 5).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, ClassVar

import polars as pl

from ragworth.calls.programs import NoValue, Program, combine_programs
from ragworth.core.errors import InputError
from ragworth.judging.answers import ORACLE_SYSTEM
from ragworth.judging.contract import option, prompt_option
from ragworth.judging.findings import AspectValues, judgment_warnings
from ragworth.judging.graders.text import ABSTAINED, CORRECT, GRADER_VALUES, WRONG
from ragworth.judging.judge import Grader, LabelJudge
from ragworth.judging.labels import LabelScale, all_found
from ragworth.judging.text_lookup import Answer

GRADE_LABELS = LabelScale(
    ("CORRECT", "WRONG", "ABSTAINED"), (GRADER_VALUES[CORRECT], GRADER_VALUES[WRONG], GRADER_VALUES[ABSTAINED])
)
"""Words that begin with different letters, so that a first token tells them apart."""

NO_IDEAL = "no-ideal"
GOOD_SCORE = 4.0
"""A judge that gives ideal answers less than this against themselves, in the mean, is not to be trusted."""


@dataclass(frozen=True)
class JudgeGrader(LabelJudge[Answer], Grader):
    """1 correct, 0 abstained, −1 wrong, by a model as judge; ``label`` has the word.

    The judge sees question, accepted answers and answer, and gives one of three labels; the likeliest one counts.
    ``expected`` is the mean of the three values weighted by their probabilities, and ``mass`` how much probability the
    labels hold together. The judge does not see the passages.
    """

    prompt: str = prompt_option("grade")

    kind = "judge"
    title = "correct, abstained or wrong, by the model as judge"
    version = 2
    aspects = ("grade",)
    compares = ("queries", "answers")
    prompts = ("grade",)
    scales: ClassVar[Mapping[str, LabelScale]] = {"grade": GRADE_LABELS}
    details: ClassVar[Mapping[str, Any]] = {
        "label": pl.String,
        "expected": pl.Float64,
        "mass": pl.Float64,
        "probabilities": pl.List(pl.Float64),
    }

    def fill(self, item: Answer, slot: str) -> object:
        return self.texts.answers(item.query) if slot == "answers" else super().fill(item, slot)

    def notes(self, frame: pl.DataFrame, controls: Sequence[AspectValues | NoValue]) -> list[str]:
        return judgment_warnings(frame, "grade", "label")


@dataclass(frozen=True)
class IdealGrader(LabelJudge[Answer], Grader):
    """A score from 1 (far less than the ideal answer holds) to 5 (all of it), by a model as judge.

    The ideal answer is the one from the oracle's context, in the same table of answers; or an accepted answer, the one
    that the answer does best against. The value is the likeliest score; ``expected`` is the mean weighted by the
    scores' probabilities, and ``mass`` how much probability the five hold together. The ideal answers have no outcome
    of their own; what the judge gives them against themselves, which should be 5, is in the notes.
    """

    ideal: str = option("oracle", "where ideal answers come from", choices=("oracle", "accepted"))
    system: str = option(ORACLE_SYSTEM, "the system whose answers are ideal")
    prompt: str = prompt_option("ideal")

    kind = "ideal"
    title = "how much of an ideal answer it holds, 1 to 5, by the model as judge"
    aspects = ("ideal",)
    compares = ("queries",)
    prompts = ("ideal",)
    scales: ClassVar[Mapping[str, LabelScale]] = {"ideal": LabelScale.numbers(1, 5)}
    details: ClassVar[Mapping[str, Any]] = {
        "expected": pl.Float64,
        "mass": pl.Float64,
        "probabilities": pl.List(pl.Float64),
        "against": pl.String,
    }

    def check(self) -> None:
        super().check()
        if self.ideal == "oracle" and not any(each.system == self.system for each in self.book.answers):
            raise InputError(
                f"there are no answers of the system {self.system!r}",
                expected="ideal answers, to compare with",
                remedy="ragworth answer --oracle makes them; or name their system (system=NAME), or take accepted "
                "answers (ideal=accepted)",
            )

    def check_for(self, answers: Sequence[Answer]) -> None:
        super().check_for(answers)
        if self.ideal == "accepted":
            self.require_inputs(answers, self.texts.answers, "accepted answers", "answers")

    def judged(self, item: Answer) -> bool:
        return self.ideal == "accepted" or item.system != self.system

    def control(self, answer: Answer) -> bool:
        return True

    def program(self, item: Answer) -> Program[AspectValues]:
        query, text, ideals = self.texts.query(item.query), self.text(item), self._ideals(item)
        # One that failed might have been the best.
        labels = all_found(
            (yield from combine_programs([self.label(query=query, answer=text, ideal=ideal) for ideal in ideals]))
        )
        best = max(range(len(labels)), key=lambda n: (labels[n].value, labels[n].expected or 0.0, -n))
        finding = self.finding(labels[best])
        return finding._replace(detail={**finding.detail, "against": ideals[best]})

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

    def notes(self, frame: pl.DataFrame, controls: Sequence[AspectValues | NoValue]) -> list[str]:
        values = [one.values["ideal"] for one in controls if isinstance(one, AspectValues)]
        scores = [value for value in values if isinstance(value, float)]
        notes = super().notes(frame, controls)
        if not scores:
            return notes
        mean, best = fmean(scores), self.scales["ideal"].values[-1]
        notes.append(f"against itself the ideal answer gets a mean of {mean:.2f} ({best:g} expected)")
        if mean < GOOD_SCORE:
            notes.append(
                f"a mean below {GOOD_SCORE:g} of answers against themselves: don't trust this model's grades, "
                "which stay in the table"
            )
        return notes
