"""What a study finds while it is written: rows of tables, sentences, figures and what was left out, case by case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import polars as pl

from ragworth.report.study.findings import QUERIES, Findings, StudyFigure, StudyTable, left_out_table
from ragworth.results import Results
from ragworth.stats.estimate import Estimate

Row = Mapping[str, object]
K = TypeVar("K")


class StudiedCase(Protocol):
    """One of the collections, or models, that a study is about."""

    @property
    def name(self) -> str: ...

    @property
    def results(self) -> Results: ...


class TableText(NamedTuple):
    """What stands above and below a table. ``aside``: too long for a terminal."""

    title: str
    note: str = ""
    aside: bool = False


class StudyPage:
    """Collects what a study finds in each case. ``tables``: those that it may fill, in the order shown."""

    def __init__(self, title: str, tables: Mapping[str, TableText], cases: Sequence[StudiedCase]) -> None:
        self.title, self.texts, self.cases = title, tables, cases
        self.several = len(cases) > 1
        self._frames: dict[str, list[pl.DataFrame]] = {}
        self._sentences: list[str] = []
        self._leads: list[str] = []
        self._notes: list[str] = []
        self._figures: list[StudyFigure] = []
        self._left_out: list[tuple[str, str, int, str]] = []

    def lead(self, case: StudiedCase, text: str) -> None:
        """What was done in a case, in one sentence."""
        self._leads.append(self._of(case, text))

    def say(self, case: StudiedCase, *sentences: str) -> None:
        """What came out; the most important first."""
        self._sentences += [self._of(case, each) for each in sentences if each]

    def note(self, case: StudiedCase, *notes: str) -> None:
        self._notes += [self._of(case, each) for each in notes if each]

    def leave_out(self, case: StudiedCase, reasons: Mapping[str, int], unit: str = QUERIES) -> None:
        """Count what was left out, by reason."""
        self._left_out += [(case.name, reason, number, unit) for reason, number in reasons.items() if number]

    def add(self, table: str, case: StudiedCase, rows: Iterable[Row] | pl.DataFrame) -> pl.DataFrame:
        """Rows of a case for a table of the study, which are returned as a table of their own."""
        frame = rows if isinstance(rows, pl.DataFrame) else make_table(rows)
        if not frame.height:
            return frame
        named = frame.select(pl.lit(case.name).alias("case"), pl.all())
        self._frames.setdefault(table, []).append(named)
        return named

    def table(self, name: str) -> pl.DataFrame:
        """A table with the rows of all cases so far."""
        frames = self._frames.get(name, [])
        return pl.concat(frames, how="diagonal_relaxed") if frames else pl.DataFrame()

    def draw(self, name: str, title: str, caption: str, spec: dict[str, Any], case: StudiedCase | None = None) -> None:
        """Add a figure: of one case, or of all."""
        if case is not None and self.several:
            name, title = f"{name}-{self.cases.index(case) + 1}", f"{title}: {case.name}"
        self._figures.append(StudyFigure(name, title, caption, spec))

    def dots(self, table: str, label: str, value: str, *group: pl.Expr) -> pl.DataFrame:
        """The rows of a table that have a value, as `dot_chart` takes them."""
        names = {label: "label", value: "value", "queries": "n"}
        columns = [pl.col(name).alias(short) for name, short in names.items()]
        return self.table(table).select(*columns, "low", "high", *(group or self.group)).drop_nulls("value")

    @property
    def group(self) -> list[pl.Expr]:
        """The column by which figures tell cases apart, if there are several."""
        return [pl.col("case").alias("group")] if self.several else []

    def findings(self) -> Findings:
        tables = [
            StudyTable(name, text.title, self.table(name), text.note, text.aside)
            for name, text in self.texts.items()
            if name in self._frames
        ]
        left = left_out_table(self._left_out)
        return Findings(
            self.title,
            " ".join(self._leads),
            tuple(self._sentences),
            tuple(tables),
            tuple(self._figures),
            left.drop("unit") if (left["unit"] == QUERIES).all() else left,
            tuple(dict.fromkeys(self._notes)),
        )

    def _of(self, case: StudiedCase, text: str) -> str:
        if self.several:
            return f"{case.name}: {text}"
        first = text.partition(" ")[0].rstrip(",;:")
        return text[:1].upper() + text[1:] if first.isalpha() and first.islower() else text


def make_table(rows: Iterable[Row]) -> pl.DataFrame:
    """Rows as a table; NaN is no value, and a column without any value is one of numbers."""
    frame = pl.DataFrame(list(rows), infer_schema_length=None)
    return frame.with_columns(pl.col(pl.Null).cast(pl.Float64), pl.col(pl.Float64).fill_nan(None))


def estimate_rows(
    keys: Sequence[str], found: Mapping[K, Estimate], value: str, *more: str, unit: str = "queries"
) -> list[dict[str, object]]:
    """A row for each estimate: its key in the columns ``keys``, then those of `columns`."""
    named = {key: key if isinstance(key, tuple) else (key,) for key in found}
    return [dict(zip(keys, named[key], strict=True)) | columns(found[key], value, *more, unit=unit) for key in found]


def columns(one: Estimate, value: str, *more: str, unit: str = "queries") -> dict[str, object]:
    """An estimate as columns of a table: value, interval, what is named in ``more``, and the number of its units.

    If the units are turns, also the number of their conversations.

    ``more``: p, p_holm, counts, detectable, why, left out or missing (with the reasons).
    """
    made: dict[str, object] = {value: one.value, "low": one.low, "high": one.high}
    made |= {name: getattr(one, name) for name in ("p", "p_holm") if name in more}
    made |= one.counts if "counts" in more else {}
    made |= {unit: one.n}
    made |= {"conversations": one.clusters} if one.clusters is not None else {}
    made |= {"detectable": one.detectable} if "detectable" in more else {}
    made |= {name: one.n_left_out for name in ("left out", "missing") if name in more}
    return made | ({"why": one.reason} if {"left out", "missing", "why"} & set(more) else {})
