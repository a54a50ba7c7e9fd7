"""Read runs and relevance labels from one JSON document.

The passages of a query are ``{passage: number}``, as pytrec_eval, ranx and BEIR write them, or a list of ids, of
``[id, number]`` or of ``{"doc_id": …, "score": …}``. In a run, a list is in the order shown; in labels, the passages of
a list without numbers are relevant. Runs of several systems are ``{system: {query: passages}}``. A document may also
be a table of ours: a list of rows, or columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from ragworth.core.errors import FormatError, format_list, quote_short
from ragworth.data import Contexts, Judgments
from ragworth.data.coercion import ID_ALIASES
from ragworth.data.ranking import Ties
from ragworth.formats.contract import Contents, Format, Head
from ragworth.formats.files import PathOrStr, run_name
from ragworth.formats.grades import LABEL, check_scale
from ragworth.formats.heads import read_document
from ragworth.formats.kinds import is_named, row_kinds
from ragworth.formats.logs.rows import find_rows
from ragworth.formats.tables import (
    RELEVANCE,
    are_label_rows,
    are_run_rows,
    make_contexts,
    make_table,
    rows_of_objects,
)

LARGEST = 2**1023
"""Whole numbers below this fit into a float."""

MOST_FRACTIONS = 10
"""Different fractions above which labels look like scores: those of a run are hardly ever equal."""

MOST_LABELS = 5
"""Different whole numbers up to which scores look like labels."""

EXPECTED = (
    '{"q1": {"d7": 14.25, …}, …}, {"q1": ["d7", …], …} or [{"query_id": "q1", "doc_id": "d7", "score": 14.25}, …]'
)

METRIC = re.compile(
    r"(?:ndcg|map|mrr|recall|precision|recip_rank|success|hit_?rate|bpref|f1)(?:[@_].*)?", re.IGNORECASE
)
CUT_METRIC = re.compile(r"(?:p|r|rr|ap|hits?|num|set|iprec|gm)[@_].*", re.IGNORECASE)
"""Names of metrics, which results of pytrec_eval have in place of passages."""

ID_KEYS = (*ID_ALIASES["passage"], "id", "_id")
VALUE_KEYS = ("score", *RELEVANCE)


class Entry(NamedTuple):
    """A passage of a query, with its score or label if it has one."""

    passage: str
    value: float | None


def read_contexts(
    path: PathOrStr, *, system: str | None = None, ties: Ties = "float64", skip_bad_lines: bool = False
) -> Contexts:
    """Read a run, or those of several systems. A query without passages retrieved nothing."""
    document = _read(path)
    if isinstance(document, list):
        rows = rows_of_objects(enumerate(document, 1), Contexts, path)
        return make_contexts(rows, path, system=system, ties=ties)
    runs = {name or system or run_name(path): queries for name, queries in document.items()}
    if bare := [name for name, queries in runs.items() if not queries]:
        raise FormatError(f"system {quote_short(bare[0], 24)} has no queries", file=str(path), expected=EXPECTED)
    if len(runs) > 1 and not set.intersection(*map(set, runs.values())):
        raise FormatError(
            f"{format_list([repr(name) for name in runs])} have no query in common",
            file=str(path),
            expected="runs of several systems for the same queries",
            remedy="if these are parts of one run, write them as one",
        )
    shown = [(name, query, _entries(path, query, each)) for name, run in runs.items() for query, each in run.items()]
    ranked = not any(isinstance(each, dict) and each for run in runs.values() for each in run.values())
    entries: list[dict[str, Any]] = [
        {"system": name, "query": query, "passage": passage, "score": score, **({"rank": rank} if ranked else {})}
        for name, query, passages in shown
        for rank, (passage, score) in enumerate(passages, 1)
    ]
    scores = {row["score"] for row in entries}
    if None in scores and not ranked:
        raise FormatError("some queries have scores, and some have none", file=str(path), expected=EXPECTED)
    empty = [(name, query) for name, query, passages in shown if not passages]
    contexts = Contexts(entries, ties=ties, source=str(path), empty=empty)
    if values := _few_whole(scores):
        few = ", ".join(f"{value:g}" for value in values)
        contexts.notes = (*contexts.notes, f"{path}: the only scores are {few}; check that these aren't labels")
    return contexts


def _few_whole(values: Iterable[float | None]) -> list[float]:
    """Numbers, if they are few different whole ones, as labels are."""
    numbers = sorted({value for value in values if value is not None})
    return numbers if len(numbers) <= MOST_LABELS and all(value.is_integer() for value in numbers) else []


def _label_values(document: Any) -> list[float]:
    """The numbers of ``{query: passages}`` if they are few and whole, as labels are; nothing of several systems."""
    runs = _runs(document) or {}
    queries = next(iter(runs.values())) if len(runs) == 1 else {}
    return _few_whole(value for query, passages in queries.items() for _, value in _entries("", query, passages))


def read_judgments(path: PathOrStr, *, skip_bad_lines: bool = False) -> Judgments:
    """Read relevance labels."""
    document = _read(path)
    if isinstance(document, list):
        return make_table(Judgments, rows_of_objects(enumerate(document, 1), Judgments, path), path)
    if len(document) > 1:
        raise FormatError(
            f"there are several sets of labels: {format_list([repr(name) for name in document])}",
            file=str(path),
            expected=EXPECTED,
            remedy="write the one to use to a file of its own",
        )
    (queries,) = document.values()
    rows = [(query, *entry) for query, passages in queries.items() for entry in _entries(path, query, passages)]
    bare = [value is None for *_, value in rows]
    if any(bare) and not all(bare):
        raise FormatError("some passages have labels, and some have none", file=str(path), expected=EXPECTED)
    labels = [
        {"query": query, "passage": name, "relevance": 1.0 if all(bare) else value} for query, name, value in rows
    ]
    fractions = list(dict.fromkeys(value for *_, value in rows if value is not None and not value.is_integer()))
    notes: tuple[str, ...] = ()
    if len(fractions) > MOST_FRACTIONS:
        many = f"the labels are {len(fractions):,} different fractions, such as {fractions[0]}"
        notes = (f"{path}: {many}; check that this isn't a run",)
    judgments = Judgments(labels, source=str(path), notes=notes)
    check_scale(judgments.frame["value"], LABEL, path, lambda row: None)
    return judgments


def _read(path: PathOrStr) -> dict[str, dict[str, Any]] | list[dict[str, Any]]:
    """Read the queries of each system, as :func:`_runs` returns them, or the rows of a table."""
    documents = read_document(path, unique_keys=True)
    document = documents[0] if len(documents) == 1 else None
    if (rows := _table_rows(document)) is not None:
        return rows
    if (runs := _runs(document)) is None:
        raise FormatError(
            "it has no passages by query, and no rows with ids of both",
            file=str(path),
            expected=EXPECTED,
            remedy="write it in one of these forms, or as TREC or CSV",
        )
    return runs


def _table_rows(document: Any) -> list[dict[str, Any]] | None:
    """The rows of a table of ours; None if it isn't one."""
    rows = find_rows(document, known=False) or document
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        return None
    return rows if are_run_rows(rows[0]) or are_label_rows(rows[0]) else None


