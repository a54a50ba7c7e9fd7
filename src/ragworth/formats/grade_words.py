"""Grades in words, such as "Correct Answer", as numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

GRADE_WORDS: dict[str, tuple[str, ...]] = {
    "correct": ("correct", "correct answer", "right", "true", "yes", "pass", "passed", "c", "accurate", "good"),
    "partially-correct": ("partially correct", "partially-correct", "partial", "partially_correct", "p"),
    "abstained": ("abstained", "abstain", "refused", "refusal", "no answer", "failed to answer", "unanswered", "n"),
    "wrong": ("wrong", "incorrect", "incorrect answer", "false", "no", "fail", "failed", "i", "inaccurate", "bad"),
}
GRADES = {word: grade for grade, words in GRADE_WORDS.items() for word in words}
THREE_WAY = {"correct": 1.0, "partially-correct": 0.5, "abstained": 0.0, "wrong": -1.0}
"""Values of grades in words if some of them say more than correct or wrong; as graders give them."""


def unknown_words(values: Iterable[str]) -> list[str]:
    """Words that are no grades, each once."""
    words = dict.fromkeys(value.strip().lower() for value in values)
    return [word for word in words if word and word not in GRADES]


def grade_numbers(values: Sequence[str]) -> list[float | None]:
    """Numbers of grades in known words; None for blanks. If all are correct or wrong, they are 1 and 0."""
    words = [value.strip().lower() for value in values]
    grades = {GRADES[word] for word in words if word}
    scale = THREE_WAY if grades & {"partially-correct", "abstained"} else {"correct": 1.0, "wrong": 0.0}
    return [scale[GRADES[word]] if word else None for word in words]
