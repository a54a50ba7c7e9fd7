"""Use LlamaIndex retrievers, and indexes as retrievers.

The order of the nodes is the order shown; their scores are kept if they agree with it. The id is the node's own
(``node_id``) unless a field of its metadata is named.
"""

from __future__ import annotations

from typing import Any

from ragworth.interop.callables import describe_callable
from ragworth.interop.retrievers import Retriever


def adopt(retriever: Any, identity: str = "") -> Retriever:
    """Wrap a retriever, which sets its own number of nodes, or an index, which gets the number wanted."""

    def ask(text: str, k: int) -> Any:
        asked = retriever if hasattr(retriever, "retrieve") else retriever.as_retriever(similarity_top_k=k)
        return asked.retrieve(text)

    return Retriever(describe_callable(retriever), ask, by_place=True, identity=identity)
