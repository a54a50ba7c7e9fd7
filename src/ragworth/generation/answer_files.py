"""Answers that were written to a file, as `ragworth.answer` gives them."""

from __future__ import annotations

from ragworth.formats import answers
from ragworth.formats.files import Path_
from ragworth.generation.answering import Answered, shown_contexts


def read_answers(path: Path_, *, skip_bad_lines: bool = False) -> Answered:
    """Answers from Parquet, CSV, TSV or JSONL, with what was shown for each where the file says so.

    The file is one of ``ragworth answer``, or any with system, query and text. `ragworth.grade` takes what comes of it.
    """
    table, frame = answers.read(path, skip_bad_lines=skip_bad_lines)
    return Answered(table, frame, shown_contexts(frame), table.notes)
