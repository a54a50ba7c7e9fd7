"""What Python functions accept for a table: the table itself, the path of a file, or data to make it from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from ragworth import formats
from ragworth.core.errors import TableError
from ragworth.data import Contexts, Judgments, Ratings, Table
from ragworth.data.coercion import package_of
from ragworth.workspace.files import named_run, read_run

T = TypeVar("T", bound=Table)


FORMS: dict[type[Table], str] = {
    Contexts: "the path of a run, Contexts, a data frame with query, passage and score or rank, or "
    "{query: {passage: score}}, also for each system",
    Judgments: "the path of qrels, Judgments, a data frame with query, passage and value, or "
    "{query: {passage: relevance}}",
    Ratings: "the path of a file, Ratings, or a data frame with query, passage, subquestion and value",
}
"""What may be given for a table, in words."""


def to_contexts(data: Any) -> Contexts:
    """Contexts from a table, from a path or several, or from data."""
    if isinstance(data, list | tuple) and data and all(isinstance(each, str | Path | Contexts) for each in data):
        return Contexts.concat([to_contexts(each) for each in data])
    if _is_of_systems(data):
        return Contexts.concat([Contexts(queries, system=str(system)) for system, queries in data.items()])
    return _to_table(Contexts, "contexts", data, _read_contexts)


def _is_of_systems(data: Any) -> bool:
    """Whether data is ``{system: {query: {passage: score}}}``."""
    if not isinstance(data, Mapping) or not all(isinstance(each, Mapping) for each in data.values()):
        return False
    passages = [each for queries in data.values() for each in queries.values()]
    return bool(passages) and all(isinstance(each, Mapping) for each in passages)


def to_judgments(data: Any) -> Judgments | None:
    """Judgments from a table, from a path or several, or from data; None stays None."""
    if isinstance(data, list | tuple) and data and all(isinstance(each, str | Path | Judgments) for each in data):
        return Judgments.concat([table for each in data if (table := to_judgments(each)) is not None])
    return None if data is None else _to_table(Judgments, "judgments", data, formats.read_judgments)


def to_ratings(data: Any) -> Ratings | None:
    """Ratings from a table, from a path, or from data; None stays None."""
    return None if data is None else _to_table(Ratings, "ratings", data, formats.read_ratings)


def _read_contexts(path: str | Path) -> Contexts:
    name, place = named_run(str(path))
    found = read_run(place, name=name).contexts
    if found is None:
        raise TableError("it says nothing about what was retrieved", file=str(path), expected="a run, or a log")
    return found


def _to_table(kind: type[T], name: str, data: Any, read: Callable[[str | Path], T]) -> T:
    if isinstance(data, kind):
        return data
    if isinstance(data, str | Path):
        return read(data)
    tabular = isinstance(data, Mapping | Sequence | pl.DataFrame | pl.LazyFrame) and not isinstance(data, bytes)
    foreign = package_of(data) in ("pandas", "datasets") or hasattr(data, "__arrow_c_stream__")
    named_tuple = isinstance(data, tuple) and hasattr(data, "_fields")
    if isinstance(data, Table) or named_tuple or not (tabular or foreign):
        own = getattr(data, name, None)
        remedy = f"ragworth.read_{name}(PATH) reads one from a file, ragworth.{kind.__name__}(data) makes one"
        raise TableError(
            f"{name} has the type {type(data).__name__}",
            expected=FORMS[kind],
            remedy=f"give .{name} of it" if isinstance(own, kind) else remedy,
        )
    return kind(data)
