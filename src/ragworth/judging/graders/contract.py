"""The interface of graders.

A grader is a dataclass in one file of ``graders`` and one line in `GRADERS`. Its fields made with `setting` are its
settings, in Python and on the command line. It looks at one answer at a time: a grader that asks a model has
`judge`, a piece of work (`ragworth.calls.programs`); one that only compares has `value`. `NoValue`, raised
anywhere in them, becomes the status of the answer's outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from ragworth.calls.programs import NoValue, Program
from ragworth.core.errors import MissingInputError, ModelError, give_input
from ragworth.judging.answers.answer_book import Answer, AnswerBook
from ragworth.judging.contract import option, validate_options
from ragworth.judging.findings import AspectValues, describe_source, judgment_warnings
from ragworth.judging.text_lookup import TextLookup
from ragworth.llm import prompts
from ragworth.llm.contract import Card
from ragworth.llm.prompts.template import Template
from ragworth.text_match.sentences import without_citations


@dataclass(frozen=True)
class Grader:
    """A way to grade, with the texts of a collection, all answers, and a model if it needs one."""

    card: Card | None
    texts: TextLookup
    book: AnswerBook
    folder: str | Path | None = None
    """Folder with the user's own prompts."""

    citations: bool = option(True, "leave citations such as [2] in the answers; without, they are taken out first")

    kind: ClassVar[str]
    title: ClassVar[str]
    """A description in one line."""
    version: ClassVar[int] = 1
    """Incremented when the same answers get other values, so that workspaces grade them again."""
    aspects: ClassVar[tuple[str, ...]]
    """Names of the values."""
    asks_model: ClassVar[bool] = False
    """Whether it asks a model."""
    prompts: ClassVar[tuple[str, ...]] = ()
    """Names of the prompts it asks with."""
    rounds: ClassVar[int] = 1
    """Maximum rounds of calls for an answer; each depends on the responses to the one before."""
    single: ClassVar[bool] = True
    """Whether it makes one call per round for an answer."""
    details: ClassVar[Mapping[str, Any]] = {}
    """Columns of the frame in addition to the values, with their types."""
    averaged: ClassVar[tuple[str, ...]] = ()
    """Details that are averaged if a query has several answers."""

    def __post_init__(self) -> None:
        validate_options(self, self.kind)
        self.check()

    def check(self) -> None:
        """Refuse a model that lacks an ability, and a collection that lacks a required part."""

    def check_for(self, answers: Sequence[Answer]) -> None:
        """Refuse answers if nothing is known that any of them could be graded by."""

    def graded(self, answer: Answer) -> bool:
        """Whether an answer gets an outcome; answers that others are compared with don't."""
        return True

    def control(self, answer: Answer) -> bool:
        """Whether an answer without an outcome is judged anyway, as a control."""
        return False

    @property
    def expected_repeats(self) -> int:
        """Number of answers per query that an outcome should average; 0 for any."""
        return 0

    def prepare(self, answers: Sequence[Answer]) -> None:
        """Compute in one batch what would be slow for each answer."""

    def program(self, answer: Answer) -> Program[AspectValues]:
        """Grade one answer, asking the model."""
        yield from ()
        return self.value(answer)

    def value(self, answer: Answer) -> AspectValues:
        """Grade one answer without a model."""
        raise NotImplementedError

    def control_programs(self) -> Sequence[Program[AspectValues]]:
        """Programs whose expected result is known, which show whether the model is fit to judge."""
        return ()

    def unfit_reason(self, controls: Sequence[AspectValues | NoValue]) -> str:
        """Why the model is unfit, by the results of `control_programs`; empty if it is fit."""
        return ""

    def control_notes(self, controls: Sequence[AspectValues | NoValue]) -> Sequence[str]:
        """The results of `control_programs`, in words."""
        return ()

    def notes(self, answers: Sequence[Answer], controls: Sequence[AspectValues | NoValue]) -> Sequence[str]:
        """Notes on these answers and on the controls."""
        return ()

    def warnings(self, frame: pl.DataFrame) -> list[str]:
        """Warnings about the model's judgments, from the rows of single answers."""
        return judgment_warnings(frame, "grade") if self.asks_model else []

    @property
    def source(self) -> str:
        """The source of its values, in one line."""
        return describe_source(self.model, [self.template]) if self.asks_model else self.kind

    @property
    def prompt_name(self) -> str:
        """Name of the prompt, with these settings."""
        return self.prompts[0]

    @cached_property
    def template(self) -> Template:
        """The prompt; the setting ``prompt``, if there is one, replaces the default."""
        own = getattr(self, "prompt", "")
        own_set = self.card.prompts if self.card is not None else "fenced"
        return replace(prompts.load_prompt(own or self.prompt_name, self.folder, own_set), name=self.prompt_name)

    @property
    def model(self) -> Card:
        """The model to ask."""
        if self.card is None:
            raise ModelError(f"{self.kind} asks a model, and none was given", remedy="give a model")
        return self.card

    def require_inputs(
        self, answers: Sequence[Answer], lookup: Callable[[str], object], what: str, *inputs: str
    ) -> None:
        """Refuse answers if ``lookup`` finds nothing for any of their queries."""
        for query in dict.fromkeys(each.query for each in answers):
            try:
                lookup(query)
            except NoValue:
                continue
            return
        raise MissingInputError(self.kind, what, "no query of these answers has any", give_input(*inputs))

    def need_accepted(self, answers: Sequence[Answer]) -> None:
        """Refuse answers if none of their queries has an accepted answer."""
        self.require_inputs(answers, self.texts.answers, "accepted answers", "answers")

    def need_queries(self, answers: Sequence[Answer]) -> None:
        """Refuse answers if none of their queries has a text."""
        self.require_inputs(answers, self.texts.query, "texts of queries", "queries")

    def text(self, answer: Answer) -> str:
        """The text of an answer; raises `NoValue` if there is none."""
        return answer.words if self.citations else without_citations(answer.words) or answer.words
