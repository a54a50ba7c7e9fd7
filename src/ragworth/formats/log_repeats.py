"""Advise on answers of a system to the same question: which column may tell them apart."""

from __future__ import annotations

import json

from ragworth.errors import FormatError, Hint
from ragworth.formats.fields import SYSTEM_COLUMNS, FieldFinder, plain_name, quote_argument

REPEATS = "if these are repeats, number them in a column 'repeat'; if each counts by itself, give it an 'id'"

REPEAT_COLUMNS = ("trial", "attempt", "iteration", "seed", "sample", "run", "run_id")
"""Names of columns that may number the answers of a system to a question."""

PASSAGE_COLUMNS = ("rank", "position", "chunk_id", "chunk_index", "passage_id", "doc_id")
"""Names of columns of files with a row for each passage."""


def repeats_error(error: FormatError, finder: FieldFinder) -> FormatError:
    """The error for questions that occur twice, with advice on the column that may tell the rows apart."""
    kinds = {"system": ("names the systems", SYSTEM_COLUMNS), "repeat": ("numbers the repeats", REPEAT_COLUMNS)}
    for field_name, (does, names) in kinds.items():
        column = next((key for key in finder.seen if plain_name(key) in names), None)
        if column is None or field_name in finder.columns:
            continue
        return error.copy(
            remedy=Hint(
                f"if {column!r} {does}: --map {quote_argument(f'{field_name}={column}')}; {REPEATS}",
                f"if {column!r} {does}, write under [columns]: {field_name} = {json.dumps(column)}; {REPEATS}",
                f"if {column!r} {does}: columns={json.dumps({field_name: column})}; {REPEATS}",
                option="columns",
            )
        )
    column = next((key for key in finder.seen if plain_name(key) in PASSAGE_COLUMNS), None)
    if column is None:
        return error.copy(remedy=Hint(REPEATS, REPEATS, f"{REPEATS}; skip_bad_lines=True keeps the first"))
    advice = "write a row for each question with a list of passages"
    return error.copy(remedy=f"if {column!r} is of one passage in each row, {advice}")
