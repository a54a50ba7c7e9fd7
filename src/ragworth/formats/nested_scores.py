"""Read runs and relevance labels from one JSON document.

The passages of a query are ``{passage: number}``, as pytrec_eval, ranx and BEIR write them, or a list of ids, of
``[id, number]`` or of ``{"doc_id": …, "score": …}``. In a run, a list is in the order shown; in labels, the passages of
a list without numbers are relevant. Runs of several systems are ``{system: {query: passages}}``. A document may also
be a table of ours: a list of rows, or columns.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, NamedTuple

from ragworth.core.errors import FormatError, format_list, quote_short
from ragworth.data import Contexts, Judgments
from ragworth.data.coercion import ID_ALIASES
from ragworth.data.ranking import Ties
from ragworth.formats.contract import Format, Head
from ragworth.formats.files import PathOrStr, run_name
from ragworth.formats.grades import check_labels
from ragworth.formats.heads import read_document
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
    runs = {system or run_name(path): document} if _are_queries(document) else document
    if bare := [name for name, queries in runs.items() if not queries]:
        raise FormatError(f"system {quote_short(bare[0], 24)} has no queries", file=str(path), expected=EXPECTED)
    if len(runs) > 1 and not set.intersection(*map(set, runs.values())):
        names = format_list([repr(name) for name in runs])
        raise FormatError(
            f"{names} have no query in common",
            file=str(path),
            expected="runs of several systems for the same queries",
            remedy="if these are parts of one run, write them as one",
        )
    every = [passages for queries in runs.values() for passages in queries.values() if passages]
    ranked = all(isinstance(passages, list) for passages in every)
    entries: list[dict[str, Any]] = [
        {"system": name, "query": query, "passage": passage, "score": score, **({"rank": rank} if ranked else {})}
        for name, queries in runs.items()
        for query, passages in queries.items()
        for rank, (passage, score) in enumerate(_entries(path, query, passages), 1)
    ]
    if any(row["score"] is None for row in entries) and not ranked:
        raise FormatError("some queries have scores, and some have none", file=str(path), expected=EXPECTED)
    empty = [(name, query) for name, queries in runs.items() for query, passages in queries.items() if not passages]
    contexts = Contexts(entries, ties=ties, source=str(path), empty=empty)
    contexts.notes = (*contexts.notes, *_like_labels(path, {row["score"] for row in entries}))
    return contexts


def _like_labels(path: PathOrStr, scores: set[float | None]) -> tuple[str, ...]:
    values = sorted(score for score in scores if score is not None)
    if not values or not _are_few_whole(values):
        return ()
    return (f"{path}: the only scores are {', '.join(f'{v:g}' for v in values)}; check that these aren't labels",)


def _are_few_whole(values: Collection[float]) -> bool:
    """Whether numbers are few different whole ones, as labels are."""
    return len(values) <= MOST_LABELS and all(value.is_integer() for value in values)


def label_values(document: dict[str, Any]) -> list[float]:
    """The numbers of ``{query: passages}`` if they are few and whole, as labels are; nothing of several systems."""
    queries = document if _are_queries(document) else next(iter(document.values()))
    found = [_entries("", query, passages) for query, passages in queries.items()]
    values = {value for entries in found for _, value in entries if value is not None}
    return sorted(values) if (queries is document or len(document) == 1) and _are_few_whole(values) else []


def read_judgments(path: PathOrStr, *, skip_bad_lines: bool = False) -> Judgments:
    """Read relevance labels."""
    document = _read(path)
    if isinstance(document, list):
        return make_table(Judgments, rows_of_objects(enumerate(document, 1), Judgments, path), path)
    notes: tuple[str, ...] = ()
    document = document if _are_queries(document) else _only_set(path, document)
    rows = [(query, *entry) for query, passages in document.items() for entry in _entries(path, query, passages)]
    bare = [value is None for *_, value in rows]
    if any(bare) and not all(bare):
        raise FormatError("some passages have labels, and some have none", file=str(path), expected=EXPECTED)
    if all(bare):
        rows = [(query, passage, 1.0) for query, passage, _ in rows]
    fractions = list(dict.fromkeys(value for *_, value in rows if value is not None and not value.is_integer()))
    if len(fractions) > MOST_FRACTIONS:
        found = f"the labels are {len(fractions):,} different fractions, such as {fractions[0]}"
        notes = (f"{path}: {found}; check that this isn't a run",)
    names = ("query", "passage", "relevance")
    judgments = Judgments([dict(zip(names, row, strict=True)) for row in rows], source=str(path), notes=notes)
    return check_labels(judgments, path, lambda row: None)


def _only_set(path: PathOrStr, document: dict[str, Any]) -> dict[str, Any]:
    """The labels in ``{name: {query: passages}}``; those of several names are an error."""
    if len(document) > 1:
        raise FormatError(
            f"there are several sets of labels: {format_list([repr(name) for name in document])}",
            file=str(path),
            expected=EXPECTED,
            remedy="write the one to use to a file of its own",
        )
    return dict(next(iter(document.values())))


def _read(path: PathOrStr) -> dict[str, Any] | list[dict[str, Any]]:
    """Read ``{query: passages}``, perhaps for each system, or the rows of a table."""
    documents = read_document(path, unique_keys=True)
    document = documents[0] if len(documents) == 1 else None
    if (rows := table_rows(document)) is not None:
        return rows
    if not isinstance(document, dict) or not any(document.values()) or not _is_nested(document):
        raise FormatError(
            "it has no passages by query, and no rows with ids of both",
            file=str(path),
            expected=EXPECTED,
            remedy="write it in one of these forms, or as TREC or CSV",
        )
    return document


def table_rows(document: Any) -> list[dict[str, Any]] | None:
    """The rows of a table of ours; None if it isn't one."""
    rows = find_rows(document, known=False) or document
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        return None
    return rows if are_run_rows(rows[0]) or are_label_rows(rows[0]) else None


