"""Grades in words, such as "Correct Answer", as numbers. A word has the same value in every file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ragworth.core.errors import FormatError, format_list, quote_short

TRUE_WORDS = (
    "true",
    "yes",
    "y",
    "✅",
    "✔",
    "✓",
    "👍",
    "up",
    "thumbs up",
    "thumbs_up",
    "like",
    "liked",
    "upvote",
    "upvoted",
)
FALSE_WORDS = (
    "false", "no", "n", "❌", "✗", "✘", "👎", "down", "thumbs down", "thumbs_down", "dislike", "disliked", "downvote",
    "downvoted",
)  # fmt: skip
"""True and false, as signs, and as people vote."""

GRADE_WORDS: dict[str, tuple[str, ...]] = {
    "correct": ("correct", "correct answer", "right", "pass", "passed", "c", "accurate", "good", *TRUE_WORDS),
    "partially-correct": ("partially correct", "partially-correct", "partial", "partially_correct", "p"),
    "abstained": ("abstained", "abstain", "refused", "refusal", "no answer", "failed to answer", "unanswered"),
    "wrong": ("wrong", "incorrect", "incorrect answer", "fail", "failed", "i", "inaccurate", "bad", *FALSE_WORDS),
}
GRADES = {word: grade for grade, words in GRADE_WORDS.items() for word in words}
THREE_WAY = {"correct": 1.0, "partially-correct": 0.5, "abstained": 0.0, "wrong": -1.0}
"""Values of grades in words, as graders give them."""

YES_OR_NO = {**THREE_WAY, "wrong": 0.0}
"""Values where the name of the grade is a question, such as: is the answer correct?"""
YES_OR_NO_ASPECTS = frozenset(("correct", "is_correct", "correctness", "wrong", "abstained", "is_abstained"))
TRUTH_WORDS = frozenset((*TRUE_WORDS, *FALSE_WORDS))
GRADE_NAMES = frozenset(("grade", "label", "verdict", "annotation", "value"))
"""Names of grades. No elsewhere, such as for "helpful", is 0; in a grade it means wrong."""

KNOWN_ASPECTS = frozenset(("human", "grade", "correct", "abstained"))
"""Names that only grades have. Where some grades of these can be read, the others are mistakes."""

MISSING_WORDS = frozenset(
    ["", "n/a", "na", "n.a.", "<na>", "none", "nan", "null", "unsure", "not sure", "?", "-", "–", "skip", "blank"]
)
"""What people write where they gave no grade."""

IN_WORDS = " (grades in words)"
"""After the source of a grade that was a word: its value is known to be one of the three-way scale."""

MEAN_OF_WORDS = " (mean of grades in words)"
"""After the source of the mean of several grades in words that differ."""

LETTER = re.compile(r"[A-Fa-f][+\-−–]?")
"""Grades of schools."""

PERCENT = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*%")
SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*/\s*(\d+)")
DECIMAL_COMMA = re.compile(r"([+-]?(?:0,\d+|\d+,\d{1,2}))(\s*%)?")
"""Numbers as many spreadsheets write them. The comma of 1,000 may separate thousands."""
Grade = float | bool | str | None


class GradeError(FormatError):
    """Grades that can't be read. Going on without them would change what is compared."""


class ReadGrades(NamedTuple):
    """Grades as numbers, and by position: which are words, which say that there is no grade, which are unknown.

    ``clash`` are the positions of two grades of the same name on different scales, such as 80% and 80.
    """

    values: list[float | None]
    words: set[int]
    missing: list[int]
    unknown: list[int]
    clash: tuple[int, int] | None = None


