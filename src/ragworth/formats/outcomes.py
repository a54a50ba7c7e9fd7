"""Read outcomes of answers from Parquet, CSV or TSV: grades by people or programs.

A table is long (system, query, aspect, value), or has one column per aspect. Grades may be words such as correct. The
first column called label, verdict or the like has people's grades; so has a column called value without an aspect.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import polars as pl

from ragworth.core.errors import FormatError, format_count, format_names
from ragworth.data import Outcomes
from ragworth.data.coercion import ID_ALIASES, find_id_column
from ragworth.data.collection import plain_text, text_id
from ragworth.formats.csv import UNNAMED, read_text_csv
from ragworth.formats.files import PathOrStr, can_read_again
from ragworth.formats.grades import (
    IN_WORDS,
    MEAN_OF_WORDS,
    PEOPLE,
    GradeColumn,
    GradePlaces,
    ReadGrades,
    direction_of_name,
    number_of,
)
from ragworth.formats.tables import read_table

LABEL_COLUMNS = ("label", "human_label", "human_grade", "annotation", "verdict", "value")
"""Names of columns that have people's grades."""
GRADE_COLUMNS = (*LABEL_COLUMNS, PEOPLE, "grade", "correct", "is_correct", "correctness")
"""Names of columns whose words may be grades; others have comments."""
QUESTION_COLUMNS = ("question", "question_text", "query_text", "user_input", "user_query")
"""Names of columns that have the text of a question, where there is no id."""

IDS = {name for kind in ("system", "query") for name in ID_ALIASES[kind]}
COUNTERS = {"seed", "repeat", "trial", UNNAMED, "__index_level_0__"}
"""Names of columns that number the repeats of an answer, or the rows of a pandas data frame."""


def read(path: PathOrStr, *, skip_bad_lines: bool = False) -> Outcomes:
    """Read the outcomes of a file. Empty cells are noted, and several grades by people for an answer are averaged."""
    frame, bad = read_table(path, words=GRADE_COLUMNS, skip_bad_lines=skip_bad_lines)
    notes = [*bad]
    table = _Table(str(path), _with_query(frame), notes)
    long = table.long() if "aspect" in frame.columns else table.wide()
    return Outcomes(_average_people(long, str(path), notes), source=str(path), notes=tuple(notes))


def is_outcome_table(frame: pl.DataFrame) -> bool:
    """Whether a table has a column of numbers, or one that is called like a grade."""
    return any(_is_grade(name) or _plain_numbers(frame[name]) is not None for name in _value_columns(frame))


def _with_query(frame: pl.DataFrame) -> pl.DataFrame:
    """The table with ids of questions, derived from their texts if it has only these."""
    column = next((name for name in QUESTION_COLUMNS if name in frame.columns), None)
    if find_id_column(frame, "query") is not None or column is None:
        return frame
    ids = [text_id(plain_text(text)) for text in frame[column].cast(pl.String).fill_null("")]
    return frame.with_columns(pl.Series("query", ids, dtype=pl.String)).drop(column)


def _value_columns(frame: pl.DataFrame) -> list[str]:
    return [name for name in frame.columns if name not in IDS | COUNTERS]


def _is_grade(name: str) -> bool:
    return name.lower() in GRADE_COLUMNS


def _plain_numbers(column: pl.Series) -> pl.Series | None:
    """The numbers of a column; None if it has anything else."""
    if column.dtype != pl.String:
        return column.cast(pl.Float64) if column.dtype.is_numeric() else None
    texts = column.drop_nulls()
    numbers = [number_of(text) for text in texts if "%" not in text]
    if not len(texts) or len(numbers) < len(texts) or None in numbers:
        return None
    return pl.Series(column.name, [None if text is None else number_of(text) for text in column], dtype=pl.Float64)


