"""What systems showed, with the texts, answers and grades that are in the same file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from ragworth import formats
from ragworth.core.errors import FormatError, TableError, format_count
from ragworth.data import Answers, Outcomes
from ragworth.data.collection import Collection
from ragworth.data.ranking import Ties
from ragworth.formats.contract import Format, LoadedCollection
from ragworth.formats.detection import detect, examine
from ragworth.formats.heads import has_keys, read_head, suffix_of
from ragworth.formats.logs.fields import JOIN
from ragworth.workspace.file_heads import JSON_SUFFIXES
from ragworth.workspace.names import named_run

DETECTABLE = (".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".eval")


def find_log_format(path: str | Path) -> Format | None:
    """The format of a log, which may be named before the path; None if the file is something else.

    A file of named columns that no format knows is an error that says how to map them.
    """
    prefix, colon, _ = str(path).partition(":")
    if colon and prefix in formats.FORMATS:
        form = formats.FORMATS.get(prefix)
    elif suffix_of(path) not in DETECTABLE or not Path(path).is_file():
        return None
    else:
        form = detect(path)
    return form if form.load_rows is not None or form.name == "jsonl" else None


def read_run(
    spec: str | Path,
    *,
    ties: Ties = "float64",
    columns: Mapping[str, str] | None = None,
    skip_bad_lines: bool = False,
) -> LoadedCollection:
    """Read a run or a log from ``[NAME=]PATH``. Without NAME, systems are named by the file, or after it."""
    name, path = named_run(str(spec))
    columns = applicable_columns(path, columns or {})
    if not columns and _log_format_or_none(path) is None:
        contexts = formats.read_contexts(path, system=name or None, ties=ties, skip_bad_lines=skip_bad_lines)
        loaded = LoadedCollection(Collection(), contexts)
    else:
        loaded = formats.load(path, columns or None, skip_bad_lines=skip_bad_lines)
        if loaded.contexts is None and loaded.answers is None and loaded.outcomes is None:
            expected = "a run, or a log of queries with contexts or answers"
            raise FormatError("it has texts only: nothing was retrieved or answered", file=path, expected=expected)
    return rename_system(loaded, name) if name else loaded


def applicable_columns(path: str | Path, columns: Mapping[str, str]) -> Mapping[str, str]:
    """The user's names of fields, if the file has any of these columns; a mapping may be for another file."""
    prefix, colon, rest = str(path).partition(":")
    file = Path(rest if colon and prefix in formats.FORMATS else path)
    if not columns or suffix_of(file) not in DETECTABLE or not file.is_file():
        return {}
    there = examine(read_head(file), columns).head.columns
    names = [part for name in columns.values() for part in name.split(JOIN)]
    if any(name in there or name.partition(".")[0] in there for name in names):
        return columns
    later = suffix_of(file) in JSON_SUFFIXES and has_keys(file, names)  # not every record has all keys
    return columns if later else {}


def _log_format_or_none(path: str) -> Format | None:
    try:
        return find_log_format(path)
    except FormatError:
        return None  # the reader of runs says what is wrong


def systems_of(loaded: LoadedCollection) -> list[str]:
    """The systems of a file: those with contexts, then those with answers or grades only."""
    names = list(loaded.contexts.systems) if loaded.contexts is not None else []
    for table in (loaded.answers, loaded.outcomes):
        names += table.distinct("system") if table is not None else []
    return list(dict.fromkeys(names))


def queries_of(loaded: LoadedCollection) -> list[str]:
    """The queries that systems of a file showed something for, or nothing, or answered."""
    tables = (loaded.contexts, loaded.answers, loaded.outcomes)
    queries = [query for table in tables if table is not None for query in table.distinct("query")]
    empty = loaded.contexts.empty if loaded.contexts is not None else ()
    return list(dict.fromkeys([*queries, *sorted(query for _, query in empty)]))


def rename_system(loaded: LoadedCollection, name: str) -> LoadedCollection:
    """The same with its only system called ``name``."""
    if len(systems_of(loaded)) > 1:
        raise TableError(
            f"{format_count(len(systems_of(loaded)), 'system')} cannot all be called {name!r}",
            expected="a file of one system",
            remedy="leave out the name; the file already names its systems",
        )
    contexts = loaded.contexts
    if contexts is not None and contexts.systems != [name]:
        contexts = contexts.renamed(name)
    named = pl.lit(name).alias("system")
    answers, outcomes = loaded.answers, loaded.outcomes
    return loaded._replace(
        contexts=contexts,
        answers=None if answers is None else Answers.trusted(answers.frame.with_columns(named), answers.notes),
        outcomes=None if outcomes is None else Outcomes.trusted(outcomes.frame.with_columns(named), outcomes.notes),
    )
