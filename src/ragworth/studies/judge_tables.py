"""What several judges said of the same things, in one table, out of files or results.

Columns: aspect (what was judged), query, thing (which passage, sub-question or answer), judge, value, label (its word,
where it is one). A judgment without a value stays, with null. A word has no value by itself: `numbered` gives it one,
once for all who judge the same aspect.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import polars as pl

from ragworth import formats
from ragworth.errors import FormatError, InputError, format_list, format_names
from ragworth.formats.crux import read_labels
from ragworth.formats.files import run_name
from ragworth.formats.frames import read_table
from ragworth.results import Results
from ragworth.tables import OK, coercion
from ragworth.tables.coercion import ID_ALIASES

SCHEMA = {
    "aspect": pl.String,
    "query": pl.String,
    "thing": pl.String,
    "judge": pl.String,
    "value": pl.Float64,
    "label": pl.String,
}
THINGS = ("system", "passage", "subquestion", "repeat")
GRADES = {"correct": 1.0, "partially-correct": 0.5, "partial": 0.5, "abstained": 0.0, "wrong": -1.0}
"""Words that have an order."""
TABLES = (".csv", ".tsv", ".parquet", ".txt", ".qrels", ".gz", ".zst", ".jsonl")
FILES = "judgments"
"""The aspect where a file names none."""


def is_table(place: Path) -> bool:
    """Whether a place is a file with judgments, and not a workspace."""
    return place.is_file() and place.suffix.lower() in TABLES


def read(place: Path) -> pl.DataFrame:
    """The judgments of a file: qrels, or a table with query, what is judged, and a value or label.

    A column ``judge`` names who judged each row; without it the file is one judge, under its name.
    """
    if (labels := read_labels(place)) is not None:
        return check_single_judgments(labels, str(place))
    suffixes = {each.lower() for each in place.suffixes}
    if not suffixes & {".csv", ".tsv", ".parquet"}:
        frame = formats.read_judgments(place).frame
    else:
        frame, _ = read_table(place, words=("label", "judge"))
    if not frame.height:
        raise FormatError("no rows: the file is empty", file=str(place), expected="judgments")
    return judgment_table(frame, run_name(place), str(place))


def judgment_table(frame: pl.DataFrame, judge: str, source: str = "") -> pl.DataFrame:
    """Any table of judgments as one of opinions."""
    column = next((name for name in ("label", "value", "grade", "rating") if name in frame.columns), None)
    if column is None or not any(name in frame.columns for name in ID_ALIASES["query"]):
        raise FormatError(
            f"no judgments among the columns {format_names(frame.columns)}",
            file=source,
            expected="query, what is judged (system, passage, subquestion) and value or label; maybe judge and aspect",
        )
    if column == "label" and "value" in frame.columns and frame["label"].null_count() == frame.height:
        column = "value"
    query = coercion.id_column(frame, "query", table="judgments", source=source)
    keys = [
        coercion.id_column(frame, name, table="judgments", source=source).alias(name)
        if name in ID_ALIASES and name != "repeat"
        else frame[name].cast(pl.String).alias(name)
        for name in THINGS
        if any(other in frame.columns for other in ID_ALIASES.get(name, (name,)))
    ]
    value, label = _values(frame[column])
    status = frame["status"] == OK if "status" in frame.columns else pl.Series([True] * frame.height)
    thing = pl.DataFrame(keys).select(pl.concat_str(pl.all(), separator=" · ")).to_series() if keys else query
    made = pl.DataFrame(
        {
            "aspect": frame["aspect"].cast(pl.String) if "aspect" in frame.columns else [FILES] * frame.height,
            "query": query,
            "thing": thing,
            "judge": frame["judge"].cast(pl.String) if "judge" in frame.columns else [judge] * frame.height,
            "value": value,
            "label": label,
        },
        schema=SCHEMA,
    ).with_columns(
        pl.when(status).then(pl.col("value")).alias("value"), pl.when(status).then(pl.col("label")).alias("label")
    )
    return check_single_judgments(made, source)


def _values(cells: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Cells as numbers; as words, without numbers, where some are words."""
    if cells.dtype.is_numeric() or cells.dtype == pl.Boolean:
        return cells.cast(pl.Float64).fill_nan(None), pl.Series([None] * len(cells), dtype=pl.String)
    texts = cells.cast(pl.String).str.strip_chars().replace("", None)
    numbers = texts.cast(pl.Float64, strict=False)
    if numbers.null_count() == texts.null_count():
        return numbers, pl.Series([None] * len(cells), dtype=pl.String)
    words = [
        text if text is None else word(text) if number is None else _written(number)
        for text, number in zip(texts, numbers, strict=True)
    ]
    return pl.Series([None] * len(cells), dtype=pl.Float64), pl.Series(words, dtype=pl.String)


