"""What commands compare without scoring it: outcomes of answers, scores, and folders of results."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from ragworth.core.errors import InputError, RagworthError

TABLE_ENDINGS = (".parquet", ".csv", ".tsv")


class ComparisonInputs(NamedTuple):
    """Runs that are to be scored, and what has values already, by name."""

    runs: tuple[str, ...]
    tables: dict[str, Any]


def split_comparables(specs: tuple[str, ...], skip_bad_lines: bool) -> ComparisonInputs:
    """Read folders of results and tables of outcomes or scores; leave runs to be scored."""
    from ragworth.workspace.files import named_run

    runs: list[str] = []
    tables: dict[str, Any] = {}
    for spec in specs:
        name, path = named_run(spec)
        found = read_comparable(path, skip_bad_lines)
        if found is None:
            runs.append(spec)
            continue
        name = name or _place(path)
        if name in tables:
            raise InputError(f"two inputs are called {name!r}", remedy="name them: NAME=PATH")
        tables[name] = found
    return ComparisonInputs(tuple(runs), tables)


def read_comparable(path: str, skip_bad_lines: bool) -> Any | None:
    """Results, outcomes or scores; None if the path is something else, such as a run."""
    from ragworth.results import MANIFEST, Results

    for folder in (Path(path), Path(path) / "results"):
        if (folder / MANIFEST).is_file():
            return Results.read(folder)
    return _read_table(path, skip_bad_lines) if Path(path).is_file() else None


def _read_table(path: str, skip_bad_lines: bool) -> Any | None:
    """Outcomes or scores from a table; None for tables with passages, and files of other formats."""
    from ragworth.data import Scores
    from ragworth.data.coercion import find_id_column
    from ragworth.formats import outcomes
    from ragworth.formats.tables import read_table

    if not path.removesuffix(".gz").removesuffix(".zst").lower().endswith(TABLE_ENDINGS):
        return None
    try:
        frame, _ = read_table(path, words=outcomes.GRADE_COLUMNS, skip_bad_lines=skip_bad_lines)
    except RagworthError:
        return None  # the reader of runs says what is wrong
    if find_id_column(frame, "passage") is not None or find_id_column(frame, "query") is None:
        return None
    if "metric" in frame.columns and "aspect" not in frame.columns:
        frame, notes = read_table(path, skip_bad_lines=skip_bad_lines)  # values are numbers, never words
        return Scores(frame, source=path, notes=notes)
    return outcomes.read(path, skip_bad_lines=skip_bad_lines)


def _place(path: str) -> str:
    """What a folder of results or a file is called: the last part of its path that says something."""
    from ragworth.formats.files import run_name

    parts = [part for part in Path(path).parts if part not in (".", "..", "/", "results")]
    return run_name(parts[-1]) if parts else path
