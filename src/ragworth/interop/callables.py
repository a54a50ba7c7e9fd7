"""Use Python functions as retrievers, from the text of a query to a list of hits.

A function with a parameter ``k`` (or ``top_k``) gets the number of passages wanted; otherwise extra hits are cut off.
:mod:`ragworth.interop.hits` lists the accepted return values.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ragworth.errors import InputError, quote_short, with_article
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
