"""``contribution``: what each passage that was shown did for the answer that was given.

The same as ``ragworth annotate contribution`` for answers that exist: see `ragworth.judging.contribution`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from ragworth.calls.programs import NoValue, Program
from ragworth.judging.answers.answer_book import Answer
from ragworth.judging.contribution.answer_value import ContextPrompts, check_answer, split_answer
from ragworth.judging.contribution.rows import DETAIL_COLUMNS, contribution_notes, details
from ragworth.judging.contribution.summary import ContributionOptions, aspects, outcome_values
from ragworth.judging.findings import AspectValues, describe_source, require_abilities
from ragworth.judging.graders.contract import Grader

UNKNOWN_CONTEXT = "unknown-context"
"""Status of an answer for which nobody says what was shown."""


def shown_passages(grader: Grader, answer: Answer) -> tuple[str, ...]:
    """The passages that an answer was written from; raises `NoValue` if unknown."""
    shown = grader.book.shown(answer.system, answer.query)
    if shown is None:
        raise NoValue(UNKNOWN_CONTEXT, f"it is not known which passages {answer.system!r} showed for {answer.query!r}")
    return shown


@dataclass(frozen=True)
class ContributionGrader(ContributionOptions, Grader):
    """How much of an answer's log-probability each passage that was shown carries.

    Citations are removed from the answer, which is then scored with subsets of the passages, in the prompt reply. An
    answer that declines has no value: there is no statement that a passage could contribute to.
    """

    kind: ClassVar[str] = "contribution"
    title: ClassVar[str] = "how much each passage did for the answer, next to the others"
    aspects: ClassVar[tuple[str, ...]] = aspects(accepted=False, shapley=True, cited=True)
    asks_model: ClassVar[bool] = True
    prompts: ClassVar[tuple[str, ...]] = ("reply",)
    single: ClassVar[bool] = False
    rounds: ClassVar[int] = 1000
    details: ClassVar[Mapping[str, Any]] = DETAIL_COLUMNS

    def check(self) -> None:
        require_abilities(self.model, ("score",), "contribution")

    def check_for(self, answers: Sequence[Answer]) -> None:
        self.need_queries(answers)

    @property
    def source(self) -> str:
        return describe_source(self.model, [self.template], self.method)

    def program(self, answer: Answer) -> Program[AspectValues]:
        shown = shown_passages(self, answer)
        self.check_size(len(shown))
        texts = [self.texts.passage(passage) for passage in shown]
        check_answer(answer.words)
        prompts = ContextPrompts(self.template, self.texts.query(answer.query), texts)
        split = yield from split_answer(prompts, shown, answer.words, self.design, answer.query, self.keep_cut)
        values = outcome_values(split, shown, self.least, accepted=False)
        if not self.splits_by_shapley:
            values["redundancy"] = NoValue("no-shapley", "leave-one-out alone can't tell what is redundant")
        return AspectValues(values, details(split, shown, self.least), split.found.method)

    def warnings(self, frame: pl.DataFrame) -> list[str]:
        return contribution_notes(frame)
