"""Python functions as retrievers: from the text of a query to a list of hits.

A function that has a parameter ``k`` (or ``top_k``) is told how many passages are wanted; of others, what is too much
is cut off. What may come back is told in :mod:`ragworth.interop.hits`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ragworth.errors import InputError, quote_short, with_article
from ragworth.interop.retrievers import Retriever

DEPTH_PARAMETERS = ("k", "top_k")
"""Names of a parameter that says how many passages are wanted."""


def adopt(thing: Any, identity: str = "") -> Retriever:
    """A function, or an object that can be called like one."""
    if isinstance(thing, type) or not callable(thing):
        raise InputError(
            f"{with_article(type(thing).__name__)} is no retriever: {quote_short(thing, 40)}",
            expected="a function of a query's text, a PyTerrier transformer, or a retriever of LangChain, LlamaIndex "
            "or Haystack",
        )
    name, wanted = describe_callable(thing), _depth_parameter(thing)

    def ask(text: str, k: int) -> Any:
        return thing(text, **{wanted: k}) if wanted else thing(text)

    return Retriever(name, ask, identity=identity)


def describe_callable(thing: Any) -> str:
    """What a function, or an object, is called."""
    found = getattr(thing, "__qualname__", "") or type(thing).__name__
    return str(found).replace("<locals>.", "")


def _depth_parameter(function: Callable[..., Any]) -> str:
    """The parameter that says how many passages are wanted, if there is one."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # written in C
        return ""
    first = next(iter(parameters), None)
    return next((name for name in DEPTH_PARAMETERS if name in parameters and name != first), "")
