"""Read outcomes from Parquet, CSV or TSV: long (system, query, aspect, value), or one column per aspect.

Grades may be words such as correct; a column called label has people's. So has a column called value, if the table
has no aspect.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from ragworth.core.errors import FormatError, format_count, format_list, format_names, quote_short
from ragworth.data import Outcomes
from ragworth.data.coercion import ID_ALIASES, find_id_column
from ragworth.data.collection import plain_text, text_id
from ragworth.formats.csv import UNNAMED, read_text_csv
from ragworth.formats.files import PathOrStr
from ragworth.formats.frames import read_table
from ragworth.formats.grade_words import (
    DECIMAL_COMMA,
    IN_WORDS,
    MEAN_OF_WORDS,
    Grade,
    GradeError,
    ReadGrades,
    expected_grades,
    grade_remedy,
    read_grades,
    scales_error,
)
from ragworth.formats.logs.fields import SYSTEM_COLUMNS

INDEXES = {UNNAMED, "__index_level_0__"}
"""Names of columns that number the rows of a pandas data frame."""

REPEATS = {"seed", "repeat", "trial"}
"""Names of columns that number the repeats of an answer."""

HUMAN = "human"
LABEL_COLUMNS = ("label", "human_label", "human_grade", "annotation", "verdict", "value")
"""Names of columns that have people's grades."""

GRADE_COLUMNS = (*LABEL_COLUMNS, HUMAN, "grade", "correct", "is_correct", "correctness")
"""Names of columns whose words may be grades; others have comments."""

SIDE_COLUMNS = ("annotator", "rater", "confidence", "minutes", "seconds", "time", "duration", "comment", "comments")
"""Numbers beside a grade that say nothing about the answer; so do names of systems and columns that end in ``_id``."""

QUESTION_COLUMNS = ("question", "question_text", "query_text", "user_input", "user_query")
"""Names of columns that have the text of a question, where there is no id."""

IDS = {name for kind in ("system", "query") for name in ID_ALIASES[kind]}


def read(path: PathOrStr, *, skip_bad_lines: bool = False) -> Outcomes:
    """Read the outcomes of a file. Empty cells are noted, and several grades by people for an answer are averaged."""
    frame, notes = read_table(path, words=GRADE_COLUMNS, skip_bad_lines=skip_bad_lines)
    frame = _with_query(frame)
    found = _Reader(str(path), frame, [*notes])
    long = found.long() if "aspect" in frame.columns else found.wide()
    long = _average_people(long, str(path), found.notes)
    return Outcomes(long, source=str(path), notes=tuple(found.notes))


def _with_query(frame: pl.DataFrame) -> pl.DataFrame:
    """The table with ids of questions, derived from their texts if it has only these."""
    column = next((name for name in QUESTION_COLUMNS if name in frame.columns), None)
    if find_id_column(frame, "query") is not None or column is None:
        return frame
    texts = frame[column].cast(pl.String).fill_null("")
    ids = [text_id(plain_text(text)) for text in texts]
    return frame.with_columns(pl.Series("query", ids, dtype=pl.String)).drop(column)


def is_outcome_table(frame: pl.DataFrame) -> bool:
    """Whether a table has a column of numbers, or one that is called like a grade."""
    return any(_is_grade(name) or _plain_numbers(frame[name]) is not None for name in _value_columns(frame))


def _value_columns(frame: pl.DataFrame) -> list[str]:
    return [name for name in frame.columns if name not in IDS | INDEXES | REPEATS]


def _is_grade(name: str) -> bool:
    return name.lower() in GRADE_COLUMNS


def _plain_numbers(column: pl.Series) -> pl.Series | None:
    """The numbers of a column; None if it has anything else."""
    if column.dtype != pl.String:
        return column.cast(pl.Float64) if column.dtype.is_numeric() else None
    if column.drop_nulls().str.contains(rf"^(?:{DECIMAL_COMMA.pattern}|[+-]?\d+)$").all():
        column = column.str.replace(",", ".", literal=True)
    numbers = column.cast(pl.Float64, strict=False)
    return numbers if numbers.null_count() == column.null_count() < len(column) else None


