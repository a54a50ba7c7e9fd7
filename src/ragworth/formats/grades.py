"""Grades of answers: the one table of words and scales, which way a grade is better, and scales of ratings and labels.

=============================================== ====================================
written                                         value
=============================================== ====================================
correct, partly correct, abstained, wrong       1, 0.5, 0, −1
true and false, yes and no, pass and fail       1 and 0; 1 and −1 of a three-way grade
80 %                                            0.8
0.8, 4                                          the number, on a scale of its own
=============================================== ====================================

A word has the same value in every file. All grades of one name must be on one scale.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, NamedTuple

import polars as pl

from ragworth.core.errors import FormatError

Grade = float | bool | str | None
"""A grade as a file has it."""

THREE_WAY = {"correct": 1.0, "partially-correct": 0.5, "abstained": 0.0, "wrong": -1.0}
"""Values of three-way grades."""

VALUES_OF_WORDS = {
    **THREE_WAY,
    "partly-correct": 0.5,
    "partial": 0.5,
    "incorrect": -1.0,
    "refused": 0.0,
    "not-attempted": 0.0,
    "correct-answer": 1.0,
    "incorrect-answer": -1.0,
    "failed-to-answer": 0.0,
}
"""Values of the words of three-way grades: ours, SimpleQA's (*not attempted*) and FinanceBench's (… *answer*)."""

TRUTH = dict.fromkeys(("true", "yes", "pass", "passed"), 1.0) | dict.fromkeys(("false", "no", "fail", "failed"), 0.0)
"""Values of the words of yes-or-no questions. In a three-way grade, they mean correct and wrong."""

MISSING = frozenset(("", "n/a", "na", "none", "nan", "null", "unsure"))
"""What people and programs write where they gave no grade."""

QUESTIONS = frozenset(("correct", "is_correct", "correctness", "abstained", "is_abstained"))
"""Names of grades that ask a question: no is 0."""
THREE_WAY_NAMES = frozenset(("grade", "label", "verdict", "annotation", "value"))
"""Names of grades of which no means wrong; so does it in people's grades, whose names contain ``human``."""
PEOPLE = "human"

IN_WORDS = " (grades in words)"
"""After the source of a grade that was a word: its value is known to be one of the three-way scale."""
MEAN_OF_WORDS = " (mean of grades in words)"
"""After the source of the mean of several grades in words that differ."""

Direction = Literal[1, 0, -1]
"""1 if higher is better, −1 if lower is, 0 if neither or unknown."""

VERDICTS = frozenset(("correct", "is_correct", "correctness", "answer_correctness", "accuracy", "pass", "verdict"))
"""Names of grades that say how good an answer is as a whole."""
HIGHER = VERDICTS | {
    *("human", "human_label", "grade", "score", "f1", "precision", "recall", "includes", "semantic_similarity"),
    *("faithfulness", "groundedness", "factual_correctness", "answer_relevance", "answer_relevancy"),
    *("context_relevance", "context_precision", "context_recall"),
    *("contextual_relevancy", "contextual_precision", "contextual_recall"),
}
LOWER = frozenset(("wrong", "hallucination", "toxicity", "noise_sensitivity"))
PREFIXES: dict[str, Direction] = {"lower_": -1, "higher_": 1}
"""Names of grades whose direction is known, and how the name of any other says it."""


class GradeError(FormatError):
    """Grades that can't be read. Going on without them would change what is compared."""


def direction_of_name(name: str) -> Direction:
    """Return which way a grade is better; 0 if its name doesn't say it."""
    plain = plain_grade(name)
    for prefix, better in PREFIXES.items():
        if plain.startswith(prefix):
            return better
    bare = plain.removeprefix(f"{PEOPLE}_")
    is_preference = bare != plain and bare.endswith("preference")
    return 1 if is_preference or bare in HIGHER else -1 if bare in LOWER else 0


def is_verdict(name: str) -> bool:
    """Tell whether a grade, or the share of correct answers that follows from it, says how good a whole answer is."""
    return plain_grade(name.removesuffix("-correct")) in VERDICTS


def name_with_direction(name: str, better: Literal[1, -1]) -> str:
    """Return a name that says which way a grade is better, with ``higher_`` or ``lower_`` if it doesn't yet."""
    return name if direction_of_name(name) == better else f"{'higher' if better == 1 else 'lower'}_{name}"


def plain_grade(name: str) -> str:
    """Return a name in lower case with underscores, without settings: ``noise_sensitivity(mode=relevant)``."""
    return re.sub(r"\W+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])|[(\[].*", "_", name)).strip("_").lower()


def normalise_label(text: str) -> str:
    """Return a word of a scale as it is compared: in lower case, with hyphens."""
    return text.strip().lower().replace(" ", "-").replace("_", "-")


NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*(%?)", re.IGNORECASE)


class ParsedGrade(NamedTuple):
    """The value of a grade, and how it is written; ``missing`` says that there is no grade, ``unknown`` is no grade."""

    value: float | None
    kind: Literal["word", "percent", "number", "missing", "unknown"]


def parse_grade(text: str, name: str) -> ParsedGrade:
    """Read a grade with this name."""
    word = normalise_label(text)
    if word in VALUES_OF_WORDS or word in TRUTH:
        return ParsedGrade(_value_of_word(word, plain_grade(name)), "word")
    if word in MISSING:
        return ParsedGrade(None, "missing")
    number = NUMBER.fullmatch(text.strip())
    if number is None or float(number[1]) in (float("inf"), float("-inf")):
        return ParsedGrade(None, "unknown")
    return ParsedGrade(float(number[1]) / 100, "percent") if number[2] else ParsedGrade(float(number[1]), "number")


def is_three_way(name: str) -> bool:
    """Tell whether a grade with this name is correct, abstained or wrong, so that no means wrong."""
    plain = plain_grade(name)
    return PEOPLE in plain or plain in THREE_WAY_NAMES or plain.endswith("_grade")


def _value_of_word(word: str, name: str) -> float:
    if word in TRUTH:
        return 2 * TRUTH[word] - 1 if is_three_way(name) else TRUTH[word]
    return max(VALUES_OF_WORDS[word], 0.0) if name in QUESTIONS else VALUES_OF_WORDS[word]


class Scale(NamedTuple):
    """The numbers that judgments of passages may be."""

    name: str
    lowest: float
    highest: float
    expected: str
    whole: bool = False

    def has(self, value: float) -> bool:
        """Tell whether a number is on the scale."""
        return self.lowest <= value <= self.highest and (not self.whole or float(value).is_integer())


RATING = Scale("rating", 0, 5, "a whole number from 0 to 5", whole=True)
LABEL = Scale("label", float("-inf"), 100, "a label up to 100, because nDCG takes labels as gains")


def check_scale(values: pl.Series, scale: Scale, path: object, line_of: Callable[[int], int | None]) -> None:
    """Reject numbers off a scale; ``line_of`` gives the line of a row."""
    numbers = values.cast(pl.Float64)
    off = ~numbers.is_between(scale.lowest, scale.highest)
    wrong = (off | (numbers != numbers.round()) if scale.whole else off).fill_null(False).arg_true()
    if len(wrong):
        raise FormatError(
            f"the {scale.name} is {values[int(wrong[0])]:,.15g}",
            file=str(path),
            line=line_of(int(wrong[0])),
            more=(f"{len(wrong):,} {scale.name}s off the scale in all",) if len(wrong) > 1 else (),
            expected=scale.expected,
            remedy="map them to that scale; where one is missing, drop the row or give the reason in 'status'",
        )
