"""Five of the six tables, and what all share: columns, types, keys and statuses, checked on creation.

Contexts have a file of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape
from pathlib import Path
from typing import ClassVar, Self

import polars as pl

from ragworth.core.errors import (
    TableError,
    format_cell,
    format_count,
    format_names,
    with_article,
)
from ragworth.core.files import open_output
from ragworth.data import coercion
from ragworth.data.coercion import Data

OK = "ok"
"""The status of rows that have a value."""

TRUNCATED = "truncated"
"""Status of an answer cut off at the maximum length."""

EMPTY_ANSWER = "empty-answer"
"""Status of an answer that contains only whitespace."""

UNDECIDED = "undecided"
"""Status of an outcome that a grader could not decide; it is missing, and never counts as wrong."""

ANSWERED_STATUSES = (OK, TRUNCATED)
"""Statuses of answers that have a text to grade."""


COLUMN_TYPES: dict[str, type[pl.DataType]] = {
    **dict.fromkeys(("value", "score"), pl.Float64),
    **dict.fromkeys(("repeat", "tokens"), pl.Int64),
    "rank": pl.UInt32,
}
"""Types of the columns that aren't text."""

COLUMN_DEFAULTS: dict[str, str | int | None] = {"status": OK, "source": "given", "repeat": 0, "tokens": None}
"""Values of columns that may be left out."""


def columns(*names: str) -> dict[str, type[pl.DataType]]:
    """The types of these columns."""
    return {name: COLUMN_TYPES.get(name, pl.String) for name in names}