def word(text: str) -> str:
    """A label as it is compared: in small letters, with hyphens."""
    return text.strip().lower().replace(" ", "-").replace("_", "-")


def _written(number: float) -> str:
    """A number as a label."""
    return f"{number:.15g}"


def numbered(frame: pl.DataFrame) -> pl.DataFrame:
    """The same opinions with a number for each word, the same for all judges of an aspect.

    Grades have their worth; other words are numbered by the alphabet, over the words of everybody. Where some judges
    use words without an order and others numbers, numbers are labels too.
    """
    parts = [_numbered(part) for _, part in frame.group_by("aspect", maintain_order=True)]
    return pl.concat(parts) if parts else frame


def _numbered(frame: pl.DataFrame) -> pl.DataFrame:
    words, label = set(frame["label"].drop_nulls()), frame["label"]
    if not words:
        return frame
    places = GRADES
    if not words <= GRADES.keys():
        numbers = [None if value is None else _written(value) for value in frame["value"]]
        bare = {number for number, said in zip(numbers, label, strict=True) if said is None and number is not None}
        if bare and bare.isdisjoint(words):
            raise InputError(
                f"some judges use words ({format_list(sorted(words), 6)}), others numbers "
                f"({format_list(sorted(bare), 6)})",
                expected="the same words, or numbers, by all who judge the same things",
            )
        label = pl.Series("label", [said or number for said, number in zip(label, numbers, strict=True)], pl.String)
        places = {each: float(at) for at, each in enumerate(sorted(words | bare))}
    value = label.replace_strict(places, default=None, return_dtype=pl.Float64)
    return frame.with_columns(label, pl.when(label.is_not_null()).then(value).otherwise(frame["value"]).alias("value"))


def check_single_judgments(frame: pl.DataFrame, source: str = "") -> pl.DataFrame:
    """Refuse a table in which one judge judges one thing twice."""
    again = frame.filter(pl.struct("aspect", "query", "thing", "judge").is_duplicated())
    if again.height:
        row = again.row(0, named=True)
        raise InputError(
            f"{row['judge']!r} judges {row['thing']!r} of the query {row['query']!r} more than once",
            file=source,
            expected="each thing once by each judge; system, passage or subquestion tells things apart",
        )
    return frame


def of_results(results: Results, aspects: Iterable[str], name: str) -> pl.DataFrame:
    """What several judges said in one folder of results.

    Outcomes such as ``grade`` and ``judge-grade``, of the same thing by two graders, are two judges; so are the
    ``aspects`` that somebody names. Judgments of passages and ratings are one judge, under the name of the case.
    """
    wanted = list(aspects)
    parts = []
    for table in (results.outcomes, results.judgments):
        if table is None:
            continue
        known = table.frame["aspect"].unique(maintain_order=True).to_list()
        for aspect, judge, of in _judges(known, wanted, name, several=table is results.outcomes):
            parts.append(
                judgment_table(table.frame.filter(pl.col("aspect") == aspect).with_columns(aspect=pl.lit(of)), judge)
            )
    if results.ratings is not None and not wanted:
        parts.append(judgment_table(results.ratings.frame.with_columns(aspect=pl.lit("ratings")), name))
    found = {judge for part in parts for judge in part["judge"].unique()}
    if lacking := [each for each in wanted if each not in found]:
        raise InputError(f"{name}: there is no {format_list(lacking)} among outcomes and judgments")
    return pl.concat(parts) if parts else pl.DataFrame(schema=SCHEMA)


def _judges(known: list[str], wanted: list[str], name: str, several: bool) -> list[tuple[str, str, str]]:
    """Aspects, whose they are, and what they are of."""
    if wanted:
        return [(aspect, aspect, "judgments") for aspect in known if aspect in wanted]
    if not several:
        return [(aspect, name, aspect) for aspect in known]
    made = []
    for aspect in known:
        base = next((each for each in known if aspect.endswith(f"-{each}")), aspect)
        others = any(each.endswith(f"-{base}") for each in known)
        judge = aspect.removesuffix(f"-{base}") if base != aspect else base if others else name
        made.append((aspect, judge, base))
    return made
