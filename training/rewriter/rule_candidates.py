"""Candidate rewrites by rules: what a small model can't write yet, so that there is something to choose from.

A turn gets the names of its history, one at a time: in the place of a pronoun, or at its end. Which of them belongs
there isn't known; the utility of what each retrieves has to tell. Gold rewrites are not used.
"""

from __future__ import annotations

import re

from ragworth.conversations import Turn
from training.rewriter.names import capitalised, fold

PRONOUN = re.compile(r"\b(it|they|them|he|she|him|there)\b", re.I)
POSSESSIVE = re.compile(r"\b(its|their|his|her)\b", re.I)
NAMES = 3
"""Names of the history that are tried, the latest first."""


def name_candidates(turn: Turn, number: int = NAMES) -> dict[str, str]:
    """Rewrites with a name of the history, by the rule that made them."""
    found: dict[str, str] = {}
    for place, name in enumerate(recent_names(turn)[:number], 1):
        found[f"name-{place}"] = _with_name(turn.question, name)
    return found


def recent_names(turn: Turn) -> list[str]:
    """The names in the history that the turn lacks, the latest first; the user's come before the assistant's."""
    asked = fold(turn.question)
    names: list[str] = []
    for role in ("user", "assistant"):
        said = [message.text for message in reversed(turn.history) if message.role == role]
        names += [name for text in said for name in capitalised(text)]
    unique = {fold(name): name for name in reversed(names)}
    return [name for key, name in reversed(unique.items()) if key not in asked]


def _with_name(question: str, name: str) -> str:
    for pattern, words in ((PRONOUN, name), (POSSESSIVE, f"{name}'s")):
        if pattern.search(question):
            return pattern.sub(words.replace("\\", r"\\"), question, count=1)
    end = "?" if question.rstrip().endswith("?") else ""
    return f"{question.rstrip().rstrip('?')} {name}{end}"
