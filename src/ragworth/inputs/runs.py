"""What systems showed, with the texts, answers and grades that are in the same file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from ragworth import formats
from ragworth.collection import Collection
from ragworth.errors import FormatError
from ragworth.formats.contract import LoadedCollection
from ragworth.results import MANIFEST
from ragworth.tables import Answers, Contexts, Outcomes
from ragworth.tables.ranking import Ties

PLAIN_RUNS = ("trec", "table", "ir_datasets", "beir")
"""Formats whose runs bring no texts and no answers."""


def split_name(spec: str) -> tuple[str, str]:
    """Split ``NAME=PATH``; the name of a plain path is empty. A file whose name contains ``=`` is a path."""
    name, equals, path = spec.partition("=")
    named = bool(equals and name and "/" not in name and not Path(spec).exists())
    return (name, path) if named else ("", spec)


def read_run(
    spec: str | Path,
    *,
    ties: Ties = "float64",
    columns: Mapping[str, str] | None = None,
    skip_bad_lines: bool = False,
) -> LoadedCollection:
    """Read a run or a log from ``[NAME=]PATH``. Without NAME, systems are named by the file, or after it."""
    name, path = split_name(str(spec))
    chosen, _ = formats.resolve(path, "contexts")
    if chosen.name in PLAIN_RUNS and not columns:
        contexts = formats.read_contexts(path, system=name or None, ties=ties, skip_bad_lines=skip_bad_lines)
        loaded = LoadedCollection(Collection(), _with_empty_contexts(contexts, Path(path)))
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


def _with_empty_contexts(contexts: Contexts, path: Path) -> Contexts:
    """Add the contexts without passages of a results folder: its table has no rows for them, its manifest does."""
    if path.name != "contexts.parquet" or contexts.empty:
        return contexts
    try:
        manifest: Any = json.loads((path.parent / MANIFEST).read_text(encoding="utf-8"))
        pairs = [(str(system), str(query)) for system, query in manifest["results"]["empty"]]
    except (OSError, ValueError, TypeError, KeyError):
        return contexts  # a table of that name that is no part of results
    contexts.empty = frozenset(pairs)
    return contexts
