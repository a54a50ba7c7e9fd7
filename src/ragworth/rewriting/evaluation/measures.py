"""What is measured of a rewrite itself: its length, whether it changes the turn, and whether it leaks an answer."""

from __future__ import annotations

from collections.abc import Sequence

from ragworth.collection import plain_text
from ragworth.conversations import Turn
from ragworth.text_match.overlap import containment

POLAR_ANSWERS = ("yes", "no", "true", "false")


def is_unchanged(text: str, turn: Turn) -> bool:
    """Whether a rewrite is the turn itself, apart from case and blanks."""
    return plain_text(text).casefold() == plain_text(turn.question).casefold()


def leaks_answer(text: str, turn: Turn, accepted: Sequence[str]) -> bool | None:
    """Whether a rewrite contains an accepted answer that nobody has said before; None without accepted answers.

    Such a rewrite answers the question from what the model knows, or makes the answer up: what it retrieves then
    doesn't depend on the question alone. "Yes" and the like can't leak.
    """
    answers = [answer for answer in accepted if answer.strip() and answer.strip().casefold() not in POLAR_ANSWERS]
    if not answers:
        return None
    said = " \n ".join([*(message.text for message in turn.history), turn.question])
    return any(containment(text, [answer]) > 0 and not containment(said, [answer]) for answer in answers)


def word_count(text: str) -> int:
    """Words of a rewrite, split at blanks."""
    return len(text.split())
