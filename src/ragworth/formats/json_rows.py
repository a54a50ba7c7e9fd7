"""Rows of our tables in JSON: on lines of their own, or in a list or the columns of one document."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from ragworth.errors import BadLine, FormatError
from ragworth.formats.columns import skipped_note
from ragworth.formats.fields import FIELDS
from ragworth.formats.files import PathOrStr, run_name
from ragworth.formats.rating_scale import check_labels, check_ratings
from ragworth.tables import Contexts, Judgments, Ratings, Table
from ragworth.tables.coercion import ID_ALIASES, to_frame
from ragworth.tables.contexts import MAYBE_SYSTEMS
from ragworth.tables.ranking import Ties

T = TypeVar("T", bound=Table)

IDS = {alias for names in ID_ALIASES.values() for alias in names}
RELEVANCE = {"value", *Judgments.wide["relevance"]}


def has_ids(keys: Collection[str]) -> bool:
    """Whether there are ids of queries and of passages."""
    return all(set(ID_ALIASES[name]) & set(keys) for name in ("query", "passage"))


def are_run_rows(keys: Collection[str]) -> bool:
    """Whether rows are passages with their scores or ranks, as of a run. Rows with answers are of a log."""
    logged = {"retrieved_context", "text", *FIELDS["answer"]} & set(keys)
    return has_ids(keys) and bool({"score", "rank"} & set(keys)) and not logged


def are_label_rows(keys: Collection[str]) -> bool:
    """Whether rows are passages with labels."""
    return has_ids(keys) and bool(RELEVANCE & set(keys))


def read_run_rows(
    rows: Iterable[Mapping[str, Any]], path: PathOrStr, *, system: str | None, ties: Ties, bad: Sequence[BadLine] = ()
) -> Contexts:
    """Read one passage with its score or rank from each row."""
    known = IDS | MAYBE_SYSTEMS | {"score", "rank"}
    found = [{name: value for name, value in row.items() if name in known} for row in rows]
    name = system or run_name(path)
    return Contexts(found, system=name, ties=ties, source=str(path), notes=skipped_note(path, bad))


def read_table_rows(
    table: type[T], numbered: Iterable[tuple[int, Mapping[str, Any]]], path: PathOrStr, bad: Sequence[BadLine] = ()
) -> T:
    """Read judgments or ratings from rows with their line numbers."""
    known = {*table.schema, *IDS, "rating"}
    if table is Judgments:
        known |= {"score", *(name for names in Judgments.wide.values() for name in names)}
    places: list[int] = []
    rows: list[dict[str, Any]] = []
    for place, row in numbered:
        places.append(place)
        rows.append({name: value for name, value in row.items() if name in known})
    if not rows:
        raise FormatError("no rows: the file is empty", file=str(path), expected=expected_row(table))
    every = dict.fromkeys(name for row in rows for name in row)
    if "status" in every and "rating" not in every:
        every.setdefault("value")  # a row without a value may omit it
    frame = to_frame({name: [row.get(name) for row in rows] for name in every}, source=str(path))
    found = table(frame, source=str(path), notes=skipped_note(path, bad))
    if isinstance(found, Judgments):
        check_labels(found, path, lambda row: places[row] if len(found) == len(places) else None)
    if table is Ratings:
        check_ratings(found.frame["value"], path, lambda row: places[row])
    return found


def expected_row(table: type[Table]) -> str:
    """What a row of a table looks like in JSON."""
    return "{" + ", ".join(f'"{name}": …' for name in table.key) + ', "value": …} on each line'
