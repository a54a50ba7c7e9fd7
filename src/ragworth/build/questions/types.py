"""The kinds of questions and the styles of users that a plan can ask for."""

from __future__ import annotations

from typing import NamedTuple


class QuestionType(NamedTuple):
    """A kind of question, the share of it in a plan by default, and how a model is told to write it."""

    name: str
    share: float
    passages: int
    """How many passages a question rests on."""
    task: str


QUESTION_TYPES = {
    each.name: each
    for each in (
        QuestionType("fact", 30, 1, "Ask for one fact, such as a name or a term, that the passage states."),
        QuestionType("numeric", 15, 1, "Ask for a number or an amount that the passage states."),
        QuestionType("time", 10, 1, "Ask for a date, a year or a duration that the passage states."),
        QuestionType("list", 10, 1, "Ask for all items of a list that the passage gives. The answer names them all."),
        QuestionType("comparison", 10, 2, "Ask for a comparison that needs one fact from each of the two passages."),
        QuestionType("multi-passage", 10, 2, "Ask a question that nobody can answer without both passages."),
        QuestionType(
            "unanswerable",
            15,
            1,
            "Ask something that a reader of the passage may well want to know and that it does not say.",
        ),
    )
}

STYLES = {
    "question": (60.0, "a complete question"),
    "keywords": (20.0, "a few key words, as typed into a search box, without a question mark"),
    "chat": (20.0, "a casual message to an assistant, in one sentence"),
}
"""How users put a question: the share by default, and the words for a model."""