class _Table:
    """Reads the columns of a table; ``notes`` get what users should know."""

    def __init__(self, path: str, frame: pl.DataFrame, notes: list[str]) -> None:
        self.path, self.frame, self.notes = path, frame, notes

    def long(self) -> pl.DataFrame:
        """A table with the aspect in each row."""
        if "value" not in self.frame.columns:
            return self.frame
        if (numbers := _plain_numbers(self.frame["value"])) is not None:
            return self.frame.with_columns(numbers)
        aspects = self.frame["aspect"].cast(pl.String).fill_null("")
        parts = []
        for aspect in aspects.unique(maintain_order=True):
            rows = (aspects == aspect).arg_true().to_list()
            column = self._column("value", aspect, rows)
            grades = column.read(self.notes, certain=True)
            assert grades is not None  # because it is certain
            parts.append(self._graded("value", self.frame[rows], grades))
        made = pl.concat(parts)
        return made if "status" in made.columns else made.drop_nulls("value")

    def wide(self) -> pl.DataFrame:
        """A table with a column for each aspect."""
        columns = self._columns()
        if not columns:
            raise FormatError(
                f"no column of numbers among {format_names(self.frame.columns)}",
                file=self.path,
                expected="system, query, aspect, value; or one column per aspect",
            )
        keys = self.frame.select(name for name in self.frame.columns if name in IDS | {"source"})
        if not keys.columns:
            return self.frame  # a table without its header; the check of the table says what is missing
        parts = [
            self._graded(name, keys, grades).with_columns(aspect=pl.lit(_aspect(name, columns)))
            for name, grades in columns.items()
        ]
        return pl.concat(parts).drop_nulls("value")

    def _columns(self) -> dict[str, ReadGrades]:
        """The columns that are outcomes. Beside a grade, other numbers count if their names say which way is better."""
        numbers = {
            name: values
            for name in _value_columns(self.frame)
            if not _is_grade(name) and (values := _plain_numbers(self.frame[name])) is not None
        }
        found: dict[str, ReadGrades] = {}
        for name in filter(_is_grade, _value_columns(self.frame)):
            column = self._column(name, name, range(self.frame.height))
            certain = name.lower().startswith(PEOPLE) or not numbers or column.has_grades
            grades = column.read(self.notes, certain=certain)
            found |= {name: grades} if grades is not None else {}
        if found and (side := [name for name in numbers if not direction_of_name(name)]):
            self.notes.append(
                f"{self.path}: {format_names(side)} not used: numbers beside a grade; "
                f"if these are outcomes, call them higher_{side[0]} or lower_{side[0]}"
            )
            numbers = {name: values for name, values in numbers.items() if name not in side}
        found |= {name: ReadGrades(values.to_list(), set(), [], []) for name, values in numbers.items()}
        return {name: found[name] for name in self.frame.columns if name in found}

    def _column(self, name: str, aspect: str, rows: Sequence[int]) -> GradeColumn:
        """Some cells of a column."""
        cells = self.frame[name].gather(list(rows)).to_list()
        return GradeColumn(name, aspect, cells, self.path, partial(self._places, rows))

    def _places(self, rows: Sequence[int]) -> GradePlaces:
        """The lines of rows in a text file, or else their numbers."""
        is_text = ".parquet" not in Path(self.path).suffixes and can_read_again(self.path)
        lines = read_text_csv(self.path).line if is_text else ()
        if len(lines) != self.frame.height:  # rows were skipped
            return GradePlaces([row + 1 for row in rows], "row")
        return GradePlaces([int(lines[row]) for row in rows], "line")

    def _graded(self, name: str, rows: pl.DataFrame, grades: ReadGrades) -> pl.DataFrame:
        """The rows with the values and sources of their grades."""
        sources = rows["source"].to_list() if "source" in rows.columns else ["given"] * rows.height
        marked = [f"{source}{IN_WORDS}" if row in grades.words else source for row, source in enumerate(sources)]
        values = pl.Series("value", grades.values, dtype=pl.Float64)
        if (empty := values.null_count() - len(grades.missing)) and "status" not in rows.columns:
            self.notes.append(f"{self.path}: {format_count(empty, 'empty cell')} in {name!r}: no outcome")
        return rows.with_columns(values, pl.Series("source", marked, dtype=pl.String))


def _aspect(name: str, columns: Iterable[str]) -> str:
    """The first column of people's grades is called human."""
    if name.lower() == "is_correct":
        return "correct"
    first = next((each for each in columns if each.lower() in (PEOPLE, *LABEL_COLUMNS)), None)
    return PEOPLE if name == first and PEOPLE not in columns else name


def _average_people(frame: pl.DataFrame, path: str, notes: list[str]) -> pl.DataFrame:
    """Average several grades by people for the same answer."""
    ids = [find_id_column(frame, kind) for kind in ("system", "query")]
    keys = [*(name for name in ids if name is not None), "aspect"]
    if len(keys) < 3 or "value" not in frame.columns or {"status", "repeat"} & set(frame.columns):
        return frame
    frame = frame if "source" in frame.columns else frame.with_columns(source=pl.lit("given"))
    is_people = pl.col("aspect").cast(pl.String).str.to_lowercase().str.contains(PEOPLE, literal=True)
    people, others = frame.filter(is_people), frame.filter(~is_people)
    if not people.select(pl.struct(keys).is_duplicated().any()).item():
        return frame
    worded, differ = pl.col("source").str.ends_with(IN_WORDS).all(), pl.col("value").n_unique() > 1
    mark = pl.when(~worded).then(pl.lit("")).when(differ).then(pl.lit(MEAN_OF_WORDS)).otherwise(pl.lit(IN_WORDS))
    means = people.group_by(keys, maintain_order=True).agg(
        pl.col("value").mean(),
        source=pl.col("source").first().str.strip_suffix(IN_WORDS) + mark,
        several=pl.len() > 1,
        differ=differ,
    )
    answers = format_count(int(means["several"].sum()), "answer has", "answers have")
    differing = means["differ"].sum()
    notes.append(f"{path}: {answers} several grades by people, which are averaged; they differ for {differing:,}")
    columns = [*keys, "value", "source"]
    return pl.concat([means.select(columns), others.select(columns)])
