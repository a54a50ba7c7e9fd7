"""Read what LlamaIndex programs save: nodes, responses with their source nodes, and labelled RAG datasets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ragworth.formats.contract import FileSample
from ragworth.formats.logs.engine import LogFormat

NAMES = {
    "query": ("query_id",),
    "question": ("query", "question"),
    "system": ("system", "run_id"),
    "passages": ("source_nodes", "contexts", "nodes"),
    "answer": ("response", "answer"),
    "accepted": ("reference_answer",),
    "relevant": ("reference_contexts",),
}
LISTS = ("examples", "predictions")


def is_node(item: Any) -> bool:
    """Whether an object is a node, with or without a score."""
    if not isinstance(item, Mapping):
        return hasattr(item, "get_content") and hasattr(item, "node_id")
    inner = item.get("node")
    return "id_" in item or (isinstance(inner, Mapping) and "id_" in inner)


def _recognise(sample: FileSample) -> bool:
    log = sample.document
    if isinstance(log, dict) and isinstance(log.get("examples"), list) and log["examples"]:
        return isinstance(log["examples"][0], dict) and "reference_answer" in log["examples"][0]
    first = sample.rows[0] if sample.rows else {}
    nodes = first.get("source_nodes")
    return is_node(first) or isinstance(nodes, list) or sample.has("query", "reference_answer", "query_by")


def _unpack(value: Mapping[str, Any]) -> Iterable[Any] | None:
    lists = [value[name] for name in LISTS if isinstance(value.get(name), list)]
    return lists[0] if lists else None


FORMAT = LogFormat(
    name="llamaindex",
    title="LlamaIndex nodes, responses or labelled datasets",
    expected='nodes {"id_": …, "text": …}, or {"query": …, "response": …, "source_nodes": [{"node": …, "score": …}]}',
    names=NAMES,
    recognise=_recognise,
    unpack=_unpack,
    is_document=is_node,
).format()
