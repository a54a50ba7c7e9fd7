"""Judgments of the same items by several judges: files to one table.

Columns: aspect (what was judged), query, item (which passage, sub-question or answer), judge, value, and label if the
judgment is a word. A judgment without a value stays, as null. A word has no value by itself: `number_labels` gives each
word the same number for all judges of an aspect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from ragworth import formats
from ragworth.core.errors import FormatError, InputError, format_list, format_names
from ragworth.data import OK, coercion
from ragworth.data.coercion import ID_ALIASES
from ragworth.formats.files import run_name
from ragworth.formats.grades import VALUES_OF_WORDS, normalise_label
from ragworth.formats.tables import read_table
from ragworth.label.imports import crux

SCHEMA = {
    "aspect": pl.String,
    "query": pl.String,
    "item": pl.String,
    "judge": pl.String,
    "value": pl.Float64,
    "label": pl.String,
}
ITEM_COLUMNS = ("system", "other", "passage", "subquestion", "repeat")
NO_SCORE = "no-score"
"""Status of a label that has no number: a word of a scale without scores."""
SUFFIXES = (".csv", ".tsv", ".parquet", ".txt", ".qrels", ".gz", ".zst", ".jsonl")
UNNAMED = "judgments"
"""The aspect of a file that names none."""


def is_judged(place: Path) -> bool:
    """Whether a place is a file of judgments or a folder of CRUX's annotation exports, not a workspace or results."""
    return (place.is_file() and place.suffix.lower() in SUFFIXES) or bool(crux.find_exports(place))


def read(place: Path) -> pl.DataFrame:
    """Read qrels, a table with query, the judged item, and a value or label, or exports of CRUX's labelling app.

    A column ``judge`` names the judge of each row; without it, the file is one judge, with the file's name.
    """
    if place.is_dir():
        return pl.concat([read(file) for file in crux.find_exports(place)])
    if crux.is_export(place):
        return check_single_judgments(_read_export(place), str(place))
    suffixes = {each.lower() for each in place.suffixes}
    if not suffixes & {".csv", ".tsv", ".parquet"}:
        frame = formats.read_judgments(place).frame
    else:
        frame = _read_judged_table(place)
    if not frame.height:
        raise FormatError("no rows: the file is empty", file=str(place), expected="judgments")
    return judgment_table(frame, run_name(place), str(place))


def _read_export(place: Path) -> pl.DataFrame:
    """An export of CRUX's labelling app, by one judge."""
    aspects, judge = {"answerability": "answerability", "coverage": "rating"}, crux.judge_of(place)
    rows = [
        (aspects[mark.kind], mark.id, " · ".join(filter(None, (mark.passage, mark.number))), judge, mark.value, None)
        for mark in crux.read_marks(place)
    ]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _read_judged_table(place: Path) -> pl.DataFrame:
    """A table whose values are numbers or grades in words; another word is an error with its line."""
    frame, _ = read_table(place, words=("label", "judge", "value"))
    if "value" not in frame.columns or frame["value"].dtype != pl.String:
        return frame
    texts = frame["value"].str.strip_chars().replace("", None).drop_nulls()
    words = texts.filter(texts.cast(pl.Float64, strict=False).is_null())
    if len(words) and {normalise_label(word) for word in words} <= VALUES_OF_WORDS.keys():
        return frame
    return read_table(place, words=("label", "judge"))[0]


def judgment_table(frame: pl.DataFrame, judge: str, source: str = "") -> pl.DataFrame:
    """Convert any table of judgments."""
    column = next((name for name in ("label", "value", "grade", "rating") if name in frame.columns), None)
    if column is None or not any(name in frame.columns for name in ID_ALIASES["query"]):
        raise FormatError(
            f"no judgments among the columns {format_names(frame.columns)}",
            file=source,
            expected="query, the item (system, passage, subquestion) and value or label; optionally judge and aspect",
        )
    if column == "label" and "value" in frame.columns and frame["label"].null_count() == frame.height:
        column = "value"
    query = coercion.id_column(frame, "query", table="judgments", source=source)
    value, label = _values(frame[column])
    if column == "label" and "value" in frame.columns and "aspect" in frame.columns:
        value = _numbers_of_bare_aspects(frame["aspect"], value, label, frame["value"])
    status = frame["status"].is_in([OK, NO_SCORE]) if "status" in frame.columns else pl.Series([True] * frame.height)
    made = pl.DataFrame(
        {
            "aspect": frame["aspect"].cast(pl.String) if "aspect" in frame.columns else [UNNAMED] * frame.height,
            "query": query,
            "item": _item_names(frame, query, source),
            "judge": frame["judge"].cast(pl.String) if "judge" in frame.columns else [judge] * frame.height,
            "value": value,
            "label": label,
        },
        schema=SCHEMA,
    ).with_columns(
        pl.when(status).then(pl.col("value")).alias("value"), pl.when(status).then(pl.col("label")).alias("label")
    )
    return check_single_judgments(made, source)