class Table:
    """Base class of the six tables."""

    name: ClassVar[str]
    schema: ClassVar[dict[str, type[pl.DataType]]]
    key: ClassVar[tuple[str, ...]]
    nullable: ClassVar[frozenset[str]] = frozenset()
    """Text columns that may contain nulls."""
    frame: pl.DataFrame
    notes: tuple[str, ...]

    def __init__(self, data: Data, *, source: str = "", notes: tuple[str, ...] = ()) -> None:
        self.frame = self._checked(coercion.to_frame(data, source=source), source)
        self.notes = notes

    @classmethod
    def trusted(cls, frame: pl.DataFrame, notes: tuple[str, ...] = ()) -> Self:
        """Wrap a frame that is known to be valid, without checking it."""
        table = cls.__new__(cls)
        table.frame = frame.select(list(cls.schema))
        table.notes = notes
        return table

    @classmethod
    def concat(cls, tables: Sequence[Self]) -> Self:
        """The rows of several tables, which together are valid, one after the other."""
        frames = [table.frame for table in tables]
        return cls.trusted(
            pl.concat(frames) if frames else pl.DataFrame(schema=cls.schema),
            tuple(note for table in tables for note in table.notes),
        )

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a table written by :meth:`write`."""
        return cls(coercion.read_parquet(path), source=str(path))

    def write(self, path: str | Path) -> None:
        """Write the table as Parquet."""
        with open_output(Path(path), private=False) as part:
            coercion.write_parquet(self.file_frame, part.stream)

    @property
    def file_frame(self) -> pl.DataFrame:
        """The rows of a file of the table."""
        return self.frame

    def distinct(self, column: str) -> list[str]:
        """Distinct values of a column, in order of appearance."""
        return self.frame.select(pl.col(column).unique(maintain_order=True)).to_series().to_list()

    def having(self, column: str, values: Collection[str]) -> Self:
        """Keep the rows with one of these values."""
        return self.trusted(self.frame.filter(pl.col(column).is_in(list(values))), self.notes)

    def by(self, column: str) -> dict[str, Self]:
        """The rows of each value of a column, in order of appearance."""
        frames = self.frame.partition_by(column, maintain_order=True, as_dict=True)
        return {str(value): self.trusted(rows, self.notes) for (value,), rows in frames.items()}

    def __len__(self) -> int:
        return self.frame.height

    def __repr__(self) -> str:
        return f"{type(self).__name__}: {format_count(len(self), 'row')}\n{self.frame}"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, Table) and self.frame.equals(other.frame)

    __hash__ = None  # type: ignore[assignment]  # compared by content

    @classmethod
    def _checked(cls, frame: pl.DataFrame, source: str) -> pl.DataFrame:
        """Return ``frame`` with the columns, types and order of the schema, or raise :class:`TableError`."""
        checked = pl.DataFrame().select(_column(cls, frame, name, source) for name in cls.schema)
        if "status" in cls.schema and "value" in cls.schema:
            coercion.refuse_rows(
                (checked["status"] == OK) == checked["value"].is_null(),
                lambda row: f"value {checked['value'][row]} with status {checked['status'][row]!r}",
                expected="a value if the status is 'ok', otherwise none",
                source=source,
            )
        check_key(checked, cls, source)
        return checked


def _column(table: type[Table], frame: pl.DataFrame, name: str, source: str) -> pl.Series | pl.Expr:
    """Return a column of the schema, or its default as a literal if the frame has none."""
    kind = table.schema[name]
    if name in coercion.ID_ALIASES:
        return coercion.id_column(frame, name, table=table.name, source=source)
    if name not in frame.columns:
        return _default_column(table, frame, name, source)
    if kind == pl.String:
        return coercion.to_text(frame[name], source=source, nullable=name in table.nullable)
    numbers = coercion.to_numbers(frame[name], source=source, kind=kind)
    coercion.refuse_rows(
        ~numbers.cast(pl.Float64).is_finite(),
        lambda row: f"the {name} is {str(numbers[row]).replace('nan', 'NaN')}",
        expected="a finite number, or null with the reason in 'status'",
        remedy="drop the row or give the reason",
        source=source,
    )
    return numbers


def _default_column(table: type[Table], frame: pl.DataFrame, name: str, source: str) -> pl.Expr:
    if name not in COLUMN_DEFAULTS:
        raise TableError(
            f"{with_article(table.name)} table needs {with_article(repr(name))} column; this one has "
            f"{format_names(frame.columns)}",
            expected=", ".join(table.schema),
            file=source,
        )
    if name == "status" and "value" in frame.columns:
        coercion.refuse_rows(
            frame["value"].is_null(),
            lambda row: "the value is missing without a reason",
            expected="a number, or a 'status' column with the reason",
            remedy="drop the row, or add a status such as 'unparsable'",
            source=source,
        )
    return pl.lit(COLUMN_DEFAULTS[name], table.schema[name]).alias(name)


def check_key(frame: pl.DataFrame, table: type[Table], source: str) -> None:
    """Refuse two rows with the same key."""
    coercion.refuse_duplicates(
        frame, table.key, source, remedy="remove the duplicates, keep the one that counts, or give the mean of repeats"
    )


class Judgments(Table):
    """A value per (query, passage): relevance, abstention probability, downstream score, …

    Accepts the long form, or one column per aspect: ``relevance``, ``abstention``, ``downstream`` and ``likelihood``.
    """

    name = "judgments"
    schema = columns("query", "passage", "aspect", "value", "status", "source")
    key = ("query", "passage", "aspect")
    wide: ClassVar[dict[str, tuple[str, ...]]] = {
        "relevance": ("relevance", "rel", "label", "grade", "is_relevant"),
        "abstention": ("abstention", "p_abstain"),
        "downstream": ("downstream",),
        "likelihood": ("likelihood",),
    }

    def __init__(self, data: Data, *, source: str = "", notes: tuple[str, ...] = ()) -> None:
        frame = coercion.to_frame(data, source=source, nested=("query_id", "passage_id", "value"))
        others = {"value", "rank", *(name for names in self.wide.values() for name in names)}
        if "corpus-id" in frame.columns and not others & set(frame.columns):  # qrels of BEIR call the label a score
            frame = frame.rename({"score": "value"}, strict=False)
        if "aspect" not in frame.columns:
            if "value" in frame.columns:
                frame = frame.with_columns(pl.lit("relevance").alias("aspect"))
            else:
                frame, empty = self._unpivot(frame, source)
                notes = (*notes, *empty)
        super().__init__(frame, source=source, notes=notes)

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

    @classmethod
    def concat(cls, tables: Sequence[Self]) -> Self:
        """Combine judgments from several files; each judgment may occur in only one of them."""
        judgments = super().concat(tables)
        if len(tables) > 1:  # a single table was checked on creation
            check_key(judgments.frame, cls, "the judgments together")
        return judgments


class Ratings(Table):
    """A rating of how well a passage answers a sub-question of a query, 0 to 5; files are checked for that scale."""

    name = "ratings"
    schema = columns("query", "passage", "subquestion", "value", "status", "source")
    key = ("query", "passage", "subquestion")

    def __init__(self, data: Data, *, source: str = "", notes: tuple[str, ...] = ()) -> None:
        frame = coercion.to_frame(data, source=source)
        if "value" not in frame.columns:
            frame = frame.rename({"rating": "value"}, strict=False)
        super().__init__(frame, source=source, notes=notes)


class Answers(Table):
    """The model's answers for (system, query), one row per repeat.

    ``status`` is ``ok``, ``truncated`` if the text was cut off at the maximum length, ``empty-answer`` if it contains
    only whitespace (whatever status was given), or the reason why the text is null.
    """

    name = "answers"
    nullable = frozenset({"text"})
    schema = columns("system", "query", "repeat", "text", "tokens", "status", "source")
    key = ("system", "query", "repeat")

    @classmethod
    def _checked(cls, frame: pl.DataFrame, source: str) -> pl.DataFrame:
        checked = super()._checked(frame, source)
        written = pl.col("status").is_in(ANSWERED_STATUSES)
        coercion.refuse_rows(
            checked.select(written & pl.col("text").is_null()).to_series(),
            lambda row: f"the text is missing, but the status is {checked['status'][row]!r}",
            expected="a text, or a 'status' with the reason",
            remedy="drop the row, or add a status such as 'timed-out'",
            source=source,
        )
        blank = written & (pl.col("text").str.strip_chars() == "")
        return checked.with_columns(status=pl.when(blank).then(pl.lit(EMPTY_ANSWER)).otherwise(pl.col("status")))


class Outcomes(Table):
    """The result of a context: grade, 1–5 score, utility, …"""

    name = "outcomes"
    schema = columns("system", "query", "aspect", "value", "status", "source")
    key = ("system", "query", "aspect")


class Scores(Table):
    """A metric's value for (system, query)."""

    name = "scores"
    schema = columns("system", "query", "metric", "value", "status")
    key = ("system", "query", "metric")


