"""Read what LangChain programs save: documents, and results of chains with the documents they used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragworth.formats.contract import FileSample
from ragworth.formats.logs.engine import LogFormat

NAMES = {
    "query": ("query_id", "id"),
    "question": ("input", "question", "query"),
    "system": ("system", "run_id"),
    "passages": ("context", "source_documents", "documents"),
    "answer": ("answer", "result", "output"),
    "accepted": ("reference", "ground_truth", "expected", "reference_answer"),
}


def is_document(item: Any) -> bool:
    """Whether an object is a document, plain or as LangChain's ``dumpd`` writes it."""
    if not isinstance(item, Mapping):
        return hasattr(item, "page_content")
    inner = item.get("kwargs")
    return "page_content" in item or (isinstance(inner, Mapping) and "page_content" in inner)


def _recognise(sample: FileSample) -> bool:
    first = sample.rows[0] if sample.rows else {}
    if is_document(first):
        return True
    return any(
        isinstance(passages := first.get(name), list) and bool(passages) and is_document(passages[0])
        for name in NAMES["passages"]
    )


FORMAT = LogFormat(
    name="langchain",
    title="LangChain documents, or results of chains",
    expected='documents {"page_content": …, "metadata": …}, or {"input": …, "context": [document, …], "answer": …}',
    names=NAMES,
    recognise=_recognise,
    is_document=is_document,
).format()
