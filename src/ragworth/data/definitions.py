"""Judgments, ratings, answers, outcomes and scores; contexts have a file of their own."""

from __future__ import annotations

from typing import ClassVar

import polars as pl

from ragworth.core.errors import TableError, format_count, format_names
from ragworth.data import coercion
from ragworth.data.coercion import Data
from ragworth.data.schema import OK, Table, check_key

TRUNCATED = "truncated"
"""Status of an answer cut off at the maximum length."""

EMPTY_ANSWER = "empty-answer"
"""Status of an answer that contains only whitespace."""

UNDECIDED = "undecided"
"""Status of an outcome that a grader could not decide; it is missing, and never counts as wrong."""

ANSWERED_STATUSES = (OK, TRUNCATED)
"""Statuses of answers that have a text to grade."""


class Judgments(Table):
    """A value per (query, passage): relevance, abstention probability, downstream score, …

    Accepts the long form, or one column per aspect: ``relevance``, ``abstention``, ``downstream`` and ``likelihood``.
    """

    name = "judgments"
    schema: ClassVar[dict[str, type[pl.DataType]]] = {
        "query": pl.String,
        "passage": pl.String,
        "aspect": pl.String,
        "value": pl.Float64,
        "status": pl.String,
        "source": pl.String,
    }
    key = ("query", "passage", "aspect")
    split_by = ("aspect", "source")
    wide: ClassVar[dict[str, tuple[str, ...]]] = {
        "relevance": ("relevance", "rel", "label", "grade", "is_relevant"),
        "abstention": ("abstention", "p_abstain"),
        "downstream": ("downstream",),
        "likelihood": ("likelihood",),
    }

    def __init__(self, data: Data, *, source: str = "", notes: tuple[str, ...] = ()) -> None:
        frame = coercion.to_frame(data, source=source, nested=("query_id", "passage_id", "value"))
        frame = coercion.with_label_column(frame, [name for names in self.wide.values() for name in names])
        if "aspect" not in frame.columns:
            if "value" in frame.columns:
                frame = frame.with_columns(pl.lit("relevance").alias("aspect"))
            else:
                frame, empty = self._unpivot(frame, source)
                notes = (*notes, *empty)
        self.frame = self._checked(frame, source)
        self.notes = notes

    @classmethod
    def _unpivot(cls, frame: pl.DataFrame, source: str) -> tuple[pl.DataFrame, list[str]]:
        """Convert one column per aspect to long form, with a note on empty cells."""
        ids = pl.DataFrame([coercion.id_column(frame, n, table=cls.name, source=source) for n in ("query", "passage")])
        parts: list[pl.DataFrame] = []
        notes: list[str] = []
        for aspect, names in cls.wide.items():
            column = next((name for name in names if name in frame.columns), None)
            if column is not None:
                value = coercion.to_numbers(frame[column], source=source).alias("value")
                part = ids.with_columns(value, pl.lit(aspect).alias("aspect"))
                parts.append(part.filter(pl.col("value").is_not_null()))
                if value.null_count():
                    where = f"{source}: " if source else ""
                    notes.append(f"{where}{format_count(value.null_count(), 'empty cell')} in {column!r}: no judgment")
        if not parts:
            raise TableError(
                f"no judgment among the columns {format_names(frame.columns)}",
                expected=f"'aspect' and 'value' columns, or one column per aspect: {', '.join(cls.wide)}",
                file=source,
            )
        return pl.concat(parts), notes

    def of(self, aspect: str) -> pl.DataFrame:
        return self.having("aspect", [aspect]).frame

    @staticmethod
    def concat(tables: list[Judgments]) -> Judgments:
        """Combine judgments from several files; each judgment may occur in only one of them."""
        judgments = Judgments.of_parts(
            [part for table in tables for part in table.parts], tuple(note for table in tables for note in table.notes)
        )
        if len(tables) > 1:  # a single table was checked on creation
            check_key(judgments.parts, Judgments, "the judgments together")
        return judgments


class Ratings(Table):
    """How well a passage answers each sub-question of a query, 0 to 5; files are checked for that scale."""

    name = "ratings"
    schema: ClassVar[dict[str, type[pl.DataType]]] = {
        "query": pl.String,
        "passage": pl.String,
        "subquestion": pl.String,
        "value": pl.Float64,
        "status": pl.String,
        "source": pl.String,
    }
    key = ("query", "passage", "subquestion")

    def __init__(self, data: Data, *, source: str = "", notes: tuple[str, ...] = ()) -> None:
        frame = coercion.to_frame(data, source=source)
        if "value" not in frame.columns and "rating" in frame.columns:
            frame = frame.rename({"rating": "value"})
        self.frame = self._checked(frame, source)
        self.notes = notes


class Answers(Table):
    """The model's answers for (system, query), one row per repeat.

    ``status`` is ``ok``, ``truncated`` if the text was cut off at the maximum length, ``empty-answer`` if it contains
    only whitespace (whatever status was given), or the reason why the text is null.
    """

    name = "answers"
    nullable = frozenset({"text"})
    schema: ClassVar[dict[str, type[pl.DataType]]] = {
        "system": pl.String,
        "query": pl.String,
        "repeat": pl.Int64,
        "text": pl.String,
        "tokens": pl.Int64,
        "status": pl.String,
        "source": pl.String,
    }
    key = ("system", "query", "repeat")

    @classmethod
    def _checked(cls, frame: pl.DataFrame, source: str) -> pl.DataFrame:
        checked = super()._checked(frame, source)
        written = pl.col("status").is_in(ANSWERED_STATUSES)
        lost = checked.select(written & pl.col("text").is_null()).to_series().arg_true()
        if len(lost):
            raise TableError(
                f"row {lost[0] + 1}: the text is missing, but the status is {checked['status'][int(lost[0])]!r}",
                expected="a text, or a 'status' with the reason",
                remedy="drop the row, or add a status such as 'timed-out'",
                file=source,
            )
        blank = written & (pl.col("text").str.strip_chars() == "")
        return checked.with_columns(status=pl.when(blank).then(pl.lit(EMPTY_ANSWER)).otherwise(pl.col("status")))


class Outcomes(Table):
    """What a context led to: grade, 1–5 score, utility, …"""

    name = "outcomes"
    schema: ClassVar[dict[str, type[pl.DataType]]] = {
        "system": pl.String,
        "query": pl.String,
        "aspect": pl.String,
        "value": pl.Float64,
        "status": pl.String,
        "source": pl.String,
    }
    key = ("system", "query", "aspect")
    split_by = ("system", "aspect")


class Scores(Table):
    """A metric's value for (system, query)."""

    name = "scores"
    schema: ClassVar[dict[str, type[pl.DataType]]] = {
        "system": pl.String,
        "query": pl.String,
        "metric": pl.String,
        "value": pl.Float64,
        "status": pl.String,
    }
    key = ("system", "query", "metric")
    split_by = ("system", "metric")
