"""Retrievers of Haystack: components that take the text of a query and give documents.

The order of the documents is the one shown; their scores are kept where they fall in that order. An id is the
document's own unless a field of its ``meta`` is named. A component that takes an embedding, and a whole pipeline, need
a function around them that says what goes in and which part of what comes out is meant.
"""

from __future__ import annotations

import inspect
from typing import Any

from ragworth.errors import InputError
from ragworth.interop.callables import describe_callable
from ragworth.interop.hits import WrongShapeError
from ragworth.interop.retrievers import Retriever

QUERY_INPUTS = ("query", "text")
"""Names of the input that takes the text of a query."""


def adopt(thing: Any, identity: str = "") -> Retriever:
    """A component; it is asked for as many documents as are wanted, where it takes ``top_k``."""
    name = describe_callable(thing)
    taken = _inputs(thing)
    query = next((each for each in QUERY_INPUTS if each in taken), None)
    if query is None:
        whole = f"{name} is no component: which of its parts takes the text of a query is not known"
        raise InputError(
            f"{name} takes no text of a query but {', '.join(taken)}" if taken else whole,
            expected="a component whose run takes query, such as InMemoryBM25Retriever",
            remedy='give a function: lambda text: pipeline.run({"embedder": {"text": text}})["retriever"]["documents"]',
        )

    def ask(text: str, k: int) -> Any:
        found = thing.run(**{query: text}, **({"top_k": k} if "top_k" in taken else {}))
        if not isinstance(found, dict) or "documents" not in found:
            names = ", ".join(found) if isinstance(found, dict) else type(found).__name__
            raise WrongShapeError(f"no documents came back but {names}")
        return found["documents"]

    return Retriever(name, ask, by_place=True, identity=identity)


def _inputs(thing: Any) -> list[str]:
    """What a component's ``run`` takes; nothing of a pipeline, whose inputs are those of its components."""
    if not hasattr(thing, "__haystack_input__"):
        return []
    return [name for name in inspect.signature(thing.run).parameters if name != "self"]
