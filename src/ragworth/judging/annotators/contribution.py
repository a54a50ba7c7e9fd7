"""``contribution``: what each passage of a context does for the answer, next to all the others.

Shapley values or leave-one-out of the answer's log-probability: see `ragworth.judging.contribution`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import polars as pl

from ragworth.calls.programs import NoValue, Program, require_response
from ragworth.core.errors import format_count
from ragworth.judging.annotators.contract import AnnotationItem, AnnotationUnit, Annotator
from ragworth.judging.answers.answer_book import AnswerBook
from ragworth.judging.contract import option
from ragworth.judging.contribution.answer_value import ContextPrompts, check_answer, split_answer
from ragworth.judging.contribution.rows import DETAIL_COLUMNS, contribution_notes, details
from ragworth.judging.contribution.summary import ContributionOptions, aspects, outcome_values
from ragworth.judging.findings import AspectValues, reject_cut_passage, require_abilities
from ragworth.llm.contract import Generate, Generated, Score, Scored

GIVEN = "given"


@dataclass(frozen=True)
class ContributionAnnotator(ContributionOptions, Annotator):
    """How much of the answer's log-probability each passage of a context carries, in nats.

    The answer is what the model answers from the whole context, an accepted answer (the likeliest where there are
    several), or that of a file (--given). It is then scored with subsets of the passages. Contexts of up to 6 passages
    get exact Shapley values; larger ones Shapley values from random orders, until the ranking is certain enough.
    Outcomes of each context come first; --each writes a row for each passage, and --pairs-output one for each two
    passages.
    """

    answer: str = option(
        "generated", "whose log-probability is split: the model's own answer, or an accepted one",
        choices=("generated", "accepted"),
    )  # fmt: skip
    length: int = option(64, "maximum tokens of an answer that the model writes", low=1)
    book: AnswerBook | None = field(default=None, kw_only=True)
    """Answers that were given."""

    kind: ClassVar[str] = "contribution"
    title: ClassVar[str] = "how much each passage of a context does for the answer, next to the others"
    unit: ClassVar[AnnotationUnit] = "context"
    aspects: ClassVar[tuple[str, ...]] = aspects(accepted=False, shapley=True, cited=False)
    prompts: ClassVar[tuple[str, ...]] = ("reply",)
    slots: ClassVar[tuple[str, ...]] = ("query", "passages")
    details: ClassVar[Mapping[str, Any]] = DETAIL_COLUMNS
    takes_answers: ClassVar[bool] = True

    def check(self) -> None:
        asks = ("score",) if self.answer == "accepted" or self.book is not None else ("generate", "score")
        require_abilities(self.card, asks, "contribution")

    @property
    def value_names(self) -> tuple[str, ...]:
        return aspects(accepted=self.is_accepted, shapley=self.splits_by_shapley, cited=self.book is not None)

    @property
    def max_rounds(self) -> int:
        return self.split_rounds + (self.book is None)

    @property
    def is_accepted(self) -> bool:
        """Whether the answers are known to be right."""
        return self.answer == "accepted" and self.book is None

    @property
    def source(self) -> str:
        whose = GIVEN if self.book is not None else self.answer
        return " · ".join([super().source, f"{whose} answer", self.method])

    def plan_notes(self, items: Sequence[AnnotationItem]) -> list[str]:
        most = sum(self.design.most_subsets(len(item.passages)) for item in items)
        every = sum(1 << len(item.passages) for item in items)
        return [
            f"the answers of {format_count(len(items), 'context')} are scored with {most:,} subsets of their passages "
            f"at most, of {every:,}; equal ones are asked about once"
        ]

    def program(self, item: AnnotationItem) -> Program[AspectValues]:
        self.check_size(len(item.passages))
        texts = [self.texts.passage(passage) for passage in item.passages]
        prompts = ContextPrompts(self.template("reply"), self.texts.query(item.query), texts)
        answer = yield from self.find_answer(item, prompts, len(item.passages))
        split = yield from split_answer(prompts, item.passages, answer, self.design, item.query, self.keep_cut)
        values = outcome_values(split, item.passages, self.least, accepted=self.is_accepted)
        return AspectValues(values, details(split, item.passages, self.least), split.found.method)

    def find_answer(self, item: AnnotationItem, prompts: ContextPrompts, players: int) -> Program[str]:
        """The answer to split; ``players`` is how many passages, or groups of them, the whole context has."""
        if self.book is not None:
            given = self.book.partner(item.system, item.query, 0)
            if given is None:
                raise NoValue("no-answer", f"no answer of {item.system!r} to the query {item.query!r} is given")
            check_answer(given.words)
            return given.words
        everything = prompts.prompt(range(players))
        if self.answer == "accepted":
            accepted = self.texts.answers(item.query)
            if len(accepted) == 1:
                return accepted[0]
            outcomes = yield [Score(everything, answer.strip()) for answer in accepted]
            traces = [require_response(outcome, Scored).trace.logprobs for outcome in outcomes]
            means = [sum(logs) / len(logs) if logs else float("-inf") for logs in traces]
            return accepted[means.index(max(means))]
        reply = self.template("reply").reply
        (outcome,) = yield [Generate(everything, max_tokens=self.length, stop=reply.stop)]
        made = require_response(outcome, Generated)
        reject_cut_passage(made.usage, self.keep_cut)
        answer = reply.trim(made.outputs[0]).text.strip()
        check_answer(answer)
        return answer

    def conclude(
        self, frame: pl.DataFrame, controls: Sequence[AspectValues | NoValue]
    ) -> tuple[pl.DataFrame, list[str]]:
        notes = contribution_notes(frame)
        if self.book is not None and any(each.repeat for each in self.book.answers):
            notes.append("of several answers to a query, only the first is split")
        return frame, notes
