"""What every study says: sentences, tables, figures, and what was left out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ragworth.core.errors import format_count, format_list
from ragworth.report.render import format_p_value

FORMAT = 1
QUERIES = "queries"
LEFT_OUT = {"case": pl.String, "reason": pl.String, QUERIES: pl.Int64}
"""The columns of what was left out: of which case, why, and how many queries. If some rows count something else,
the column ``unit`` says what: queries, contexts, items."""


class StudyFigure(NamedTuple):
    """One chart, by :mod:`ragworth.report.study.charts`. ``name`` names its files: letters, digits, _ and -."""

    name: str
    title: str
    caption: str
    spec: dict[str, Any]


class StudyTable(NamedTuple):
    """A table, as it is printed, written and shown. ``name`` names its files: letters, digits, _ and -.

    ``aside``: too much for a terminal; it is on the page and in its files.
    """

    name: str
    title: str
    frame: pl.DataFrame
    note: str = ""
    aside: bool = False


@dataclass(frozen=True)
class Findings:
    """What a study found.

    Parameters
    ----------
    title: what was asked: "Alignment: which metric predicts the answers".
    lead: what was done, in one or two sentences, with n.
    sentences: what came out, plain, each with its figure and interval; the recommendation first.
    tables: the numbers.
    figures: pictures of them.
    left_out: case, reason and queries (how many; or how many of ``unit``): everything that was left out, counted.
    notes: what is to be known besides.
    settings: seed, resamples, the study's own settings, models, versions: what it takes to do it again.
    """

    title: str
    lead: str
    sentences: tuple[str, ...]
    tables: tuple[StudyTable, ...]
    figures: tuple[StudyFigure, ...]
    left_out: pl.DataFrame
    notes: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def record(self) -> dict[str, Any]:
        """What ``study.json`` holds: all but the tables and figures, of which it has the names."""
        made = {
            "format": FORMAT,
            "title": self.title,
            "lead": self.lead,
            "sentences": self.sentences,
            "tables": [table.name for table in self.tables],
            "figures": [figure.name for figure in self.figures],
            "left_out": self.left_out.to_dicts(),
            "notes": self.notes,
            "settings": self.settings,
        }
        return _plain(made)  # type: ignore[no-any-return]


def _plain(value: Any) -> Any:
    """Anything as JSON has it: what is no number is null, and what JSON does not know is written out."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, Sequence | Set) and not isinstance(value, str | bytes):
        return [_plain(each) for each in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int) else str(value)


def display_table(frame: pl.DataFrame) -> pl.DataFrame:
    """A table as it is shown to people: p-values as such, which are never 0; the name of the case only where there are
    several.
    """
    if "case" in frame.columns and frame.width > 1 and frame["case"].n_unique() == 1:
        frame = frame.drop("case")
    chances = [name for name, kind in frame.schema.items() if is_p_value(name) and kind.is_float()]
    return frame.with_columns(
        pl.col(name).map_elements(format_p_value, return_dtype=pl.String, skip_nulls=False) for name in chances
    )


def is_p_value(name: str) -> bool:
    """Whether a column of this name has p-values."""
    return name == "p" or name.startswith("p_")


def left_out_table(rows: Iterable[tuple[str, str, int, str]]) -> pl.DataFrame:
    """What was left out, each row with its unit."""
    return pl.DataFrame(list(rows), schema={**LEFT_OUT, "unit": pl.String}, orient="row")


def display_left_out(frame: pl.DataFrame) -> pl.DataFrame:
    """What was left out, as people see it: units only where some are not queries."""
    frame = display_table(frame)
    if "unit" not in frame.columns:
        return frame
    plain = frame.with_columns(pl.col("unit").fill_null(QUERIES))
    if (plain["unit"] == QUERIES).all():
        return plain.drop("unit")
    return plain.rename({QUERIES: "number"}, strict=False)


def left_out_words(frame: pl.DataFrame) -> str:
    """How much was left out, in words, unit by unit."""
    sums: dict[str, int] = {}
    units = frame["unit"].fill_null(QUERIES) if "unit" in frame.columns else [QUERIES] * frame.height
    numbers = frame[QUERIES] if QUERIES in frame.columns else [1] * frame.height
    for number, unit in zip(numbers, units, strict=True):
        sums[unit] = sums.get(unit, 0) + number
    totals = format_list([format_count(total, _single(unit), unit) for unit, total in sums.items()])
    what = f"the same {_single(next(iter(sums)))}" if len(sums) == 1 else "one and the same"
    return f"{totals} left out; {what} can be counted for several reasons and cases."


def _single(unit: str) -> str:
    """One of a unit: a query, a thing, a query of one measure."""
    first, space, rest = unit.partition(" ")
    return ("query" if first == QUERIES else first.removesuffix("s")) + space + rest
