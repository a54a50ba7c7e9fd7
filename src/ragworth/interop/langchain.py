"""Use LangChain retrievers: anything with ``invoke``, such as a retriever or a chain ending in one; vector stores.

The order of the documents is the order shown. The id is the document's own (``Document.id``) unless a field of its
metadata is named; a document without one gets an id from its text.
"""

from __future__ import annotations

from typing import Any

from ragworth.interop.callables import describe_callable
from ragworth.interop.retrievers import Retriever


def adopt(retriever: Any, identity: str = "") -> Retriever:
    """Wrap a retriever, which sets its own number of documents, or a vector store, which gets the number wanted."""

    def ask(text: str, k: int) -> Any:
        if hasattr(retriever, "similarity_search"):
            return retriever.similarity_search(text, k=k)
        return retriever.invoke(text)

    return Retriever(describe_callable(retriever), ask, by_place=True, identity=identity)
