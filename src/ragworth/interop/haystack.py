"""Use Haystack components that take the text of a query and return documents.

The order of the documents is the order shown; their scores are kept if they agree with it. The id is the document's
own unless a field of its ``meta`` is named. For a component that takes an embedding, or a whole pipeline, pass a
function that prepares the input and selects the output.
"""

from __future__ import annotations

import inspect
from typing import Any

from ragworth.core.errors import InputError
from ragworth.interop.callables import describe_callable
from ragworth.interop.hits import WrongShapeError
from ragworth.interop.retrievers import Retriever

QUERY_INPUTS = ("query", "text")
"""Names of the input for the text of a query."""


def adopt(retriever: Any, identity: str = "") -> Retriever:
    """Wrap a component, passing the number of documents wanted if it takes ``top_k``."""
    name = describe_callable(retriever)
    taken = _inputs(retriever)
    query = next((each for each in QUERY_INPUTS if each in taken), None)
    if query is None:
        whole = f"{name} is not a component, so the input for the query text is unknown"
        raise InputError(
            f"{name} takes {', '.join(taken)} instead of a query text" if taken else whole,
            expected="a component whose run takes query, such as InMemoryBM25Retriever",
            remedy='pass a function: lambda text: pipeline.run({"embedder": {"text": text}})["retriever"]["documents"]',
        )

    def ask(text: str, k: int) -> Any:
        found = retriever.run(**{query: text}, **({"top_k": k} if "top_k" in taken else {}))
        if not isinstance(found, dict) or "documents" not in found:
            names = ", ".join(found) if isinstance(found, dict) else type(found).__name__
            raise WrongShapeError(f"it returned {names} instead of documents")
        return found["documents"]

    return Retriever(name, ask, by_place=True, identity=identity)


def _inputs(thing: Any) -> list[str]:
    """Inputs of a component's ``run``; none for a pipeline, whose inputs are those of its components."""
    if not hasattr(thing, "__haystack_input__"):
        return []
    return [name for name in inspect.signature(thing.run).parameters if name != "self"]
