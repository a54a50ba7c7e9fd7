"""Retrievers of LlamaIndex, and indexes, which make one.

The order of the nodes is the one shown; their scores are kept where they fall in that order. An id is the node's own
(``node_id``) unless a field of its metadata is named.
"""

from __future__ import annotations

from typing import Any

from ragworth.interop.callables import describe_callable
from ragworth.interop.retrievers import Retriever


def adopt(thing: Any, identity: str = "") -> Retriever:
    """A retriever says itself how many nodes it gives; one made of an index gives as many as are wanted."""

    def ask(text: str, k: int) -> Any:
        asked = thing if hasattr(thing, "retrieve") else thing.as_retriever(similarity_top_k=k)
        return asked.retrieve(text)

    return Retriever(describe_callable(thing), ask, by_place=True, identity=identity)
