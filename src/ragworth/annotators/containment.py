"""``containment``: relevance without a model, by whether a passage contains an accepted answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from ragworth.annotators.contract import AnnotationItem, Annotator
from ragworth.calls.programs import NoValue, Program
from ragworth.errors import quote_short
from ragworth.tasks.findings import AspectValues
from ragworth.text_match.matching import match_answer, to_matchable
from ragworth.text_match.spelling import canonical_words

UNDECIDED = "undecided"
"""Status of a passage for a query whose accepted answers no passage would contain word for word."""

POLAR_WORDS = ("yes", "no", "true", "false")


@dataclass(frozen=True)
class ContainmentAnnotator(Annotator):
    """1 if the passage contains an accepted answer, matched as in grading (numbers and dates in any spelling), else 0.

    No model is asked. A passage that gives the answer in other words counts as irrelevant, and one that mentions it in
    passing as relevant. Answers such as "yes" can't be found in a passage; without any other, there is no value.
    """

    kind: ClassVar[str] = "containment"
    title: ClassVar[str] = "relevance by whether the passage contains an accepted answer; asks no model"
    aspects: ClassVar[tuple[str, ...]] = ("relevance",)
    prompts: ClassVar[tuple[str, ...]] = ()
    slots: ClassVar[tuple[str, ...]] = ()
    compares: ClassVar[tuple[str, ...]] = ("answers",)
    asks_model: ClassVar[bool] = False
    details: ClassVar[Mapping[str, Any]] = {"why": pl.String}

    @property
    def source(self) -> str:
        return "containment of an accepted answer"

    def decides(self, query: str) -> bool:
        """Whether a query has an accepted answer that a passage can contain."""
        return bool(self._findable(query))

    def program(self, item: AnnotationItem) -> Program[AspectValues]:
        yield from ()
        passage = to_matchable(self.texts.passage(item.passage))
        self.texts.answers(item.query)  # says so if there are none
        findable = self._findable(item.query)
        if not findable:
            raise NoValue(UNDECIDED, "the accepted answers are yes or no, which a passage does not contain")
        for answer in findable:
            if (how := match_answer(passage, answer)) is not None:
                return AspectValues({"relevance": 1.0}, {"why": f"{how} {quote_short(answer)}"})
        return AspectValues({"relevance": 0.0}, {"why": "contains no accepted answer"})

    def _findable(self, query: str) -> list[str]:
        return [text for text in self.texts.known_answers(query) if not _is_polar(text)]


def _is_polar(answer: str) -> bool:
    """Whether an answer begins with yes or no, so that its other words alone may say the opposite."""
    words = canonical_words(answer)
    return bool(words) and words[0] in POLAR_WORDS
