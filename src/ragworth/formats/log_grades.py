"""Make the outcomes of a RAG log from the grades in its records."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple

import polars as pl

from ragworth.core.errors import format_list, quote_short
from ragworth.data import OK, Outcomes
from ragworth.formats.grade_words import (
    KNOWN_ASPECTS,
    Grade,
    GradeError,
    ReadGrades,
    expected_grades,
    grade_remedy,
    read_grades,
    scales_error,
    source_of,
)
from ragworth.formats.logs.records import format_places

UNSURE_COLUMNS = frozenset(("label", "annotation"))
"""Names of grades that may also be the names of classes or clusters."""

NO_VALUE = "no-value"
"""Status of a grade that the log does not have."""

GradeKey = tuple[str, str, str]
"""System, query and aspect."""


class LogGrades(NamedTuple):
    """How the grades of a log are read.

    Attributes
    ----------
    unit: what the places of records count.
    columns: what the file calls the aspects.
    certain: aspects that must be grades, because the user said so.
    """

    source: str
    unit: str
    columns: Mapping[str, str]
    certain: Container[str]

    def table(
        self,
        outcomes: Mapping[GradeKey, Sequence[tuple[Grade, int]]],
        answered: Iterable[tuple[str, str]],
        notes: list[str],
    ) -> Outcomes | None:
        """Make the table of grades; ``answered`` are the systems and queries with a record."""
        rows: list[tuple[str, str, str, float | None, str, str]] = []
        for aspect in dict.fromkeys(key[2] for key in outcomes):
            part = {key: values for key, values in outcomes.items() if key[2] == aspect}
            grades = self._read(aspect, [value for values in part.values() for value in values], notes)
            if grades is None:
                continue
            rows += self._ungraded(aspect, part, answered)
            number = 0
            for key, values in part.items():
                places = [i for i in range(number, number + len(values)) if grades.values[i] is not None]
                number += len(values)
                of_key = [value for i in places if (value := grades.values[i]) is not None]
                mean = sum(of_key) / len(of_key) if of_key else None
                source = source_of(self.source or "given", [i in grades.words for i in places], of_key)
                rows.append((*key, mean, OK if of_key else NO_VALUE, source))
        if not any(row[3] is not None for row in rows):
            return None
        return Outcomes(pl.DataFrame(rows, schema=Outcomes.schema, orient="row"), source=self.source)

    def _ungraded(
        self, aspect: str, graded: Mapping[GradeKey, object], answered: Iterable[tuple[str, str]]
    ) -> list[tuple[str, str, str, float | None, str, str]]:
        """Rows for the queries that a graded system has no grade for."""
        systems = {key[0] for key in graded}
        keys = ((system, query, aspect) for system, query in answered if system in systems)
        return [(*key, None, NO_VALUE, self.source or "given") for key in keys if key not in graded]

    def _read(self, aspect: str, values: list[tuple[Grade, int]], notes: list[str]) -> ReadGrades | None:
        """Turn grades into numbers. A column without any grade is something else, and noted."""
        found = read_grades([value for value, _ in values], aspect)
        where = f"{self.source}: " if self.source else ""
        name = self.columns.get(aspect, aspect)
        known = [value for value in found.values if value is not None]
        unsure = name.lower() in UNSURE_COLUMNS and aspect not in self.certain
        if unsure and known and not found.unknown and not -1 <= min(known) <= max(known) <= 1:
            notes.append(
                f"{where}{name!r} was not read as a grade: its numbers from {min(known):g} to {max(known):g} may be "
                f"classes; if they are grades: --map {aspect}={name}, or [columns]"
            )
            return None
        if found.unknown:
            few = format_list(list(dict.fromkeys(quote_short(values[i][0], 24) for i in found.unknown)), 3)
            some = aspect in KNOWN_ASPECTS and len(known) > (len(found.unknown) if unsure else 0)
            if some or aspect in self.certain:
                first = values[found.unknown[0]]
                raise GradeError(
                    f"{name!r} has {few}, which is no grade",
                    file=self.source,
                    line=first[1] if self.unit == "line" else None,
                    more=(format_places((values[i][1] for i in found.unknown), self.unit),),
                    expected=expected_grades(),
                    remedy=grade_remedy([values[i][0] for i in found.unknown]),
                )
            notes.append(f"{where}{name!r} was not read as a grade: it has {few}, not numbers or words like 'correct'")
            return None
        if found.clash is not None:
            one, other = (values[i] for i in found.clash)
            place = max(one[1], other[1]) if self.unit == "line" else None
            raise scales_error(one[0], other[0], name).copy(file=self.source, line=place)
        if found.missing:
            which = format_places((values[i][1] for i in found.missing), self.unit)
            few = format_list(list(dict.fromkeys(quote_short(values[i][0], 24) for i in found.missing)), 3)
            notes.append(f"{where}{which} without a grade {name!r}: it says {few}; missing, not wrong")
        return found
