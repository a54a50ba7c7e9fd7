"""Read people's and programs' grades of answers, from tables (Parquet, CSV or TSV) and from RAG logs.

A grade comes here as a row with system, query, aspect and a cell. A table is long (system, query, aspect, value), or
has one column per aspect. The first column called label, verdict or the like has people's grades; so has a column
called value without an aspect.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import NamedTuple

import polars as pl

from ragworth.core.errors import FormatError, format_count, format_list, format_names, format_places, quote_short
from ragworth.data import OK, Outcomes
from ragworth.data.coercion import ID_ALIASES, find_id_column, id_column
from ragworth.data.collection import plain_text, text_id
from ragworth.formats.contract import Contents, Format, Head
from ragworth.formats.csv import UNNAMED
from ragworth.formats.files import PathOrStr
from ragworth.formats.grades import (
    IN_WORDS,
    MEAN_OF_WORDS,
    PEOPLE,
    THREE_WAY,
    Grade,
    GradeError,
    direction_of_name,
    is_three_way,
    parse_grade,
    plain_grade,
)
from ragworth.formats.logs.names import GRADE_FIELDS, mapping_hint
from ragworth.formats.tables import read_rows

ASPECTS = {**{name: aspect for aspect, names in GRADE_FIELDS.items() for name in names}, "value": PEOPLE}
"""Names of columns that have grades, and what these are called as outcomes."""
GRADE_COLUMNS = tuple(ASPECTS)
UNSURE_NAMES = frozenset(("label", "annotation", "value"))
"""Names of columns that may have comments, classes or clusters instead of grades."""
QUESTION_COLUMNS = ("question", "question_text", "query_text", "user_input", "user_query")
"""Names of columns that have the text of a question, where there is no id."""
IDS = {name for kind in ("system", "query") for name in ID_ALIASES[kind]}
COUNTERS = {"seed", "repeat", "trial", UNNAMED, "__index_level_0__"}
"""Names of columns that number the repeats of an answer, or the rows of a pandas data frame."""
NO_VALUE = "no-value"
"""Status of a grade that a log doesn't have."""


class GradeRow(NamedTuple):
    """A grade in a log, and the place of its record."""

    system: str
    query: str
    aspect: str
    cell: Grade
    place: int


class GradeFile(NamedTuple):
    """A file with grades: what its places count, and what it calls the aspects.

    ``certain`` aspects must be grades, because the user or the file says so. Columns of a log can be mapped.
    """

    name: str
    unit: str
    columns: Mapping[str, str]
    certain: Container[str] = ()
    is_log: bool = False


def read_logged(rows: Iterable[GradeRow], file: GradeFile, notes: list[str]) -> Outcomes | None:
    """Make outcomes of the grades in a log. Several grades of the same name for an answer are averaged."""
    texts = [row._replace(cell=None if row.cell is None else str(row.cell)) for row in rows]
    schema = {name: pl.Int64 if name == "place" else pl.String for name in GradeRow._fields}
    frame = pl.DataFrame(texts, schema=schema, orient="row")
    grades = read_grades(frame.with_columns(status=pl.lit(OK), source=pl.lit(file.name or "given")), file, notes)
    if grades["value"].null_count() == grades.height:
        return None
    status = pl.when(pl.col("value").is_null()).then(pl.lit(NO_VALUE)).otherwise("status")
    means = _with_marked_sources(_average(grades))
    return Outcomes(means.with_columns(status=status), source=file.name)


