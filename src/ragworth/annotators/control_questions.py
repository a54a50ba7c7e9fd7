"""Small texts of an invented world, with one question that each answers and one that it does not.

A model that can judge at all tells the two apart. They are asked along with a user's own passages.
"""

from __future__ import annotations

from typing import NamedTuple


class ControlQuestion(NamedTuple):
    passage: str
    answered: str
    """A question that the passage answers."""
    unanswered: str
    """One that it does not."""


CONTROL_QUESTIONS = (
    ControlQuestion(
        "The Veldrin lighthouse was built in 1871 by the engineer Tomasina Oake. Its lamp burned whale oil until 1902.",
        "Who built the Veldrin lighthouse?",
        "How tall is the Veldrin lighthouse?",
    ),
    ControlQuestion(
        "Marrowfield grows three kinds of pear. The harvest begins in the second week of September and lasts a month.",
        "When does the pear harvest in Marrowfield begin?",
        "Who is the mayor of Marrowfield?",
    ),
    ControlQuestion(
        "The Quill Street tram runs every twelve minutes. A single ticket costs two crowns and is valid for an hour.",
        "How much does a single ticket of the Quill Street tram cost?",
        "In which year was the Quill Street tram opened?",
    ),
    ControlQuestion(
        "Osric Pell painted forty-one portraits in his life. The largest of them, of his sister, hangs in Harrow Hall.",
        "How many portraits did Osric Pell paint?",
        "Where was Osric Pell born?",
    ),
    ControlQuestion(
        "The river Annet rises in the Soke hills and flows south for eighty miles until it meets the sea at Dunmouth.",
        "Where does the river Annet meet the sea?",
        "What is the capital of the Republic of Tessaly?",
    ),
    ControlQuestion(
        "At the Lowen works, glass is melted at 1,450 degrees and blown by hand. The works employ sixty people.",
        "How many people do the Lowen works employ?",
        "Which team won the Harbour Cup in 1988?",
    ),
)
