"""The six tables that pass between stages: contexts, judgments, ratings, answers, outcomes and scores."""

from ragworth.tables.definitions import (
    DEEPEST,
    EMPTY,
    OK,
    TRUNCATED,
    WRITTEN,
    Answers,
    Contexts,
    Judgments,
    Outcomes,
    Ratings,
    Scores,
    Table,
    constant,
)

__all__ = [
    "DEEPEST",
    "EMPTY",
    "OK",
    "TRUNCATED",
    "WRITTEN",
    "Answers",
    "Contexts",
    "Judgments",
    "Outcomes",
    "Ratings",
    "Scores",
    "Table",
    "constant",
]
