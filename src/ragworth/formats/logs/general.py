"""Read RAG logs with usual names of fields that belong to no tool: JSON, JSON lines, CSV or Parquet."""

from __future__ import annotations

from functools import partial

from ragworth.formats.contract import Head
from ragworth.formats.logs.engine import LogFormat, parse_rows
from ragworth.formats.logs.fields import FieldFinder
from ragworth.formats.logs.names import FIELDS, GRADE_FIELDS, PREDICTIONS, plain_name

NAMES = FIELDS | GRADE_FIELDS
TABLE_COLUMNS = {"passage", "passage_id", "doc_id", "docno", "docid", "corpus-id", "aspect", "text"}
"""Columns of our own tables."""

UNSURE_ANSWERS = ("answer", "output", "result")
"""Names of answers that don't say whose they are."""

OF_SYSTEMS = {"system", "system_id", "system_name", "is_correct", "correctness", "human_label", "human_grade"}
"""Columns that only answers of systems have."""


def _recognise(sample: Head) -> bool:
    """Tell whether there are questions with answers, passages or accepted answers. ``answer`` alone may be accepted."""
    if not sample.rows or TABLE_COLUMNS & set(sample.columns):
        return False
    found = FieldFinder(NAMES).keys(dict.fromkeys(sample.columns))
    if "question" not in found:
        certain = "passages" in found or plain_name(found.get("answer", "")) in PREDICTIONS
        return "query" in found and "answer" in found and certain
    if "accepted" in found:
        return True
    if "answer" in found:
        graded = bool(OF_SYSTEMS & {plain_name(column) for column in found.values()})
        return found["answer"].lower() not in UNSURE_ANSWERS or graded
    return "passages" in found and found["passages"].lower() not in ("context", "sources", "docs", "documents")


FORMAT = LogFormat(
    name="log",
    title="a RAG log",
    expected="a question in each record, and an answer or passages",
    names=FIELDS,
    recognise=_recognise,
    general=2,
    parse=partial(parse_rows, ask=True),
).format()
