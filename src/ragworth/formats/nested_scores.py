"""Read runs and relevance labels from one JSON document.

The passages of a query are ``{passage: number}``, as pytrec_eval, ranx and BEIR write them, or a list of ids: in a run
in the order shown, in labels the relevant ones. Runs of several systems are ``{system: {query: passages}}``. A document
may also be a table of ours: a list of rows, or columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ragworth.core.errors import FormatError, format_list, quote_short
from ragworth.data import Contexts, Judgments
from ragworth.data.ranking import Ties
from ragworth.formats.contract import Contents, Format, Head
from ragworth.formats.files import PathOrStr, run_name
from ragworth.formats.grades import LABEL, check_scale
from ragworth.formats.heads import read_document
from ragworth.formats.kinds import is_named, row_kinds
from ragworth.formats.logs.rows import find_rows
from ragworth.formats.tables import kind_of_row, make_contexts, make_table, rows_of_objects

LARGEST = 2**1023
"""Whole numbers below this fit into a float."""

MOST_FRACTIONS = 10
"""Different fractions above which labels look like scores: those of a run are hardly ever equal."""

MOST_LABELS = 5
"""Different whole numbers up to which scores look like labels."""

EXPECTED = (
    '{"q1": {"d7": 14.25, …}, …}, {"q1": ["d7", …], …} or [{"query_id": "q1", "doc_id": "d7", "score": 14.25}, …]'
)

METRIC = re.compile(r"map|ndcg|bpref|recip_rank|Rprec|((ndcg|map)_cut|recall|success)_\d+")
"""Names of metrics that results of pytrec_eval have in place of passages."""

Runs = dict[str, dict[str, Any]]
"""The queries of each system; the system of ``{query: passages}`` has no name."""


def read_contexts(
    path: PathOrStr, *, system: str | None = None, ties: Ties = "float64", skip_bad_lines: bool = False
) -> Contexts:
    """Read a run, or those of several systems. A query without passages retrieved nothing."""
    document = _read(path)
    if isinstance(document, list):
        return make_contexts(rows_of_objects(enumerate(document, 1), path), path, system=system, ties=ties)
    runs = {name or system or run_name(path): queries for name, queries in document.items()}
    if empty_runs := [name for name, queries in runs.items() if not queries]:
        raise FormatError(f"system {quote_short(empty_runs[0], 24)} has no queries", file=str(path), expected=EXPECTED)
    if len(runs) > 1 and not set.intersection(*map(set, runs.values())):
        raise FormatError(
            f"{format_list([repr(name) for name in runs])} have no query in common",
            file=str(path),
            expected="runs of several systems for the same queries",
            remedy="if these are parts of one run, write them as one",
        )
    lists = [(name, query, _pairs(path, query, each)) for name, run in runs.items() for query, each in run.items()]
    rows: list[dict[str, Any]] = [
        {"system": name, "query": query, "passage": passage, **({"rank": rank} if score is None else {"score": score})}
        for name, query, pairs in lists
        for rank, (passage, score) in enumerate(pairs, 1)
    ]
    if len({"rank" in row for row in rows}) > 1:
        raise FormatError("some queries have scores, and some have none", file=str(path), expected=EXPECTED)
    empty = [(name, query) for name, query, pairs in lists if not pairs]
    contexts = Contexts(rows, ties=ties, source=str(path), empty=empty)
    if values := _few_whole(row.get("score") for row in rows):
        few = ", ".join(f"{value:g}" for value in values)
        contexts.notes = (*contexts.notes, f"{path}: the only scores are {few}; check that these aren't labels")
    return contexts


def _few_whole(values: Iterable[float | None]) -> list[float]:
    """Numbers, if they are few different whole ones, as labels are."""
    numbers = sorted({value for value in values if value is not None})
    return numbers if len(numbers) <= MOST_LABELS and all(value.is_integer() for value in numbers) else []


def _label_values(document: Any) -> list[float]:
    """The numbers of ``{query: passages}`` if they are few and whole, as labels are; nothing of several systems."""
    queries = (_runs(document) or {}).get("", {})
    return _few_whole(value for query, passages in queries.items() for _, value in _pairs("", query, passages))


def read_judgments(path: PathOrStr, *, skip_bad_lines: bool = False) -> Judgments:
    """Read relevance labels."""
    document = _read(path)
    if isinstance(document, list):
        return make_table(Judgments, rows_of_objects(enumerate(document, 1), path), path)
    if len(document) > 1:
        raise FormatError(
            f"there are several sets of labels: {format_list([repr(name) for name in document])}",
            file=str(path),
            expected=EXPECTED,
            remedy="write the one to use to a file of its own",
        )
    (queries,) = document.values()
    labels = [(query, *pair) for query, passages in queries.items() for pair in _pairs(path, query, passages)]
    rows = [
        {"query": query, "passage": name, "relevance": 1.0 if value is None else value} for query, name, value in labels
    ]
    if len({value is None for *_, value in labels}) > 1:
        raise FormatError("some passages have labels, and some have none", file=str(path), expected=EXPECTED)
    fractions = list(dict.fromkeys(value for *_, value in labels if value is not None and not value.is_integer()))
    notes: tuple[str, ...] = ()
    if len(fractions) > MOST_FRACTIONS:
        many = f"the labels are {len(fractions):,} different fractions, such as {fractions[0]}"
        notes = (f"{path}: {many}; check that this isn't a run",)
    judgments = Judgments(rows, source=str(path), notes=notes)
    check_scale(judgments.frame["value"], LABEL, path, lambda row: None)
    return judgments


def _read(path: PathOrStr) -> Runs | list[dict[str, Any]]:
    """Read the queries of each system, or the rows of a table."""
    documents = read_document(path, unique_keys=True)
    document = documents[0] if len(documents) == 1 else None
    contents = _table_rows(document) or _runs(document)
    if contents is None:
        raise FormatError(
            "it has no passages by query, and no rows with ids of both",
            file=str(path),
            expected=EXPECTED,
            remedy="write it in one of these forms, or as TREC or CSV",
        )
    return contents


def _table_rows(document: Any) -> list[dict[str, Any]] | None:
    """The rows of a table of ours; None if it isn't one."""
    rows = find_rows(document, known=False) or document
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        return None
    return rows if kind_of_row(rows[0]) is not None else None