class Note(str):
    """A remark, and whom it concerns: a system by its name, or a step of a pipeline by its written form."""

    __slots__ = ("step", "system")
    system: str
    step: str

    def __new__(cls, text: str, *, system: str = "", step: str = "") -> Self:
        note = super().__new__(cls, text)
        note.system, note.step = system, step
        return note


MAX_ROWS = 50
"""Rows of a table that a notebook shows."""


def html_table(frame: pl.DataFrame, caption: str = "") -> str:
    """The first rows of a frame. Numbers have four decimals; a missing value is a dash."""
    right = [kind.is_numeric() for kind in frame.dtypes]
    head = "".join(_cell("th", name, numeric) for name, numeric in zip(frame.columns, right, strict=True))
    body = "".join(
        f"<tr>{''.join(_cell('td', value, numeric) for value, numeric in zip(row, right, strict=True))}</tr>"
        for row in frame.head(MAX_ROWS).iter_rows()
    )
    cut = f": the first {MAX_ROWS:,} of {frame.height:,} rows" if frame.height > MAX_ROWS else ""
    title = f"<caption>{_text(caption + cut)}</caption>" if caption or cut else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(element: str, value: object, numeric: bool) -> str:
    return f'<{element} style="text-align:{"right" if numeric else "left"}">{_text(value)}</{element}>'


def _text(value: object) -> str:
    return escape(format_cell(value))
