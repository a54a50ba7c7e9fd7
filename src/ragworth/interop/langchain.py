"""Retrievers of LangChain: anything with ``invoke``, such as a retriever or a chain that ends in one; vector stores.

The order of the documents is the one shown. An id is the document's own (``Document.id``) unless a field of its
metadata is named; a document without one gets an id from its text.
"""

from __future__ import annotations

from typing import Any

from ragworth.interop.callables import describe_callable
from ragworth.interop.retrievers import Retriever


def adopt(thing: Any, identity: str = "") -> Retriever:
    """A retriever says itself how many documents it gives; a vector store is asked for as many as are wanted."""

    def ask(text: str, k: int) -> Any:
        return thing.similarity_search(text, k=k) if hasattr(thing, "similarity_search") else thing.invoke(text)

    return Retriever(describe_callable(thing), ask, by_place=True, identity=identity)
