"""Read logs with a row for each passage: the question and the answer recur beside one passage after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ragworth.errors import format_count
from ragworth.formats.contract import FileSample
from ragworth.formats.fields import FIELDS, GRADE_FIELDS, FieldFinder, plain_name
from ragworth.formats.log_files import LogRows
from ragworth.formats.log_format import LogFormat, Reject, parse_rows
from ragworth.formats.log_record import LogRecord
from ragworth.formats.log_repeats import tells_apart
from ragworth.formats.log_values import as_grade, as_row

Row = Mapping[str, Any]

PARTS: dict[str, tuple[str, ...]] = {
    "text": (
        *("chunk_text", "passage_text", "doc_text", "document_text", "context_text", "retrieved_text", "chunk_content"),
        *("retrieved_chunk", "chunk", "passage", "snippet", "context", "document", "doc", "content", "text"),
    ),
    "doc_id": ("chunk_id", "passage_id", "doc_id", "document_id", "docid", "docno"),
    "score": ("score", "similarity", "retrieval_score", "similarity_score", "relevance_score"),
    "distance": ("distance",),
    "relevance": ("relevance", "is_relevant", "relevant"),
    "rank": ("rank", "position", "passage_rank", "chunk_rank", "doc_rank"),
}
"""The parts of a passage, and what files call them."""

OF_RECORD = ("query", "question", "system", "repeat", "answer")
"""Fields that rows of one record have in common."""


def _parts(columns: Iterable[str]) -> dict[str, str]:
    """The columns of the parts of a passage; nothing if there is no text, or no answer to tell records by."""
    finder = FieldFinder(FIELDS | GRADE_FIELDS)
    known = finder.keys(dict.fromkeys(columns))
    found = FieldFinder(PARTS).keys({name: None for name in columns if known.get("question") != name})
    if "text" not in found or known.get("passages", found["text"]) != found["text"]:
        return {}
    certain = {"accepted", "human", "correct", "system"} & known.keys() or {"score", "distance"} & found.keys()
    answer = plain_name(known.get("answer", ""))
    asked = {"query", "question"} & known.keys()
    return found if asked and answer and (certain or answer not in ("answer", "output", "result")) else {}


def _recognise(sample: FileSample) -> bool:
    """Whether most records recur with other passages. A few that do may be questions that were asked again."""
    parts = _parts(sample.columns)
    if sample.has("query_run"):  # of open-rag-eval
        return False
    if not parts or any(not isinstance(row.get(parts["text"]), str | None) for row in sample.rows):
        return False
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in sample.rows:
        groups.setdefault(_record_of(row), []).append(row)
    several = [rows for rows in groups.values() if len(rows) > 1]
    distinct = all(len({row.get(parts["text"]) for row in rows}) == len(rows) for rows in several)
    others = [column for column in sample.columns if column not in parts.values()]
    most = 2 * sum(map(len, several)) > len(sample.rows)
    return most and distinct and not any(_names_systems(column, several) for column in others)


def _names_systems(column: str, groups: list[list[Row]]) -> bool:
    """Whether a column has the same words in each of several records, so that its rows are of several systems."""
    words = [[str(row.get(column)) for row in rows] for rows in groups]
    alike = len(words) > 1 and len({frozenset(each) for each in words}) == 1
    return alike and len(set(words[0])) == len(words[0]) and any(map(str.isalpha, "".join(words[0])))


def _record_of(row: Row) -> tuple[str, ...]:
    """What tells the records apart: the question, the answer, and names of systems and repeats."""
    finder = FieldFinder(FIELDS)
    named = (value for name, value in row.items() if tells_apart([name]))
    return tuple(map(repr, (*(finder.get(row, field) for field in OF_RECORD), *named)))


def _parse(rows: LogRows, finder: FieldFinder, reject: Reject) -> Iterator[LogRecord]:
    """A record for the rows of each question, system and answer."""
    found = [(place, as_row(value) or value) for place, value in rows.values]
    columns = dict.fromkeys(name for _, row in found if isinstance(row, Mapping) for name in row)
    parts = _parts(columns)
    records: dict[Any, tuple[int, Any]] = {}
    shown: dict[Any, list[Row]] = {}
    for place, row in found:
        key = _record_of(row) if isinstance(row, Mapping) else place
        records.setdefault(key, (place, row))
        shown.setdefault(key, []).append(row)
    joined = [(place, _join(row, shown[key], parts)) for key, (place, row) in records.items()]
    finder.notes.append(
        f"each {rows.unit} is read as a passage ({parts.get('text')!r}), which makes "
        f"{format_count(len(joined), 'record')} of {format_count(len(found), rows.unit)}"
    )
    yield from parse_rows(rows._replace(values=joined), finder, reject)


def _join(row: Any, rows: list[Row], parts: Mapping[str, str]) -> Any:
    """The first row of a record, with the passages of all its rows."""
    if not parts or not isinstance(row, Mapping):
        return row
    ranks = [as_grade(each.get(parts["rank"]), "rank") for each in rows] if "rank" in parts else []
    if ranks and all(isinstance(rank, int | float) for rank in ranks):
        rows = [each for _, each in sorted(zip(ranks, rows, strict=True), key=lambda pair: float(pair[0] or 0))]
    passages = [
        {part: each.get(column) for part, column in parts.items() if part != "rank" and each.get(column) is not None}
        for each in rows
        if each.get(parts["text"]) not in (None, "")
    ]
    return {name: value for name, value in row.items() if name not in parts.values()} | {"retrieved_context": passages}


FORMAT = LogFormat(
    name="passage-rows",
    title="a log with a row for each passage",
    expected="a question, an answer and a passage in each row",
    names=FIELDS,
    recognise=_recognise,
    parse=_parse,
).format()
