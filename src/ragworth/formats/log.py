"""Read RAG logs with usual names of fields that belong to no library: JSON, JSON lines, CSV or Parquet."""

from __future__ import annotations

from ragworth.formats.contract import FileSample
from ragworth.formats.fields import FIELDS, GRADE_FIELDS, FieldFinder
from ragworth.formats.log_format import LogFormat

NAMES = FIELDS | GRADE_FIELDS
TABLE_COLUMNS = {"passage", "passage_id", "doc_id", "docno", "docid", "corpus-id", "aspect", "text"}
"""Columns of our own tables."""


def _recognise(sample: FileSample) -> bool:
    """Questions with answers or passages. ``answer`` alone may be an accepted one, so it is not enough."""
    if not sample.rows or TABLE_COLUMNS & set(sample.columns):
        return False
    found = FieldFinder(NAMES).keys(dict.fromkeys(sample.columns))
    if "question" not in found:
        return "query" in found and "answer" in found and "passages" in found
    if "answer" in found:
        return found["answer"].lower() not in ("answer", "output", "result") or "accepted" in found
    return "passages" in found and found["passages"].lower() not in ("context", "sources", "docs", "documents")


FORMAT = LogFormat(
    name="log",
    title="a RAG log",
    expected="a question in each record, and an answer or passages",
    names=FIELDS,
    recognise=_recognise,
).format()
