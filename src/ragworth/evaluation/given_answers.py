"""Existing answers and grades, combined from logs and files; they are never silently replaced or filled in."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ragworth.core.errors import InputError, format_count, format_list, quote_short
from ragworth.data import Answers, Outcomes
from ragworth.data.coercion import duplicate_rows
from ragworth.data.tables import Note
from ragworth.formats.contract import LoadedCollection
from ragworth.judging.answers import AnsweringResult, shown_contexts


def join_outcomes(files: Sequence[Outcomes], logs: Sequence[LoadedCollection]) -> Outcomes:
    """Grades from files and logs in one table; each must have a single source."""
    tables = [*(log.outcomes for log in logs if log.outcomes is not None), *files]
    frame = pl.concat([table.frame for table in tables]) if tables else pl.DataFrame(schema=Outcomes.schema)
    again = duplicate_rows(frame, Outcomes.key)
    if len(again):
        row = frame.row(int(again[0]), named=True)
        raise InputError(
            f"two outcomes {quote_short(row['aspect'])} of {quote_short(row['system'])} for the query "
            f"{quote_short(row['query'])}",
            expected="one in all files of outcomes",
        )
    notes = (*(note for table in tables for note in table.notes), *_scale_notes(tables))
    return Outcomes.trusted(frame, notes)


def _scale_notes(tables: Sequence[Outcomes]) -> list[str]:
    """Return a note for grades of one name that seem to be on different scales in different files."""
    frames = [table.frame.with_columns(file=pl.lit(number)) for number, table in enumerate(tables)]
    if len(frames) < 2:
        return []
    largest = pl.concat(frames).group_by("aspect", "file", maintain_order=True).agg(pl.col("value").abs().max())
    ranges = (
        largest.drop_nulls("value")
        .group_by("aspect", maintain_order=True)
        .agg(low=pl.col("value").min(), high=pl.col("value").max())
    )
    return [
        f"grades {quote_short(aspect, 24)} are up to {low:g} in one file and up to {high:g} in another: "
        "compare systems only if these are on one scale"
        for aspect, low, high in ranges.iter_rows()
        if low <= 1 < high
    ]


def join_answers(file: AnsweringResult | None, logs: Sequence[LoadedCollection]) -> AnsweringResult:
    """Answers from logs and from the file of ``[answers]``; those of a system must have a single source."""
    shown = pl.lit(None, pl.List(pl.String)).alias("shown")
    tables = [log.answers for log in logs if log.answers is not None]
    frames = [table.frame.with_columns(shown) for table in tables] + ([file.frame] if file is not None else [])
    if file is not None and tables:
        mine = set(file.table.distinct("system"))
        both = [name for table in tables for name in table.distinct("system") if name in mine]
        if both:
            raise InputError(
                f"the file and a log both have answers of {format_list([quote_short(name, 24) for name in both], 3)}",
                remedy="take the file out of [answers], or the answers out of the log",
            )
    notes = (*(note for table in tables for note in table.notes), *(file.notes if file is not None else ()))
    empty = pl.DataFrame(schema={**Answers.schema, "shown": pl.List(pl.String)})
    frame = pl.concat(frames, how="diagonal") if frames else empty
    return AnsweringResult(Answers.trusted(frame, notes), frame, shown_contexts(frame), notes)


def replaced_notes(logs: Sequence[LoadedCollection]) -> list[str]:
    """Note the answers and grades that ``replace`` ignores."""
    tables = [table for log in logs for table in (log.answers, log.outcomes) if table is not None]
    names = dict.fromkeys(name for table in tables for name in table.distinct("system"))
    few = format_list([quote_short(name, 24) for name in names], 3)
    return [f"answers and grades in the data are replaced, as asked: {few}"] if names else []


def missing_answer_notes(
    answers: AnsweringResult | None, queries: Sequence[str], texts: pl.DataFrame | None = None
) -> list[str]:
    """Queries that a system has no answer to, although it has some to others. ``texts``: of questions without ids."""
    questions = dict(texts.filter(pl.col("query").str.starts_with("text:")).iter_rows()) if texts is not None else {}
    notes: list[str] = []
    if answers is not None:
        known = answers.frame.group_by("system", maintain_order=True).agg(pl.col("query").unique())
        for system, answered in known.iter_rows():
            has = set(answered)
            lacking = [query for query in queries if query not in has]
            if lacking:
                few = format_list([quote_short(questions.get(query, query), 40) for query in lacking], 3)
                number = f"{len(lacking):,} of {format_count(len(queries), 'query', 'queries')}"
                notes.append(Note(f"{system}: no answer to {number} ({few}); none is made up", system=system))
    return notes