def _entries(path: PathOrStr, query: str, passages: Any) -> list[Entry]:
    """The passages of a query; anything else is an error."""
    items = [[*pair] for pair in passages.items()] if isinstance(passages, dict) else passages
    entries = [(_entry(item), item) for item in items] if isinstance(items, list) else [(None, passages)]
    wrong = [item[1] if isinstance(passages, dict) else item for entry, item in entries if entry is None]
    if wrong:
        found = f"query {quote_short(query, 24)} has {quote_short(wrong[0], 24)}"
        raise FormatError(found, file=str(path), expected=EXPECTED)
    return [entry for entry, _ in entries if entry is not None]


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


def _are_queries(document: Any) -> bool:
    """Whether this begins as ``{query: passages}``."""
    if not isinstance(document, dict) or not all(isinstance(each, dict | list) for each in document.values()):
        return False
    first = next((each for each in document.values() if each), None)
    if isinstance(first, dict):
        return all(map(_is_number, first.values()))
    return first is not None and _entry(first[0]) is not None


def _is_nested(document: Any) -> bool:
    """Whether this begins as ``{query: passages}``, perhaps for each system."""
    if _are_queries(document):
        return True
    if not isinstance(document, dict) or not all(isinstance(each, dict) for each in document.values()):
        return False
    return _are_queries(next((each for each in document.values() if each), None))


def _recognise(sample: Head) -> bool:
    """Lists of texts may be anything, so they are only read where a file is named as a run or as labels."""
    return sample.kind == "json" and (table_rows(sample.document) is not None or _has_numbers(sample.document))


def _has_numbers(document: Any) -> bool:
    """Whether this is ``{query: passages}``, perhaps for each system, with numbers for the first ones: no metrics."""
    if not _is_nested(document):
        return False
    first = next(each for each in document.values() if each)
    if isinstance(first, dict) and not all(map(_is_number, first.values())):
        first = next(each for each in first.values() if each)
    if isinstance(first, dict):
        metrics = any(map(METRIC.fullmatch, first))
        return not metrics or not all(METRIC.fullmatch(name) or CUT_METRIC.fullmatch(name) for name in first)
    return getattr(_entry(first[0]), "value", None) is not None


FORMAT = Format(
    name="pytrec_eval",
    title="JSON of numbers by query and passage",
    contexts=read_contexts,
    judgments=read_judgments,
    recognise=_recognise,
    general=1,
)