def read(path: PathOrStr, *, skip_bad_lines: bool = False) -> Outcomes:
    """Read the outcomes of a table. Empty cells are noted, and several grades by people for an answer are averaged."""
    frame, skipped, lines = read_rows(path, words=GRADE_COLUMNS, skip_bad_lines=skip_bad_lines)
    file, notes = GradeFile(str(path), "row" if lines is None else "line", {}), [*skipped]
    keys = pl.DataFrame([id_column(frame, "system", table="outcomes", source=file.name), _query_ids(frame, file)])
    keys = keys.with_columns(
        place=pl.Series(range(1, frame.height + 1) if lines is None else lines, dtype=pl.Int64),
        status=frame["status"] if "status" in frame.columns else pl.lit(OK),
        source=frame["source"] if "source" in frame.columns else pl.lit("given"),
    )
    if {"aspect", "value"} <= set(_value_columns(frame)):
        rows = keys.with_columns(aspect=frame["aspect"].cast(pl.String), cell=frame["value"].cast(pl.String))
        columns = dict.fromkeys(rows["aspect"].drop_nulls().unique(), "value")
        grades = read_grades(rows, file._replace(columns=columns, certain=columns), notes)
    else:
        grades = _read_wide(frame, keys, file, notes)
    if "status" not in frame.columns:
        grades = grades.drop_nulls("value")
        notes += _uneven_note(grades, file)
    if not grades.height:
        raise FormatError("no grades: every cell is empty", file=file.name)
    if not {"status", "repeat"} & set(frame.columns):
        grades = _average_people(grades, file, notes)
    return Outcomes(_with_marked_sources(grades), source=file.name, notes=tuple(notes))


def _query_ids(frame: pl.DataFrame, file: GradeFile) -> pl.Series:
    """Return the ids of questions, derived from their texts if a table has only these."""
    column = next((name for name in QUESTION_COLUMNS if name in frame.columns), None)
    if find_id_column(frame, "query") is not None or column is None:
        return id_column(frame, "query", table="outcomes", source=file.name)
    texts = frame[column].cast(pl.String).fill_null("")
    return pl.Series("query", [text_id(plain_text(text)) for text in texts], dtype=pl.String)


def _value_columns(frame: pl.DataFrame) -> list[str]:
    others = IDS | COUNTERS | {"source", "status"}
    return [name for name, kind in frame.schema.items() if name not in others and not kind.is_nested()]


def _are_numbers(column: pl.Series) -> bool:
    texts = column.drop_nulls()
    return len(texts) > 0 and texts.dtype != pl.Boolean and not texts.cast(pl.Float64, strict=False).null_count()


def _read_wide(frame: pl.DataFrame, keys: pl.DataFrame, file: GradeFile, notes: list[str]) -> pl.DataFrame:
    """Read the columns whose names say that they have grades, or which way their numbers are better."""
    names = _value_columns(frame)
    columns: dict[str, str] = {}
    for name in names:
        aspect = ASPECTS.get(plain_grade(name), name if direction_of_name(name) else None)
        if aspect is not None:
            columns[name if aspect in {*columns, *names} else aspect] = name
    empty = keys.clear().with_columns(aspect=pl.lit(""), cell=pl.lit(""))
    cells = (keys.with_columns(aspect=pl.lit(each), cell=frame[name].cast(pl.String)) for each, name in columns.items())
    grades = read_grades(pl.concat([empty, *cells]), file._replace(columns=columns), notes)
    others = [name for name in names if name not in columns.values() and _are_numbers(frame[name])]
    unknown = f"nothing says which way {format_names(others)} is better"
    advice = f"call it higher_{others[0]} or lower_{others[0]}" if others else ""
    if not grades.height:
        raise FormatError(
            unknown if others else f"no column of grades among {format_names(frame.columns)}",
            file=file.name,
            more=tuple(notes),
            expected="system, query, aspect, value; or one column per aspect",
            remedy=advice,
        )
    notes += [f"{file.name}: {unknown}, so it is not used; {advice}"] if others else []
    return grades


def _average_people(grades: pl.DataFrame, file: GradeFile, notes: list[str]) -> pl.DataFrame:
    """Average several grades by people for an answer; others twice are an error of the table."""
    is_people = pl.col("aspect").str.to_lowercase().str.contains(PEOPLE, literal=True).fill_null(False)
    people = _average(grades.filter(is_people))
    if several := int(people["several"].sum()):
        answers, differ = format_count(several, "answer has", "answers have"), people["differ"].sum()
        notes.append(f"{file.name}: {answers} several grades by people, which are averaged; they differ for {differ:,}")
    return pl.concat([people, grades.filter(~is_people)], how="diagonal")


