"""Use functions and objects of other libraries as retrievers.

A library is a function of a module here, plus a line in `LIBRARIES`. Objects are recognized by their base
classes, so no library is imported needlessly.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

from ragworth.core.errors import InputError, format_count, format_list, quote_short
from ragworth.data.collection import text_id
from ragworth.interop.hits import (
    EXPECTED_FORM,
    RankedHits,
    WrongShapeError,
    order_hits,
    parse_hits,
    rank_hits,
    score_trend,
)


class RetrieverQuery(NamedTuple):
    query: str
    text: str


@dataclass(frozen=True, eq=False)
class Retriever:
    """A retriever, under the name that errors use.

    Attributes
    ----------
    ask: returns results for the text of a query and the number of passages wanted.
    ask_all: the same for all queries at once, by query, if that is faster.
    by_place: the order of hits is the order shown, whatever their scores.
    identity: field of a hit with its id; empty for the hit's own.
    """

    name: str
    ask: Callable[[str, int], Any] | None = None
    ask_all: Callable[[Sequence[RetrieverQuery], int], Mapping[str, Any]] | None = None
    by_place: bool = False
    identity: str = ""

    def retrieve(
        self, queries: Sequence[RetrieverQuery], k: int, name: Callable[[str], str] = text_id
    ) -> Iterator[tuple[str, RankedHits]]:
        """Retrieve hits for each query. A query without words isn't sent, and has none.

        ``name`` makes an id for a text without one.
        """
        asked = [each for each in queries if each.text.strip()]
        every = self._ask_all(asked, k)
        for query in asked:
            given = every.get(query.query, []) if every is not None else self._ask_one(query, k)
            try:
                hits = parse_hits(given, self.identity, name=name)
                ranked = rank_hits(order_hits(hits, by_place=self.by_place), k)
                yield query.query, ranked if self.by_place else ranked._replace(trend=score_trend(hits))
            except WrongShapeError as error:
                if inspect.iscoroutine(given):
                    given.close()
                remedy = "name another field as the id: retrieval.called(…, id=…)" if "two texts" in str(error) else ""
                raise InputError(
                    f"{self.name}, query {quote_short(query.query, 24)}: {error}", expected=EXPECTED_FORM, remedy=remedy
                ) from error

    def _ask_all(self, asked: Sequence[RetrieverQuery], k: int) -> Mapping[str, Any] | None:
        if self.ask_all is None:
            return None
        try:
            return self.ask_all(asked, k) if asked else {}
        except WrongShapeError as error:
            raise InputError(f"{self.name}: {error}", expected="a table with qid, docno and score or rank") from error
        except Exception as error:  # anything a third-party program may raise
            few = format_list([quote_short(each.query, 24) for each in asked], 3)
            raise InputError(
                f"{self.name} fails for {format_count(len(asked), 'query', 'queries')} ({few}): {_error_line(error)}"
            ) from error

    def _ask_one(self, query: RetrieverQuery, k: int) -> Any:
        assert self.ask is not None
        try:
            return self.ask(query.text, k)
        except Exception as error:  # anything a third-party program may raise
            raise InputError(
                f"{self.name} fails for the query {quote_short(query.query, 24)} ({quote_short(query.text, 48)}): "
                f"{_error_line(error)}"
            ) from error


def _error_line(error: Exception) -> str:
    """A third-party error on one line."""
    words = " ".join(str(error).split())
    return f"{type(error).__name__}: {words[:300]}" if words else type(error).__name__


class Library(NamedTuple):
    """How to recognize a library's objects: by a base class of this name in this package."""

    package: str
    classes: tuple[str, ...]
    adopt: str


LIBRARIES = (
    Library("pyterrier", ("Transformer",), "ragworth.interop.pyterrier:adopt"),
    Library("langchain_core", ("Runnable", "VectorStore"), "ragworth.interop.callables:adopt_langchain"),
    Library("llama_index", ("BaseRetriever", "BaseIndex"), "ragworth.interop.callables:adopt_llamaindex"),
    Library("haystack", ("Component", "Pipeline", "PipelineBase", "AsyncPipeline"), "ragworth.interop.haystack:adopt"),
)


def find_library(retriever: object) -> Library | None:
    """Find the library of an object."""
    bases = {(base.__module__.partition(".")[0], base.__name__) for base in type(retriever).__mro__}
    if hasattr(type(retriever), "__haystack_input__") or hasattr(retriever, "__haystack_input__"):
        bases.add(("haystack", "Component"))  # a decorator makes them, so they have no base class
    return next((each for each in LIBRARIES if any((each.package, name) in bases for name in each.classes)), None)


def is_retriever(retriever: object) -> bool:
    """Whether something may be a retriever: an object of a known library, or a callable."""
    return not isinstance(retriever, type) and (find_library(retriever) is not None or callable(retriever))


def adopt(thing: Any, identity: str = "") -> Retriever:
    """Wrap anything that is a retriever."""
    library = find_library(thing)
    target = library.adopt if library is not None else "ragworth.interop.callables:adopt"
    module, _, name = target.partition(":")
    retriever: Retriever = getattr(import_module(module), name)(thing, identity)
    return retriever