def _runs(document: Any) -> dict[str, dict[str, Any]] | None:
    """The queries of each system, by how the first begins; the system of ``{query: passages}`` has no name."""
    if not isinstance(document, dict) or not any(document.values()):
        return None
    if _are_queries(document):
        return {"": document}
    nested = all(isinstance(queries, dict) for queries in document.values())
    return document if nested and _are_queries(next(filter(None, document.values()))) else None


def _are_queries(document: dict[str, Any]) -> bool:
    """Whether this begins as ``{query: passages}``."""
    first = next((passages for passages in document.values() if passages), None)
    if not all(isinstance(passages, dict | list) for passages in document.values()):
        return False
    if isinstance(first, dict):
        return all(map(_is_number, first.values()))
    return first is not None and _entry(first[0]) is not None


def _entries(path: PathOrStr, query: str, passages: Any) -> list[Entry]:
    """The passages of a query; anything else is an error."""
    items = [[*pair] for pair in passages.items()] if isinstance(passages, dict) else passages
    pairs = [(_entry(item), item) for item in items] if isinstance(items, list) else [(None, passages)]
    if wrong := [item for entry, item in pairs if entry is None]:
        shown = quote_short(wrong[0][1] if isinstance(passages, dict) else wrong[0], 24)
        raise FormatError(f"query {quote_short(query, 24)} has {shown}", file=str(path), expected=EXPECTED)
    return [entry for entry, _ in pairs if entry is not None]


def _entry(item: Any) -> Entry | None:
    """A passage in a list: its id, ``[id, number]`` or an object with an id; None for anything else."""
    if isinstance(item, dict):
        if set(ID_ALIASES["query"]) & set(item):
            return None  # a row of a table
        key = next((name for name in ID_KEYS if name in item), None)
        value = next((item[name] for name in VALUE_KEYS if name in item), None)
        item = [item[key], value] if value is not None and key else item.get(key)
    passage, value = item if isinstance(item, list) and len(item) == 2 else (item, None)
    if isinstance(passage, bool) or not isinstance(passage, str | int) or passage == "":
        return None
    if isinstance(item, list) and not _is_number(value):
        return None
    return Entry(str(passage), None if value is None else float(value))


def _is_number(value: Any) -> bool:
    if isinstance(value, int):  # true and false are labels too
        return abs(value) < LARGEST
    return isinstance(value, float)


def _inspect(head: Head) -> list[Contents]:
    """A run or labels. Lists of texts may be anything, so they are only read where a file is named as one of these."""
    if head.kind != "json":
        return []
    if (rows := _table_rows(head.document)) is not None:
        return row_kinds(head.of_rows(rows))
    if not _has_numbers(head.document):
        return []
    labels = _label_values(head.document)
    if is_named(head, "qrels"):
        return [Contents("qrels")]
    values = format_list([f"{value:g}" for value in labels])
    doubt = f"its only numbers are {values}; taken as relevance labels" if labels else ""
    return [Contents("qrels" if labels else "run", doubt)]


def _has_numbers(document: Any) -> bool:
    """Whether the first passages of a run have numbers, and aren't names of metrics."""
    runs = _runs(document)
    if runs is None:
        return False
    first = next(passages for queries in runs.values() for passages in queries.values() if passages)
    if isinstance(first, dict):
        metrics = any(map(METRIC.fullmatch, first))
        return not metrics or not all(METRIC.fullmatch(name) or CUT_METRIC.fullmatch(name) for name in first)
    return getattr(_entry(first[0]), "value", None) is not None


FORMAT = Format(
    name="pytrec_eval",
    title="JSON of numbers by query and passage",
    endings=(".json",),
    contexts=read_contexts,
    judgments=read_judgments,
    inspect=_inspect,
    general=1,
)