def _uneven_note(grades: pl.DataFrame, file: GradeFile) -> list[str]:
    """Return a note if systems have grades for different numbers of questions."""
    numbers = grades.group_by("system", maintain_order=True).agg(pl.col("query").n_unique())
    if (numbers["query"] == grades["query"].n_unique()).all():
        return []
    few = format_list([f"{system} {number:,}" for system, number in numbers.iter_rows()], 4)
    return [f"{file.name}: not all systems have grades for the same questions: {few}"]


def read_grades(rows: pl.DataFrame, file: GradeFile, notes: list[str]) -> pl.DataFrame:
    """Read the cells of rows as values, by aspect. An aspect without grades is left out, with a note."""
    parts = [_parse_cells(rows.clear(), "")]
    where = f"{file.name}: " if file.name else ""
    for (name,), part in rows.partition_by("aspect", as_dict=True, maintain_order=True).items():
        aspect = str(name or "")
        column = GradeColumn(aspect, file.columns.get(aspect, aspect), _parse_cells(part, aspect), file)
        doubt = column.doubt()
        if doubt:
            notes.append(f"{where}{column.name!r} was not read as a grade: {doubt}")
            continue
        column.check_scale()
        notes += [where + note for note in column.missing_notes()]
        parts.append(column.rows)
    return pl.concat(parts)


def _parse_cells(rows: pl.DataFrame, aspect: str) -> pl.DataFrame:
    """Return rows with the value and the kind of their grades; null for empty cells."""
    number = pl.col("cell").cast(pl.Float64, strict=False)
    rows = rows.with_columns(value=pl.when(number.is_finite()).then(number))
    others = rows.filter(pl.col("value").is_null())["cell"].drop_nulls().unique()
    grades = {cell: parse_grade(cell, aspect) for cell in others}
    values, kinds = ({cell: grade[at] for cell, grade in grades.items()} for at in (0, 1))
    value = pl.col("cell").replace_strict(values, default=None, return_dtype=pl.Float64)
    kind = pl.col("cell").replace_strict(kinds, default=None, return_dtype=pl.String)
    return rows.with_columns(
        value=pl.coalesce("value", value),
        kind=pl.when(pl.col("value").is_not_null()).then(pl.lit("number")).otherwise(kind),
    )


