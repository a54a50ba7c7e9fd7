"""Read RAG logs with usual names of fields that belong to no library: JSON, JSON lines, CSV or Parquet."""

from __future__ import annotations

from collections.abc import Mapping

from ragworth.formats.contract import FileSample
from ragworth.formats.fields import FIELDS, GRADE_FIELDS, PREDICTIONS, FieldFinder, plain_name
from ragworth.formats.log_format import LogFormat
from ragworth.formats.log_passages import are_retrieved
from ragworth.formats.values import WrongLineError

NAMES = FIELDS | GRADE_FIELDS
TABLE_COLUMNS = {"passage", "passage_id", "doc_id", "docno", "docid", "corpus-id", "aspect", "text"}
"""Columns of our own tables."""

DESCRIPTIONS = {"category", "topic", "type", "question_type", "difficulty", "level", "domain", "tags", "split"}
DESCRIPTIONS |= {"subset", "source", "language", "lang", "title", "url", "date", "comment", "notes", "author"}
"""Columns that say something of a question."""

OF_SYSTEMS = {"system", "system_id", "system_name", "is_correct", "correctness", "human_label", "human_grade"}
"""Columns that only answers of systems have."""


def _recognise(sample: FileSample) -> bool:
    """Questions with answers, passages or accepted answers. ``answer`` alone may be an accepted one."""
    if not sample.rows or TABLE_COLUMNS & set(sample.columns):
        return False
    found = FieldFinder(NAMES).keys(dict.fromkeys(sample.columns))
    if "question" not in found:
        certain = "passages" in found or plain_name(found.get("answer", "")) in PREDICTIONS
        return "query" in found and "answer" in found and certain
    if "accepted" in found and not {"answer", "passages"} & found.keys():
        return _are_references(sample, found)
    if "answer" in found:
        return (
            found["answer"].lower() not in ("answer", "output", "result", "final_answer")
            or "accepted" in found
            or _is_graded(found)
            or _is_retrieved(sample, found.get("passages"))
        )
    return "passages" in found and found["passages"].lower() not in ("context", "sources", "docs", "documents")


def _are_references(sample: FileSample, found: Mapping[str, str]) -> bool:
    """Whether a file has questions with accepted answers, and no other column that may be a system's answer."""
    others = {name for name in sample.columns if name not in found.values() and plain_name(name) not in DESCRIPTIONS}
    return not any(isinstance(row.get(name), str | list | dict) for row in sample.rows for name in others)


def _is_graded(found: Mapping[str, str]) -> bool:
    """Whether the columns of the fields that were found say that a system answered: its name, or a person's grade."""
    return bool(OF_SYSTEMS & {plain_name(column) for column in found.values()})


def _is_retrieved(sample: FileSample, column: str | None) -> bool:
    """Whether a search found the passages, so that a system answered from them."""
    try:
        return column is not None and any(are_retrieved(row.get(column)) for row in sample.rows)
    except WrongLineError:
        return False


FORMAT = LogFormat(
    name="log",
    title="a RAG log",
    expected="a question in each record, and an answer or passages",
    names=FIELDS,
    recognise=_recognise,
).format()