def _item_names(frame: pl.DataFrame, query: pl.Series, source: str) -> pl.Series:
    """What is judged, as one text: system, passage, …; or the query where nothing else is named."""
    keys = [
        coercion.id_column(frame, name, table="judgments", source=source).alias(name)
        if name in ID_ALIASES and name != "repeat"
        else _item_text(frame[name])
        for name in ITEM_COLUMNS
        if any(other in frame.columns for other in ID_ALIASES.get(name, (name,)))
    ]
    if not keys:
        return query
    texts = pl.DataFrame(keys).select(pl.concat_str(pl.all(), separator=" · ", ignore_nulls=True)).to_series()
    return query.zip_with(texts == "", texts)


def _item_text(cells: pl.Series) -> pl.Series:
    """What tells items apart; the first repeat, 0, goes without saying, because most tables don't number answers."""
    if cells.name != "repeat":
        return cells.cast(pl.String)
    numbers = cells.cast(pl.Float64, strict=False)
    texts = [
        text if number is None else _written(number) if number else None
        for text, number in zip(cells, numbers, strict=True)
    ]
    return pl.Series("repeat", texts, pl.String)


def _values(cells: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Cells as numbers; if some are words, all are labels."""
    if cells.dtype.is_numeric() or cells.dtype == pl.Boolean:
        return cells.cast(pl.Float64).fill_nan(None), pl.Series([None] * len(cells), dtype=pl.String)
    texts = cells.cast(pl.String).str.strip_chars().replace("", None)
    numbers = texts.cast(pl.Float64, strict=False)
    if numbers.null_count() == texts.null_count():
        return numbers, pl.Series([None] * len(cells), dtype=pl.String)
    words = [
        text if text is None else normalise_label(text) if number is None else _written(number)
        for text, number in zip(texts, numbers, strict=True)
    ]
    return pl.Series([None] * len(cells), dtype=pl.Float64), pl.Series(words, dtype=pl.String)


def _numbers_of_bare_aspects(aspect: pl.Series, value: pl.Series, label: pl.Series, numbers: pl.Series) -> pl.Series:
    """The values, and the numbers of those aspects of a table with labels that have none."""
    made = pl.DataFrame({"aspect": aspect, "value": value, "label": label, "number": _values(numbers)[0]})
    bare = (pl.col("label").is_null() & pl.col("value").is_null()).all().over("aspect")
    return made.select(pl.when(bare).then("number").otherwise("value").alias("value")).to_series()


def _written(number: float) -> str:
    """A number as a label."""
    return f"{number:.15g}"


def number_labels(frame: pl.DataFrame) -> pl.DataFrame:
    """Give each word a number, the same for all judges of an aspect.

    Grades have their value; other words are numbered in alphabetical order, over all judges. If some judges use words
    without an order and others numbers, numbers are labels too.
    """
    parts = [_number_labels(part) for _, part in frame.group_by("aspect", maintain_order=True)]
    return pl.concat(parts) if parts else frame


def _number_labels(frame: pl.DataFrame) -> pl.DataFrame:
    words, label = set(frame["label"].drop_nulls()), frame["label"]
    if not words:
        return frame
    places: Mapping[str, float] = VALUES_OF_WORDS
    if not words <= VALUES_OF_WORDS.keys():
        numbers = [None if value is None else _written(value) for value in frame["value"]]
        bare = {number for number, said in zip(numbers, label, strict=True) if said is None and number is not None}
        if bare and bare.isdisjoint(words):
            raise InputError(
                f"some judges use words ({format_list(sorted(words), 6)}), others numbers "
                f"({format_list(sorted(bare), 6)})",
                expected="the same words, or numbers, from all judges of the same items",
            )
        label = pl.Series("label", [said or number for said, number in zip(label, numbers, strict=True)], pl.String)
        places = {each: float(at) for at, each in enumerate(sorted(words | bare))}
    value = label.replace_strict(places, default=None, return_dtype=pl.Float64)
    return frame.with_columns(label, pl.when(label.is_not_null()).then(value).otherwise(frame["value"]).alias("value"))


def check_single_judgments(frame: pl.DataFrame, source: str = "") -> pl.DataFrame:
    """Refuse a table in which a judge judges an item twice."""
    again = frame.filter(pl.struct("aspect", "query", "item", "judge").is_duplicated())
    if again.height:
        row = again.row(0, named=True)
        raise InputError(
            f"{row['judge']!r} judges {row['item']!r} of the query {row['query']!r} more than once",
            file=source,
            expected="each item once by each judge; system, passage or subquestion tells items apart",
        )
    return frame


def combine_judges(tables: Mapping[str, pl.DataFrame], aspects: Sequence[str] = ()) -> dict[str, pl.DataFrame]:
    """The tables in which several judges judge the same items, by name, and all the others as one table.

    ``aspects`` are of the same thing, so each of them is a judge.
    """
    found: dict[str, pl.DataFrame] = {}
    single: dict[str, pl.DataFrame] = {}
    for name, table in tables.items():
        mine = table.filter(pl.col("aspect").is_in(aspects))
        mine = mine.with_columns(pl.col("aspect").alias("judge"), aspect=pl.lit(UNNAMED)) if mine.height else table
        mine = number_labels(check_single_judgments(mine))
        (found if _has_several_judges(mine) else single)[name] = mine
    if not single:
        return found
    # Labels are numbered again, so that a word has one number in all files.
    joined = pl.concat([_as_one_judge(table, name) for name, table in single.items()])
    joined = number_labels(check_single_judgments(joined))
    if not _has_several_judges(joined):
        rows = joined.select("judge", "aspect").unique().iter_rows()
        names = sorted(f"{judge} on {aspect}" for judge, aspect in rows)
        raise InputError(
            f"nobody judges what another judges: {format_list(names, 6)}",
            expected="two or more judges of the same queries and items, under the same aspect",
        )
    return {**found, ", ".join(single): joined}


def _has_several_judges(table: pl.DataFrame) -> bool:
    """Whether two judges judge the same item of some aspect."""
    good = table.drop_nulls("value").group_by("aspect", "query", "item").agg(pl.col("judge").n_unique())
    return bool((good["judge"] > 1).any())


def _as_one_judge(table: pl.DataFrame, name: str) -> pl.DataFrame:
    """The only judge of a file under the file's name; the only aspect of a file needs no name."""
    made = table.with_columns(pl.lit(name).alias("judge")) if table["judge"].n_unique() == 1 else table
    return made.with_columns(pl.lit(UNNAMED).alias("aspect")) if table["aspect"].n_unique() == 1 else made


def judges_of_tables(
    outcomes: pl.DataFrame | None,
    judgments: pl.DataFrame | None,
    ratings: pl.DataFrame | None,
    wanted: Sequence[str],
    name: str,
) -> pl.DataFrame:
    """What several judges said in one folder of results.

    Outcomes such as ``grade`` and ``judge-grade``, of the same thing by two graders, are two judges; so are the aspects
    that are ``wanted``. Judgments of passages and ratings are one judge, whose ``name`` is given.
    """
    parts = []
    for table in (outcomes, judgments):
        if table is None:
            continue
        known = table["aspect"].unique(maintain_order=True).to_list()
        for aspect in known:
            base = next((each for each in known if aspect.endswith(f"-{each}")), aspect)
            graders = table is outcomes and any(each.endswith(f"-{base}") for each in known)
            judge, of = (aspect.removesuffix(f"-{base}"), base) if graders else (name, aspect)
            if not wanted or aspect in wanted:
                judge, of = (aspect, UNNAMED) if wanted else (judge, of)
                mine = table.filter(pl.col("aspect") == aspect).with_columns(aspect=pl.lit(of))
                parts.append(judgment_table(mine, judge))
    if ratings is not None and not wanted:
        parts.append(judgment_table(ratings.with_columns(aspect=pl.lit("ratings")), name))
    found = {judge for part in parts for judge in part["judge"].unique()}
    if lacking := [each for each in wanted if each not in found]:
        raise InputError(f"{name}: there is no {format_list(lacking)} among outcomes and judgments")
    return pl.concat(parts) if parts else pl.DataFrame(schema=SCHEMA)


class JudgedItems:
    """One aspect as numbers: ``values`` is items × judges, NaN without a judgment; ``queries`` numbers their queries.

    ``labels`` has the words of values that stand for one; ``ordered`` says whether values have an order.
    """

    def __init__(self, table: pl.DataFrame) -> None:
        self.judges: list[str] = table["judge"].unique(maintain_order=True).to_list()
        # By numbers: a judge may have the name of a column.
        column = {judge: at for at, judge in enumerate(self.judges)}
        items = table.select("query", "item").unique(maintain_order=True)
        row = {pair: at for at, pair in enumerate(items.iter_rows())}
        self.values: npt.NDArray[np.float64] = np.full((items.height, len(self.judges)), np.nan)
        for query, item, judge, value in table.select("query", "item", "judge", "value").iter_rows():
            self.values[row[query, item], column[judge]] = np.nan if value is None else value
        self.known = ~np.isnan(self.values)
        self.queries = np.unique(items["query"].to_numpy().astype(str), return_inverse=True)[1].reshape(-1)
        self.labels: dict[float, str] = dict(
            table.drop_nulls("label").select("value", "label").unique("value").iter_rows()
        )
        self.ordered = set(self.labels.values()) <= VALUES_OF_WORDS.keys()

    def word(self, value: float) -> str:
        return self.labels.get(value, f"{value:g}")

    def meaning_yes(self, label: str | None, lowest: float) -> tuple[str, npt.NDArray[np.float64]] | None:
        """What means yes, in words, and its values: a label, or numbers from ``lowest`` on; None if unknown."""
        every = np.unique(self.values[self.known])
        wanted = normalise_label(label) if label is not None else None
        if mine := [value for value in every if wanted is not None and self.labels.get(value) == wanted]:
            return str(wanted), np.array(mine)
        high = every[every >= lowest]
        return (f"{lowest:g} or more", high) if self.ordered and len(high) else None