class GradeColumn(NamedTuple):
    """The grades of an aspect, and what the file calls it: rows with cell, value, kind and place."""

    aspect: str
    name: str
    rows: pl.DataFrame
    file: GradeFile

    def doubt(self) -> str:
        """Return why the column may have something else than grades; a wrong cell among grades is an error."""
        values, unknown, plain = self.rows["value"].drop_nulls(), self._of("unknown"), plain_grade(self.name)
        is_certain = self.aspect in self.file.certain
        is_own_name = plain.startswith(PEOPLE) or (plain in ASPECTS and plain not in UNSURE_NAMES)
        is_column = self.aspect in self.file.columns  # others are named by a tool
        if unknown.height and (is_certain or (is_column and (is_own_name or len(values)))):
            raise self._unknown_error(unknown)
        if unknown.height:
            return f"it has {_few_cells(unknown)}, not numbers or words like 'correct'"
        if self.file.is_log and plain in UNSURE_NAMES and not is_certain and (values.abs() > 1).any():
            numbers = f"its numbers from {min(values):g} to {max(values):g} may be classes"
            return f"{numbers}; if they are grades: --map {self.aspect}={self.name}, or [columns]"
        return ""

    def check_scale(self) -> None:
        """Raise an error for grades on different scales, such as 80% and 80, or no and 0, which may mean abstained."""
        words, numbers = self._of("word"), self._of("number")
        beyond, zero = numbers.filter(pl.col("value").abs() > 1), numbers.filter(pl.col("value") == 0)
        three_way = is_three_way(self.aspect) or (words["value"] == THREE_WAY["wrong"]).any()
        if beyond.height:
            within, others, why = self._of("word", "percent"), beyond, "words and percentages are from −1 to 1"
        else:
            within, others, why = words, zero.filter(three_way), "beside words, 0 may mean wrong or abstained"
        if not within.height or not others.height:
            return
        one, other = (quote_short(rows["cell"][0], 24) for rows in (within, others))
        raise GradeError(
            f"{self.name!r} has {one} and {other}, which are on different scales",
            expected=f"grades of one name on one scale: {why}",
            remedy="write all of them on one scale, or in columns of their own",
            file=self.file.name,
            line=self._line(max(within["place"][0], others["place"][0])),
        )

    def missing_notes(self) -> list[str]:
        """Return a note on the cells without a grade, if there are others."""
        missing = self.rows.filter(pl.col("value").is_null() & (pl.col("status") == OK))
        if not missing.height or self.rows["cell"].null_count() == self.rows.height:
            return []
        texts = missing.drop_nulls("cell")
        says = f": it says {_few_cells(texts)}" if texts.height else ""
        places = format_places(missing["place"], self.file.unit)
        return [f"{places} without a grade {self.name!r}{says}; missing, not wrong"]

    def _of(self, *kinds: str) -> pl.DataFrame:
        return self.rows.filter(pl.col("kind").is_in(kinds))

    def _line(self, place: int) -> int | None:
        return place if self.file.unit == "line" else None

    def _unknown_error(self, unknown: pl.DataFrame) -> GradeError:
        words = format_list([repr(word.replace("-", " ")) for word in THREE_WAY])
        fix = "fix these grades, or leave them empty"
        ignore = mapping_hint(({"ignored": self.name}, f" if {self.name!r} has no grades; otherwise {fix}"))
        can_ignore = self.file.is_log and self.aspect in self.file.columns and self.aspect not in self.file.certain
        return GradeError(
            f"{self.name!r} has {_few_cells(unknown)}, which is no grade",
            file=self.file.name,
            line=self._line(unknown["place"][0]),
            more=(format_places(unknown["place"], self.file.unit),),
            expected=f"numbers, percentages, true or false, yes or no, or {words}; n/a or nothing where there is none",
            remedy=ignore if can_ignore else fix,
        )


def _few_cells(rows: pl.DataFrame) -> str:
    return format_list([quote_short(cell, 24) for cell in rows["cell"].unique(maintain_order=True)], 3)


def _average(grades: pl.DataFrame) -> pl.DataFrame:
    """Average the grades of the same name for an answer. ``several`` says where there are some; they may ``differ``."""
    words = (pl.col("kind") == "word").filter(pl.col("value").is_not_null())
    different = pl.col("value").drop_nulls().n_unique() > 1
    return grades.group_by("system", "query", "aspect", maintain_order=True).agg(
        pl.col("value").mean(),
        pl.col("status", "source").first(),
        kind=pl.when(words.any() & words.all()).then(
            pl.when(different).then(pl.lit("words")).otherwise(pl.lit("word"))
        ),
        several=pl.len() > 1,
        differ=different,
    )


def _with_marked_sources(grades: pl.DataFrame) -> pl.DataFrame:
    """Say in the source that grades were words."""
    marks = {"word": IN_WORDS, "words": MEAN_OF_WORDS}
    return grades.with_columns(pl.col("source") + pl.col("kind").replace_strict(marks, default=""))


def _inspect(head: Head) -> list[Contents]:
    """Tables with a column of numbers, or one that is called like a grade, beside systems and questions."""
    asked = (*ID_ALIASES["query"], *QUESTION_COLUMNS)
    if head.kind != "table" or not head.has_any(*ID_ALIASES["system"]) or not head.has_any(*asked):
        return []
    frame = pl.DataFrame(list(head.rows), infer_schema_length=None)
    graded = any(plain_grade(name) in ASPECTS or _are_numbers(frame[name]) for name in _value_columns(frame))
    return [Contents("outcomes")] if graded else []


FORMAT = Format(name="outcomes", title="grades of answers", inspect=_inspect, general=3)
