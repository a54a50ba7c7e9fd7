"""``containment``: relevance without a model, by whether a passage contains an accepted answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from ragworth.calls.programs import NoValue
from ragworth.core.errors import quote_short
from ragworth.data import UNDECIDED
from ragworth.judging.findings import AspectValues
from ragworth.judging.judge import AnnotationItem, Annotator
from ragworth.text_match.matching import is_character, match_answer, to_matchable
from ragworth.text_match.normalise import canonical_words

SHORT_ANSWER = 5
"""Most words of an accepted answer that a passage would contain word for word (docs/judgments.md has the evidence)."""

POLAR_WORDS = ("yes", "no", "true", "false")


@dataclass(frozen=True)
class ContainmentAnnotator(Annotator):
    """1 if the passage contains an accepted answer, matched as in grading (numbers and dates in any spelling), else 0.

    No model is asked. A passage that gives a short answer in other words counts as irrelevant, and one that mentions it
    in passing as relevant. A passage rarely repeats a sentence, and no passage contains a "yes": unless all accepted
    answers are short, one that contains none of them has no value.
    """

    kind = "containment"
    title = "relevance by whether the passage contains an accepted answer; asks no model"
    version = 2
    aspects = ("relevance",)
    compares = ("answers",)
    asks_model = False
    details: ClassVar[Mapping[str, Any]] = {"why": pl.String}

    @property
    def source(self) -> str:
        return "containment of an accepted answer"

    def decides(self, query: str) -> bool:
        """Return whether every passage gets a value: a relevant passage would contain any of the accepted answers."""
        answers = self.texts.known_answers(query)
        return bool(answers) and all(_is_short(text) and not _is_polar(text) for text in answers)

    def value(self, item: AnnotationItem) -> AspectValues:
        passage = to_matchable(self.texts.passage(item.passage))
        for answer in self.texts.answers(item.query):
            if not _is_polar(answer) and (how := match_answer(passage, answer)) is not None:
                return AspectValues({"relevance": 1.0}, {"why": f"{how} {quote_short(answer)}"})
        if not self.decides(item.query):
            raise NoValue(UNDECIDED, "contains no accepted answer, but may give one that is long, yes or no")
        return AspectValues({"relevance": 0.0}, {"why": "contains no accepted answer"})


def _is_short(answer: str) -> bool:
    """Return whether an answer has few words; in scripts without blanks, two characters count as one."""
    return sum(0.5 if is_character(word) else 1 for word in to_matchable(answer).words) <= SHORT_ANSWER


def _is_polar(answer: str) -> bool:
    """Whether an answer begins with yes or no, so that its other words alone may say the opposite."""
    words = canonical_words(answer)
    return bool(words) and words[0] in POLAR_WORDS
