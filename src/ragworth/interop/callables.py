"""Use Python functions as retrievers, from the text of a query to a list of hits, and objects that have such a method.

A function with a parameter ``k`` (or ``top_k``) gets the number of passages wanted; otherwise extra hits are cut off.
:mod:`ragworth.interop.hits` lists the accepted return values. LangChain's and LlamaIndex's documents are in the order
shown; their ids are their own unless a field of their metadata is named.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ragworth.core.errors import InputError, quote_short, with_article
from ragworth.interop.retrievers import Retriever

DEPTH_PARAMETERS = ("k", "top_k")
"""Parameter names for the number of passages wanted."""


def adopt(retriever: Any, identity: str = "") -> Retriever:
    """Wrap a function or callable object."""
    if isinstance(retriever, type) or not callable(retriever):
        raise InputError(
            f"{with_article(type(retriever).__name__)} is not a retriever: {quote_short(retriever, 40)}",
            expected="a function of a query's text, a PyTerrier transformer, or a retriever of LangChain, LlamaIndex "
            "or Haystack",
        )
    name, wanted = describe_callable(retriever), _depth_parameter(retriever)

    def ask(text: str, k: int) -> Any:
        return retriever(text, **{wanted: k}) if wanted else retriever(text)

    return Retriever(name, ask, identity=identity)


def adopt_langchain(retriever: Any, identity: str = "") -> Retriever:
    """Wrap a retriever, which sets its own number of documents, or a vector store, which gets the number wanted."""

    def ask(text: str, k: int) -> Any:
        if hasattr(retriever, "similarity_search"):
            return retriever.similarity_search(text, k=k)
        return retriever.invoke(text)

    return Retriever(describe_callable(retriever), ask, by_place=True, identity=identity)


def adopt_llamaindex(retriever: Any, identity: str = "") -> Retriever:
    """Wrap a retriever, which sets its own number of nodes, or an index, which gets the number wanted."""

    def ask(text: str, k: int) -> Any:
        asked = retriever if hasattr(retriever, "retrieve") else retriever.as_retriever(similarity_top_k=k)
        return asked.retrieve(text)

    return Retriever(describe_callable(retriever), ask, by_place=True, identity=identity)


def describe_callable(retriever: Any) -> str:
    """Name a function or object."""
    found = getattr(retriever, "__qualname__", "") or type(retriever).__name__
    return str(found).replace("<locals>.", "")


def _depth_parameter(function: Callable[..., Any]) -> str:
    """Name of the parameter for the number of passages, if any."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # implemented in C
        return ""
    first = next(iter(parameters), None)
    return next((name for name in DEPTH_PARAMETERS if name in parameters and name != first), "")
