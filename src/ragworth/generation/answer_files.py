"""Read answers from a file, in the form that `ragworth.answer` returns."""

from __future__ import annotations

from ragworth.formats import answers
from ragworth.formats.files import PathOrStr
from ragworth.generation.writer import AnsweringResult, shown_contexts


def read_answers(path: PathOrStr, *, skip_bad_lines: bool = False) -> AnsweringResult:
    """Read answers from Parquet, CSV, TSV or JSONL, with the passages shown if the file lists them.

    The file is one of ``ragworth answer``, or any with system, query and text. `ragworth.grade` takes what comes of it.
    """
    table, frame = answers.read(path, skip_bad_lines=skip_bad_lines)
    return AnsweringResult(table, frame, shown_contexts(frame), table.notes)
