"""Grades by people, to see how far a grader agrees with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from ragworth.errors import InputError, TableError, format_list, quote_short
from ragworth.formats.files import PathOrStr
from ragworth.formats.frames import read_table
from ragworth.formats.grade_words import THREE_WAY
from ragworth.graders.contract import Grader
from ragworth.tables import OK, coercion
from ragworth.tables.coercion import Data

HUMAN_SOURCE = "human"
"""The aspect of grades by people, where a table says no more of them."""

CORRECT_OR_NOT = {0.0, 1.0}
"""Numbers that say whether an answer is correct, and no more, where grades are three-way."""


@dataclass(frozen=True)
class HumanLabels:
    """Grades by people for the aspects of a grader."""

    frames: dict[str, pl.DataFrame]
    """By aspect: system, query, repeat where the table has it, and value."""
    binary: bool = False
    """Whether they say only 1 for correct and 0 for not, while the grader says more."""


def read_human_labels(path: PathOrStr, grader: Grader) -> HumanLabels:
    """Grades by people from Parquet, CSV or TSV."""
    table, _ = read_table(path, words=("value", "label"))
    return parse_human_labels(table, grader, source=str(path))


def parse_human_labels(data: Data, grader: Grader, *, source: str = "") -> HumanLabels:
    """Grades by people out of a table with system, query and ``value`` or ``label``: numbers, or words such as correct.

    Without a column ``aspect`` they are of the grader's first one. What the grader cannot give is refused, except that
    0 and 1 alone may stand for correct or not.
    """
    frame = coercion.to_frame(data, source=source)
    ids = [coercion.id_column(frame, name, table="labels", source=source) for name in ("system", "query")]
    if "repeat" in frame.columns:
        ids.append(coercion.to_numbers(frame["repeat"], source=source, kind=pl.Int64))
    column = next((name for name in ("value", "label") if name in frame.columns), None)
    if column is None:
        raise TableError(
            f"a labels table needs a 'value' or 'label' column; this one has {format_list(frame.columns, 12)}",
            expected=_expected(grader),
            file=source,
        )
    cells, words = _values(frame[column], grader, source)
    aspect = (
        frame["aspect"] if "aspect" in frame.columns else pl.Series("aspect", [HUMAN_SOURCE] * frame.height, pl.String)
    )
    given = pl.DataFrame([*ids, aspect.cast(pl.String), cells]).drop_nulls("value")
    if "status" in frame.columns:
        given = given.filter(frame.filter(cells.is_not_null())["status"] == OK)
    frames = _by_aspect(given, grader, source)
    numbers = {value for part in frames.values() for value in part["value"]}
    return HumanLabels(frames, bool(_is_three_way(grader)) and not words and numbers <= CORRECT_OR_NOT)


def _by_aspect(given: pl.DataFrame, grader: Grader, source: str) -> dict[str, pl.DataFrame]:
    """The rows for each aspect of the grader, one for each thing that is graded."""
    names = given["aspect"].unique(maintain_order=True).to_list()
    first, *_ = grader.aspects
    chosen = {aspect: aspect for aspect in grader.aspects if aspect in names}
    if not chosen:
        other = (
            HUMAN_SOURCE
            if HUMAN_SOURCE in names
            else names[0]
            if len(names) == 1 and len(grader.aspects) == 1
            else None
        )
        if other is None:
            raise InputError(
                f"the labels are of {format_list(names, 12)}" if names else "there are no labels",
                expected=f"the aspect {format_list([*grader.aspects, HUMAN_SOURCE])}",
                remedy="rename the aspect, or leave the others out",
                file=source,
            )
        chosen = {first: other}
    frames = {aspect: given.filter(pl.col("aspect") == name).drop("aspect") for aspect, name in chosen.items()}
    for part in frames.values():
        key = part.columns[:-1]
        again = part.filter(~pl.struct(key).is_first_distinct())
        if again.height:
            row = again.row(0, named=True)
            raise TableError(
                "a second label for " + ", ".join(f"{name} {quote_short(row[name])}" for name in key),
                expected=f"one for each ({', '.join(key)})",
                remedy="let one of them count, such as that of the majority",
                file=source,
            )
    return frames


def _is_three_way(grader: Grader) -> bool:
    return bool(grader.possible) and not grader.ordinal


def _scale(grader: Grader) -> Mapping[str, float]:
    """Values by label: the grader's; where grades are three-way, also that of people's "partially correct"."""
    return THREE_WAY if _is_three_way(grader) else grader.possible


def _values(cells: pl.Series, grader: Grader, source: str) -> tuple[pl.Series, bool]:
    """Values of cells, which are numbers or words, and whether any is a word; null stays null."""
    found, words = [], False
    for row, cell in enumerate(cells.to_list(), 1):
        value, word = _value(cell, grader)
        if cell is not None and (value is None or (grader.possible and value not in _scale(grader).values())):
            raise InputError(f"row {row}: the label is {quote_short(cell)}", expected=_expected(grader), file=source)
        found.append(value)
        words = words or word
    return pl.Series("value", found, dtype=pl.Float64), words


def _value(cell: object, grader: Grader) -> tuple[float | None, bool]:
    """The value of a cell, None where it says nothing known; and whether it is a word."""
    if isinstance(cell, str):
        word = "-".join(cell.casefold().replace("_", " ").replace("-", " ").split())
        if word in THREE_WAY and _is_three_way(grader):
            return THREE_WAY[word], True
    try:
        value = float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None, False
    return (value if value == value else None), False


def _expected(grader: Grader) -> str:
    """What may stand in a table of labels, in words."""
    if not grader.possible:
        return "numbers"
    if grader.ordinal:
        return f"one of {', '.join(grader.possible)}"
    known = [f"{word} ({value:g})" for word, value in THREE_WAY.items()]
    return f"{', '.join(known)}, in words or numbers; or 1 and 0 alone, for correct or not"
