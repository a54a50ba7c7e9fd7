"""What systems showed, with the texts, answers and grades that are in the same file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from ragworth import formats
from ragworth.collection import Collection
from ragworth.errors import FormatError, TableError, format_count
from ragworth.formats.contract import LoadedCollection
from ragworth.inputs.names import named_run
from ragworth.tables import Answers, Outcomes
from ragworth.tables.ranking import Ties

PLAIN_RUNS = ("trec", "table", "ir_datasets", "beir")
"""Formats whose runs bring no texts and no answers."""


def read_run(
    spec: str | Path,
    *,
    ties: Ties = "float64",
    columns: Mapping[str, str] | None = None,
    skip_bad_lines: bool = False,
) -> LoadedCollection:
    """Read a run or a log from ``[NAME=]PATH``. Without NAME, systems are named by the file, or after it."""
    name, path = named_run(str(spec))
    chosen, _ = formats.resolve(path, "contexts")
    if chosen.name in PLAIN_RUNS and not columns:
        contexts = formats.read_contexts(path, system=name or None, ties=ties, skip_bad_lines=skip_bad_lines)
        loaded = LoadedCollection(Collection(), contexts)
    else:
        loaded = formats.load(path, skip_bad_lines=skip_bad_lines)
        if loaded.contexts is None and loaded.answers is None and loaded.outcomes is None:
            expected = "a run, or a log of queries with contexts or answers"
            raise FormatError("it has texts only: nothing was retrieved or answered", file=path, expected=expected)
    return rename_system(loaded, name) if name else loaded


def systems_of(loaded: LoadedCollection) -> list[str]:
    """The systems of a file: those with contexts, then those with answers or grades only."""
    names = list(loaded.contexts.systems) if loaded.contexts is not None else []
    for table in (loaded.answers, loaded.outcomes):
        names += table.distinct("system") if table is not None else []
    return list(dict.fromkeys(names))


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