def _runs(document: Any) -> Runs | None:
    """The queries of each system, by how the first begins; None if these are none."""
    if not isinstance(document, dict) or not any(document.values()):
        return None
    if _are_queries(document):
        return {"": document}
    nested = all(isinstance(queries, dict) for queries in document.values())
    return document if nested and _are_queries(next(filter(None, document.values()))) else None


def _are_queries(document: Mapping[str, Any]) -> bool:
    """Tell whether this begins as ``{query: passages}``."""
    if not all(isinstance(passages, dict | list) for passages in document.values()):
        return False
    first: Any = next(filter(None, document.values()), {})
    return all(map(_is_number, first.values())) if isinstance(first, dict) else _is_id(first[0])


def _pairs(path: PathOrStr, query: str, passages: Any) -> list[tuple[str, float | None]]:
    """The passages of a query with their numbers, or those of a list without; anything else is an error."""
    if isinstance(passages, dict):
        wrong = [value for value in passages.values() if not _is_number(value)]
    else:
        wrong = [each for each in passages if not _is_id(each)] if isinstance(passages, list) else [passages]
    if wrong:
        problem = f"query {quote_short(query, 24)} has {quote_short(wrong[0], 24)}"
        raise FormatError(problem, file=str(path), expected=EXPECTED)
    if isinstance(passages, list):
        return [(str(passage), None) for passage in passages]
    return [(passage, float(number)) for passage, number in passages.items()]


def _is_id(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool) and value != ""


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
    runs = _runs(head.document) or {}
    first = next((passages for queries in runs.values() for passages in queries.values() if passages), None)
    if not isinstance(first, dict) or any(map(METRIC.fullmatch, first)):
        return []
    if is_named(head, "qrels"):
        return [Contents("qrels")]
    labels = _label_values(head.document)
    values = format_list([f"{value:g}" for value in labels])
    doubt = f"its only numbers are {values}; taken as relevance labels" if labels else ""
    return [Contents("qrels" if labels else "run", doubt)]


FORMAT = Format(
    name="pytrec_eval",
    title="JSON of numbers by query and passage",
    endings=(".json",),
    contexts=read_contexts,
    judgments=read_judgments,
    inspect=_inspect,
    general=1,
)