class _Reader:
    """Reads the columns of a table; ``notes`` get what users should know."""

    def __init__(self, path: str, frame: pl.DataFrame, notes: list[str]) -> None:
        self.path, self.frame, self.notes = path, frame, notes

    def long(self) -> pl.DataFrame:
        """A table with the aspect in each row."""
        if "value" not in self.frame.columns or _plain_numbers(self.frame["value"]) is not None:
            columns = [_plain_numbers(self.frame["value"])] if "value" in self.frame.columns else []
            return self.frame.with_columns(column for column in columns if column is not None)
        aspects = self.frame["aspect"].cast(pl.String).fill_null("").to_list()
        grades = self._grades("value", aspects, certain=True)
        assert grades is not None
        made = self.frame.with_columns(self._series("value", grades), self._source(grades))
        if "status" in made.columns:
            return made
        self._note_empty("value", made["value"].null_count() - len(grades.missing))
        return made.drop_nulls("value")

    def wide(self) -> pl.DataFrame:
        """A table with a column for each aspect."""
        columns = self._columns()
        if not columns:
            raise FormatError(
                f"no column of numbers among {format_names(self.frame.columns)}",
                file=self.path,
                expected="system, query, aspect, value; or one column per aspect",
            )
        keys = self.frame.select(name for name in self.frame.columns if name in IDS)
        parts = []
        for name, grades in columns.items():
            part = keys.with_columns(
                pl.lit(self._aspect(name, columns)).alias("aspect"), self._series("value", grades), self._source(grades)
            )
            self._note_empty(name, part["value"].null_count() - len(grades.missing))
            parts.append(part.drop_nulls("value"))
        return pl.concat(parts)

    def _columns(self) -> dict[str, ReadGrades]:
        """The columns that are outcomes."""
        found: dict[str, ReadGrades] = {}
        for name in _value_columns(self.frame):
            if _is_grade(name):
                grades = self._grades(name, name, certain=name.lower().startswith(HUMAN))
                found |= {name: grades} if grades is not None else {}
            elif (numbers := _plain_numbers(self.frame[name])) is not None:
                found[name] = ReadGrades(numbers.to_list(), set(), [], [])
        if any(map(_is_grade, found)):
            side = [name for name in found if _says_nothing(name)]
            if side:
                self.notes.append(f"{self.path}: {format_names(side)} not used: numbers beside a grade, not outcomes")
            found = {name: grades for name, grades in found.items() if name not in side}
        return found

    def _aspect(self, name: str, columns: dict[str, ReadGrades]) -> str:
        """The first column of people's grades is called human."""
        labels = [each for each in columns if each.lower() in (HUMAN, *LABEL_COLUMNS)]
        if name.lower() == "is_correct":
            return "correct"
        own = HUMAN in columns or (labels and labels[0] != name)
        return name if own or name not in labels else HUMAN

    def _grades(self, name: str, aspect: str | Sequence[str], *, certain: bool) -> ReadGrades | None:
        """Read a column that is called like a grade; None if nothing in it is one, and it may be something else."""
        cells: list[Grade] = self.frame[name].to_list()
        found = read_grades(cells, aspect)
        if found.unknown:
            few = format_list(list(dict.fromkeys(quote_short(cells[i], 24) for i in found.unknown)), 3)
            others = [each for each in _value_columns(self.frame) if each != name]
            numbers = any(_plain_numbers(self.frame[each]) is not None and not _says_nothing(each) for each in others)
            if certain or not numbers or any(value is not None for value in found.values):
                lines = self._lines(name, found.unknown)
                raise GradeError(
                    f"the {name} is {few}, which is no grade" + _more(lines),
                    file=self.path,
                    line=lines[0] if lines else None,
                    expected=expected_grades(),
                    remedy=grade_remedy([cells[i] for i in found.unknown]),
                )
            self.notes.append(f"{self.path}: {name!r} was not read as a grade: it has {few}")
            return None
        if found.clash is not None:
            one, other = found.clash
            raise scales_error(cells[one], cells[other], name).copy(file=self.path)
        if found.missing:
            few = format_list(list(dict.fromkeys(quote_short(cells[i], 24) for i in found.missing)), 3)
            lines = self._lines(name, found.missing)
            where = f" ({'line' if len(lines) == 1 else 'lines'} {_few_numbers(lines)})" if lines else ""
            number = format_count(len(found.missing), "row")
            self.notes.append(f"{self.path}: {number} without a {name!r}{where}: it says {few}; missing, not wrong")
        return found

    def _lines(self, name: str, rows: Sequence[int]) -> list[int]:
        """The lines of rows in a text file; nothing for Parquet."""
        if ".parquet" in Path(self.path).suffixes:
            return []
        wanted = {str(self.frame[name][row]) for row in rows}
        text = read_text_csv(self.path)
        return [int(text.line[row]) for row, cell in enumerate(text.frame[name].to_list()) if cell in wanted]

    def _series(self, name: str, grades: ReadGrades) -> pl.Series:
        return pl.Series(name, grades.values, dtype=pl.Float64)

    def _source(self, grades: ReadGrades) -> pl.Series:
        given = self.frame["source"].to_list() if "source" in self.frame.columns else ["given"] * self.frame.height
        marked = [f"{source}{IN_WORDS}" if row in grades.words else source for row, source in enumerate(given)]
        return pl.Series("source", marked, dtype=pl.String)

    def _note_empty(self, name: str, number: int) -> None:
        if number:
            self.notes.append(f"{self.path}: {format_count(number, 'empty cell')} in {name!r}: no outcome")


