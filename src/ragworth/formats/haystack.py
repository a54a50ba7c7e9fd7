"""Read what Haystack programs save: documents, generated answers, and results of pipelines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ragworth.formats.contract import FileSample
from ragworth.formats.fields import FieldFinder
from ragworth.formats.log_files import LogRows
from ragworth.formats.log_format import LogFormat, Reject, parse_rows
from ragworth.formats.log_record import LogRecord
from ragworth.formats.traces import find_answer

NAMES = {
    "query": ("query_id", "id"),
    "question": ("query", "question"),
    "system": ("system", "run_id"),
    "passages": ("documents", "retrieved_documents"),
    "answer": ("data", "answer", "replies", "answers"),
    "accepted": ("ground_truth_answer", "ground_truth", "reference"),
    "relevant": ("ground_truth_documents",),
}
GENERATED = "init_parameters"
"""Where GeneratedAnswer.to_dict puts the fields of an answer."""


def is_document(item: Any) -> bool:
    """Whether an object is a document of Haystack."""
    if not isinstance(item, Mapping):
        return hasattr(item, "content") and hasattr(item, "meta")
    return "content" in item and bool({"meta", "blob", "score", "sparse_embedding"} & set(item)) and "role" not in item


def _recognise(sample: FileSample) -> bool:
    first = sample.rows[0] if sample.rows else {}
    if is_document(first):
        return True
    inner = first.get(GENERATED)
    if isinstance(inner, Mapping):
        return "documents" in inner
    documents = first.get("documents")
    return isinstance(documents, list) and bool(documents) and is_document(documents[0])


def _parse(rows: LogRows, finder: FieldFinder, reject: Reject) -> Iterator[LogRecord]:
    """Rows without the wrapping of GeneratedAnswer, and with the first of several replies."""

    def plain() -> Iterator[tuple[int, Any]]:
        for place, row in rows.values:
            fields = row[GENERATED] if isinstance(row, Mapping) and isinstance(row.get(GENERATED), Mapping) else row
            if isinstance(fields, Mapping):
                changed = {
                    name: find_answer(fields[name])
                    for name in ("replies", "answers")
                    if isinstance(fields.get(name), list)
                }
                fields = {**fields, **changed}
            yield place, fields

    yield from parse_rows(rows._replace(values=plain()), finder, reject)


FORMAT = LogFormat(
    name="haystack",
    title="Haystack documents or answers",
    expected='documents {"id": …, "content": …}, or {"query": …, "documents": [document, …], "replies": […]}',
    names=NAMES,
    recognise=_recognise,
    parse=_parse,
    is_document=is_document,
).format()
