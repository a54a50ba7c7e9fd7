"""The six tables that pass between stages: contexts, judgments, ratings, answers, outcomes and scores."""

from ragworth.tables.definitions import (
    ANSWERED_STATUSES,
    EMPTY_ANSWER,
    MAX_RANK,
    OK,
    TRUNCATED,
    UNDECIDED,
    Answers,
    Contexts,
    Judgments,
    Outcomes,
    Ratings,
    Scores,
    Table,
    constant_column,
)

__all__ = [
    "ANSWERED_STATUSES",
    "EMPTY_ANSWER",
    "MAX_RANK",
    "OK",
    "TRUNCATED",
    "UNDECIDED",
    "Answers",
    "Contexts",
    "Judgments",
    "Outcomes",
    "Ratings",
    "Scores",
    "Table",
    "constant_column",
]
