"""The six tables that pass between stages, with fixed schemas that are checked on creation.

============ ============================ =========================================
table        key                          values
============ ============================ =========================================
contexts     system, query, rank          passage, score
judgments    query, passage, aspect       value, status, source
ratings      query, passage, subquestion  value, status, source
answers      system, query, repeat        text, tokens, status, source
outcomes     system, query, aspect        value, status, source
scores       system, query, metric        value, status
============ ============================ =========================================

``status`` is ``ok`` or the reason why the value is missing. A row has a value exactly when its status is ``ok``: a
value that can't be computed is never 0 or NaN. Answers with status ``truncated`` have a text too.

Build a table from a Polars, pandas or Arrow table, a dict of columns or a list of dicts. ``frame`` is the checked
Polars frame. ``notes`` lists problems found along the way, such as skipped lines or gaps.
"""

from ragworth.data.contexts import MAX_RANK, Contexts
from ragworth.data.tables import (
    ANSWERED_STATUSES,
    EMPTY_ANSWER,
    OK,
    TRUNCATED,
    UNDECIDED,
    Answers,
    Judgments,
    Outcomes,
    Ratings,
    Scores,
    Table,
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
]
