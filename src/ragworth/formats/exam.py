"""The EXAM++ workbench's file: judged passages with relevance, ratings of sub-questions, and ranks in runs.

Each line is ``[query, [passage, …]]``; a passage has ``paragraph_id``, ``text``, ``paragraph_data`` with
``judgments`` and ``rankings``, and ``exam_grades`` with ``self_ratings``. The file lists passages, not runs,
so ranks at which a run had an unlisted passage are missing.
"""

from __future__ import annotations

import json
from typing import Any

import polars as pl

from ragworth.collection import Collection
from ragworth.errors import BadLine, FormatError, quoted
from ragworth.formats.columns import bad_lines_error, skipped_note
from ragworth.formats.contract import Format, Loaded
from ragworth.formats.files import Path_, lines
from ragworth.ordering import Ties
from ragworth.tables import Contexts, Judgments, Ratings

EXPECTED = '["query", [{"paragraph_id": …, "text": …, "paragraph_data": …, "exam_grades": …}, …]] on each line'


class _Rows:
    """What the lines hold, table by table."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.relevance: list[tuple[str, str, float]] = []
        self.contexts: list[tuple[str, str, int, str, float | None]] = []
        self.ratings: list[tuple[str, str, str, float]] = []

    def add(self, query: str, passage: dict[str, Any]) -> None:
        name = str(passage["paragraph_id"])
        self.texts.setdefault(name, str(passage.get("text") or ""))
        data = passage.get("paragraph_data") or {}
        for judgment in data.get("judgments") or []:
            self.relevance.append((query, name, float(judgment["relevance"])))
        for ranking in data.get("rankings") or []:
            score = ranking.get("score")
            self.contexts.append(
                (str(ranking["method"]), query, int(ranking["rank"]), name, None if score is None else float(score))
            )
        grades = (passage.get("exam_grades") or [{}])[0]
        for rating in grades.get("self_ratings") or []:
            self.ratings.append((query, name, str(rating["question_id"]), float(rating["self_rating"])))


def load(path: Path_, *, skip_bad_lines: bool = False) -> Loaded:
    """Passage texts, relevance, ratings and the runs' contexts. The first set of grades of a passage counts."""
    bad: list[BadLine] = []
    rows = _Rows()
    for number, line in lines(path):
        if not line.strip():
            continue
        try:
            query, passages = json.loads(line)
            part = _Rows()
            for passage in passages:
                part.add(str(query), passage)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            bad.append(BadLine(number, f"{type(error).__name__} at {quoted(error, 40)}"))
            if not skip_bad_lines:
                raise bad_lines_error(path, bad, EXPECTED) from error
            continue
        rows.texts |= part.texts
        rows.relevance += part.relevance
        rows.contexts += part.contexts
        rows.ratings += part.ratings
    if not rows.texts:
        raise FormatError("no rows: the file is empty", file=str(path), expected=EXPECTED)
    source, notes = str(path), skipped_note(path, bad)
    relevance = pl.DataFrame(rows.relevance, schema=["query", "passage", "value"], orient="row")
    ratings = pl.DataFrame(rows.ratings, schema=["query", "passage", "subquestion", "value"], orient="row")
    contexts = pl.DataFrame(
        rows.contexts,
        schema={"system": pl.String, "query": pl.String, "rank": pl.Int64, "passage": pl.String, "score": pl.Float64},
        orient="row",
    )
    collection = Collection.of(
        passages={"passage": list(rows.texts), "text": list(rows.texts.values())},
        relevance=Judgments(relevance, source=source) if relevance.height else None,
        ratings=Ratings(ratings, source=source) if ratings.height else None,
        source=source,
        notes=notes,
    )
    return Loaded(
        collection, Contexts(contexts.sort("system", maintain_order=True), source=source) if contexts.height else None
    )


def _part(path: Path_, what: str, skip_bad_lines: bool) -> Any:
    loaded = load(path, skip_bad_lines=skip_bad_lines)
    part = loaded.contexts if what == "runs" else getattr(loaded.collection, what)
    if part is None:
        raise FormatError(f"the file has no {what}", file=str(path), expected=EXPECTED)
    return part


def read_contexts(
    path: Path_, *, system: str | None = None, ties: Ties = "float64", skip_bad_lines: bool = False
) -> Contexts:
    """The runs' contexts; their names and order are in the file."""
    contexts: Contexts = _part(path, "runs", skip_bad_lines)
    return contexts


def read_judgments(path: Path_, *, skip_bad_lines: bool = False) -> Judgments:
    """Relevance of the judged passages."""
    judgments: Judgments = _part(path, "relevance", skip_bad_lines)
    return judgments


def read_ratings(path: Path_, *, skip_bad_lines: bool = False) -> Ratings:
    """Ratings of the sub-questions."""
    ratings: Ratings = _part(path, "ratings", skip_bad_lines)
    return ratings


FORMAT = Format(
    name="exam",
    title="EXAM++ file: passages with relevance, ratings and ranks",
    contexts=read_contexts,
    judgments=read_judgments,
    ratings=read_ratings,
    load=load,
)