def read_grades(cells: Sequence[Grade], aspect: str | Sequence[str]) -> ReadGrades:
    """Read grades: numbers, percentages, true or false, and words. ``aspect``: of all of them, or of each."""
    found = ReadGrades([], set(), [], [])
    names = [aspect] * len(cells) if isinstance(aspect, str) else aspect
    for number, (cell, name) in enumerate(zip(cells, names, strict=True)):
        word = str(cell).strip().rstrip("\ufe0f").lower() if isinstance(cell, bool | str) else ""
        if isinstance(cell, bool | str) and word in GRADES:
            found.words.add(number)
            found.values.append(_scale(name.lower(), word)[GRADES[word]])
            continue
        value = number_of(word) if isinstance(cell, str) else cell
        found.values.append(value)
        if isinstance(cell, str) and value is None:
            # An empty cell is missing, too, but nobody wrote anything there.
            (found.missing if word in MISSING_WORDS else found.unknown).append(number)
    return found._replace(clash=_find_clash(cells, found, names))


def _find_clash(cells: Sequence[Grade], found: ReadGrades, names: Sequence[str]) -> tuple[int, int] | None:
    """A word, percentage or share, all of which are from −1 to 1, and a number beyond that under the same name."""
    beyond = {
        name: number
        for number, (value, name) in enumerate(zip(found.values, names, strict=True))
        if value is not None and abs(value) > 1 and not _has_unit(cells[number])
    }
    if not beyond:
        return None
    within = (number for number, cell in enumerate(cells) if number in found.words or _has_unit(cell))
    return next(((number, beyond[names[number]]) for number in within if names[number] in beyond), None)


def _has_unit(cell: Grade) -> bool:
    """Whether a cell is a percentage or a share such as 4/5."""
    return isinstance(cell, str) and re.search(r"[%/]", cell) is not None and number_of(cell.strip()) is not None


def scales_error(first: Grade, second: Grade, name: str) -> GradeError:
    """The error for two grades of the same name on different scales."""
    return GradeError(
        f"{name!r} has {quote_short(first, 24)} and {quote_short(second, 24)}, which are on different scales",
        expected="grades of one name on one scale: words, percentages and shares are from −1 to 1",
        remedy="write all of them on one scale, or in columns of their own",
    )


def _scale(aspect: str, word: str) -> dict[str, float]:
    graded = "human" in aspect or aspect in GRADE_NAMES or aspect.endswith("-grade")
    return YES_OR_NO if aspect in YES_OR_NO_ASPECTS or (word in TRUTH_WORDS and not graded) else THREE_WAY


def number_of(text: str) -> float | None:
    """A number, a percentage or a share such as 4/5; the decimal sign may be a comma, and the minus a longer one."""
    text = text.replace("−", "-")
    if DECIMAL_COMMA.fullmatch(text):
        text = text.replace(",", ".")
    if (share := SHARE.fullmatch(text)) and 0 < float(share[2]) >= float(share[1]):
        return float(share[1]) / float(share[2])
    if percent := PERCENT.fullmatch(text):
        return float(percent[1]) / 100
    try:
        value = float(text)
    except ValueError:
        return None
    return value if abs(value) < float("inf") else None


def expected_grades() -> str:
    """What may stand in a column of grades, in words."""
    words = format_list([repr(words[0]) for words in GRADE_WORDS.values()])
    return f"numbers, percentages, true or false, yes or no, or {words}; n/a or nothing where there is no grade"


def grade_remedy(unknown: Sequence[Grade]) -> str:
    """What to do about grades that can't be read."""
    if all(isinstance(grade, str) and LETTER.fullmatch(grade.strip()) for grade in unknown):
        return (
            "write letters as numbers, such as 4 for A, 3 for B, 2 for C, 1 for D and 0 for F: "
            "the letters don't say how far apart the grades are"
        )
    return "fix these grades, or leave them empty"


def source_of(source: str, words: Sequence[bool], values: Sequence[float]) -> str:
    """The source of a grade that is the mean of ``values``; ``words`` says which of them were words."""
    if not words or not all(words):
        return source
    return source + (IN_WORDS if len(set(values)) == 1 else MEAN_OF_WORDS)
