"""Read RAG logs with usual names of fields that belong to no tool: JSON, JSON lines, CSV or Parquet."""

from __future__ import annotations

from ragworth.formats.contract import Head
from ragworth.formats.logs.engine import LogSpec
from ragworth.formats.logs.fields import FieldFinder
from ragworth.formats.logs.names import FIELDS, GRADE_FIELDS, PREDICTIONS, plain_name

NAMES = FIELDS | GRADE_FIELDS
TABLE_COLUMNS = {"passage", "passage_id", "doc_id", "docno", "docid", "corpus-id", "aspect", "text"}
"""Columns of our own tables."""

UNSURE_ANSWERS = ("answer", "output", "result")
"""Names of answers that don't say whose they are."""

OF_SYSTEMS = {"system", "system_id", "system_name", "is_correct", "correctness", "human_label", "human_grade"}
"""Columns that only answers of systems have."""


class GeneralSpec(LogSpec):
    """Logs whose columns have usual names."""

    def recognise(self, sample: Head) -> bool:
        """Tell whether there are questions with answers, passages or accepted answers; ``answer`` may be either."""
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


FORMAT = GeneralSpec(
    name="log",
    title="a RAG log",
    signs=(),
    fields={},
    ask=True,
    general=2,
    expected="a question in each record, and an answer or passages",
).format()