def _says_nothing(name: str) -> bool:
    return name.lower() in (*SIDE_COLUMNS, *SYSTEM_COLUMNS) or name.lower().endswith("_id")


def _few_numbers(numbers: Sequence[int]) -> str:
    return ", ".join(f"{number:,}" for number in numbers[:3]) + (", …" if len(numbers) > 3 else "")


def _more(lines: Sequence[int]) -> str:
    return f" (also on {'line' if len(lines) == 2 else 'lines'} {_few_numbers(lines[1:])})" if len(lines) > 1 else ""


def _average_people(frame: pl.DataFrame, path: str, notes: list[str]) -> pl.DataFrame:
    """Average several grades by people for the same answer."""
    ids = [find_id_column(frame, kind) for kind in ("system", "query")]
    keys = [*(name for name in ids if name is not None), "aspect"]
    if len(keys) < 3 or "value" not in frame.columns or {"status", "repeat"} & set(frame.columns):
        return frame
    people = frame["aspect"].cast(pl.String).str.to_lowercase().str.contains(HUMAN, literal=True)
    mine = frame.filter(people)
    several = mine.group_by(keys).len().filter(pl.col("len") > 1).height
    if not several:
        return frame
    worded = pl.col("source").str.ends_with(IN_WORDS) if "source" in mine.columns else pl.lit(False)
    bare = pl.col("source").str.strip_suffix(IN_WORDS) if "source" in mine.columns else pl.lit("given")
    mark = (
        pl.when(~pl.col("worded"))
        .then(pl.lit(""))
        .when(pl.col("different"))
        .then(pl.lit(MEAN_OF_WORDS))
        .otherwise(pl.lit(IN_WORDS))
    )
    made = (
        mine.group_by(keys, maintain_order=True)
        .agg(
            pl.col("value").mean(),
            bare.first().alias("source"),
            worded.all().alias("worded"),
            (pl.col("value").n_unique() > 1).alias("different"),
        )
        .with_columns(source=pl.col("source") + mark)
    )
    differ = made["different"].sum()
    notes.append(
        f"{path}: {format_count(several, 'answer has', 'answers have')} several grades by people, which are averaged; "
        f"they differ for {differ:,}"
    )
    columns = [*keys, "value", "source"]
    others = frame.filter(~people)
    if "source" not in others.columns:
        others = others.with_columns(source=pl.lit("given"))
    return pl.concat([made.select(columns), others.select(columns)])
