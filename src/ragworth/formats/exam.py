"""Read the EXAM++ workbench's file: judged passages with relevance, ratings of sub-questions, and ranks in runs.

Each line is ``[query, [passage, …]]``. A passage has ``paragraph_id``, ``text``, ``paragraph_data`` with
``judgments`` and ``rankings``, and ``exam_grades`` with ``self_ratings``. The file lists passages, not runs, so ranks
of unlisted passages are missing.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from ragworth.core.errors import BadLine, FormatError
from ragworth.data import Contexts, Judgments, Ratings
from ragworth.data.collection import Collection
from ragworth.data.ranking import Ties
from ragworth.formats.contract import FileSample, Format, LoadedCollection
from ragworth.formats.files import PathOrStr, bad_lines_error, skipped_note
from ragworth.formats.grades import RATING, off_scale
from ragworth.formats.values import WrongLineError, as_dict, as_id, as_list, as_number, as_rank, as_text, read_values

EXPECTED = '["query", [{"paragraph_id": …, "text": …, "paragraph_data": …, "exam_grades": …}, …]] on each line'


class _ExamTables:
    """The rows of the file, by table."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.relevance: list[tuple[str, str, float]] = []
        self.contexts: list[tuple[str, str, int, str, float | None]] = []
        self.ratings: list[tuple[str, str, str, float]] = []

    @classmethod
    def of(cls, value: Any) -> _ExamTables:
        """Parse one line."""
        pair = as_list(value, "the line")
        if len(pair) != 2:
            raise WrongLineError(f"a list of {len(pair)} instead of a query and its passages")
        rows = cls()
        query = as_id(pair[0], "query")
        for passage in as_list(pair[1], "the second element"):
            rows._add(query, as_dict(passage, "a passage"))
        return rows

    def _add(self, query: str, passage: dict[str, Any]) -> None:
        name = as_id(passage.get("paragraph_id"), "paragraph_id")
        self.texts.setdefault(name, as_text(passage.get("text") or "", "text"))
        data = as_dict(passage.get("paragraph_data") or {}, "paragraph_data")
        for judgment in as_list(data.get("judgments") or [], "judgments"):
            relevance = as_number(as_dict(judgment, "a judgment").get("relevance"), "relevance")
            self.relevance.append((query, name, relevance))
        for ranking in as_list(data.get("rankings") or [], "rankings"):
            row = as_dict(ranking, "a ranking")
            score = None if row.get("score") is None else as_number(row["score"], "score")
            self.contexts.append(
                (as_id(row.get("method"), "method"), query, as_rank(row.get("rank"), "rank"), name, score)
            )
        for grades in as_list(passage.get("exam_grades") or [], "exam_grades")[:1]:
            for rating in as_list(as_dict(grades, "a grade").get("self_ratings") or [], "self_ratings"):
                row = as_dict(rating, "a rating")
                value = as_number(row.get("self_rating"), "self_rating")
                if off_scale(value):
                    raise WrongLineError(f"the self_rating is {value:g}, not {RATING}")
                self.ratings.append((query, name, as_id(row.get("question_id"), "question_id"), value))

    def extend(self, other: _ExamTables) -> None:
        self.texts |= other.texts
        self.relevance += other.relevance
        self.contexts += other.contexts
        self.ratings += other.ratings


def load(path: PathOrStr, *, skip_bad_lines: bool = False) -> LoadedCollection:
    """Read passage texts, relevance, ratings and the runs' contexts, using each passage's first set of grades."""
    bad: list[BadLine] = []
    rows = _ExamTables()
    for number, value in read_values(path, bad, skip=skip_bad_lines, expected=EXPECTED):
        try:
            rows.extend(_ExamTables.of(value))
        except WrongLineError as error:
            bad.append(BadLine(number, str(error)))
            if not skip_bad_lines:
                raise bad_lines_error(path, bad, EXPECTED) from error
    if not rows.texts:
        raise FormatError("no rows: the file is empty", file=str(path), expected=EXPECTED)
    source, notes = str(path), skipped_note(path, bad)
    relevance = pl.DataFrame(rows.relevance, schema=["query", "passage", "value"], orient="row")
    ratings = pl.DataFrame(rows.ratings, schema=["query", "passage", "subquestion", "value"], orient="row")
    schema = {"system": pl.String, "query": pl.String, "rank": pl.Int64, "passage": pl.String, "score": pl.Float64}
    contexts = pl.DataFrame(rows.contexts, schema=schema, orient="row").sort("system", maintain_order=True)
    collection = Collection.of(
        passages={"passage": list(rows.texts), "text": list(rows.texts.values())},
        relevance=Judgments(relevance, source=source, notes=notes) if relevance.height else None,
        ratings=Ratings(ratings, source=source, notes=notes) if ratings.height else None,
        source=source,
        notes=notes,
    )
    return LoadedCollection(collection, Contexts(contexts, source=source, notes=notes) if contexts.height else None)


def _read_part(path: PathOrStr, what: str, skip_bad_lines: bool) -> Any:
    loaded = load(path, skip_bad_lines=skip_bad_lines)
    part = loaded.contexts if what == "runs" else getattr(loaded.collection, what)
    if part is None:
        raise FormatError(f"the file has no {what}", file=str(path), expected=EXPECTED)
    return part


def read_contexts(
    path: PathOrStr, *, system: str | None = None, ties: Ties = "float64", skip_bad_lines: bool = False
) -> Contexts:
    """Read the runs' contexts; their names and order are in the file."""
    contexts: Contexts = _read_part(path, "runs", skip_bad_lines)
    return contexts


def read_judgments(path: PathOrStr, *, skip_bad_lines: bool = False) -> Judgments:
    """Read the relevance of the judged passages."""
    judgments: Judgments = _read_part(path, "relevance", skip_bad_lines)
    return judgments


def read_ratings(path: PathOrStr, *, skip_bad_lines: bool = False) -> Ratings:
    """Read the ratings of sub-questions."""
    ratings: Ratings = _read_part(path, "ratings", skip_bad_lines)
    return ratings


def _recognise(sample: FileSample) -> bool:
    first = sample.document
    return isinstance(first, list) and len(first) == 2 and isinstance(first[0], str) and isinstance(first[1], list)


FORMAT = Format(
    name="exam",
    title="EXAM++ file: passages with relevance, ratings and ranks",
    contexts=read_contexts,
    judgments=read_judgments,
    ratings=read_ratings,
    load=load,
    recognise=_recognise,
)
