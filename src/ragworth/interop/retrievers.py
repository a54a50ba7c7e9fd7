"""Other people's retrievers as something that can be asked: functions, and objects of the libraries we know.

A library is one file here with a function ``adopt`` and one line in `LIBRARIES`. Objects are recognised by the classes
they descend from, so that no library is imported to find out that it is not meant.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

from ragworth.collection import text_id
from ragworth.errors import InputError, format_count, format_list, quote_short
from ragworth.interop.hits import EXPECTED_FORM, RankedHits, WrongShapeError, rank_hits, read_hits


class RetrieverQuery(NamedTuple):
    """A query to retrieve for."""

    query: str
    text: str


@dataclass(frozen=True, eq=False)
class Retriever:
    """Something that can be asked, under the name that errors call it by.

    Attributes
    ----------
    ask: what it gives for the text of a query, where about k passages are wanted.
    ask_all: the same for all queries at once, by query, for those that are faster that way.
    by_place: the order in which hits come is the one shown, whatever scores they carry.
    identity: field of a hit that holds its id; nothing: the hit's own.
    """

    name: str
    ask: Callable[[str, int], Any] | None = None
    ask_all: Callable[[Sequence[RetrieverQuery], int], Mapping[str, Any]] | None = None
    by_place: bool = False
    identity: str = ""

    def retrieve(
        self, queries: Sequence[RetrieverQuery], k: int, name: Callable[[str], str] = text_id
    ) -> Iterator[tuple[str, RankedHits]]:
        """The hits of each query. One without a word in it is not asked about, and has none.

        ``name`` gives an id to a text that came without one.
        """
        asked = [each for each in queries if each.text.strip()]
        every = self._every(asked, k)
        for query in asked:
            given = every.get(query.query, []) if every is not None else self._one(query, k)
            try:
                yield query.query, rank_hits(read_hits(given, self.identity, by_place=self.by_place, name=name), k)
            except WrongShapeError as error:
                if inspect.iscoroutine(given):
                    given.close()
                remedy = "name another field as the id: retrieval.called(…, id=…)" if "two texts" in str(error) else ""
                raise InputError(
                    f"{self.name}, query {quote_short(query.query, 24)}: {error}", expected=EXPECTED_FORM, remedy=remedy
                ) from error

    def _every(self, asked: Sequence[RetrieverQuery], k: int) -> Mapping[str, Any] | None:
        if self.ask_all is None:
            return None
        try:
            return self.ask_all(asked, k) if asked else {}
        except WrongShapeError as error:
            raise InputError(f"{self.name}: {error}", expected="a table with qid, docno and score or rank") from error
        except Exception as error:  # whatever somebody's program raises
            few = format_list([quote_short(each.query, 24) for each in asked], 3)
            raise InputError(
                f"{self.name} fails for {format_count(len(asked), 'query', 'queries')} ({few}): {_error_line(error)}"
            ) from error

    def _one(self, query: RetrieverQuery, k: int) -> Any:
        assert self.ask is not None
        try:
            return self.ask(query.text, k)
        except Exception as error:  # whatever somebody's program raises
            raise InputError(
                f"{self.name} fails for the query {quote_short(query.query, 24)} ({quote_short(query.text, 48)}): "
                f"{_error_line(error)}"
            ) from error


def _error_line(error: Exception) -> str:
    """An error of somebody else's, on one line."""
    words = " ".join(str(error).split())
    return f"{type(error).__name__}: {words[:300]}" if words else type(error).__name__


class Library(NamedTuple):
    """How objects of a library are known: a class of this name in this package among those they descend from."""

    package: str
    classes: tuple[str, ...]
    adopt: str


LIBRARIES = (
    Library("pyterrier", ("Transformer",), "ragworth.interop.pyterrier:adopt"),
    Library("langchain_core", ("Runnable", "VectorStore"), "ragworth.interop.langchain:adopt"),
    Library("llama_index", ("BaseRetriever", "BaseIndex"), "ragworth.interop.llamaindex:adopt"),
    Library("haystack", ("Component", "Pipeline", "PipelineBase", "AsyncPipeline"), "ragworth.interop.haystack:adopt"),
)


def find_library(thing: object) -> Library | None:
    """The library that an object belongs to."""
    bases = {(base.__module__.partition(".")[0], base.__name__) for base in type(thing).__mro__}
    if hasattr(type(thing), "__haystack_input__") or hasattr(thing, "__haystack_input__"):
        bases.add(("haystack", "Component"))  # a decorator makes them, so they descend from nothing
    return next((each for each in LIBRARIES if any((each.package, name) in bases for name in each.classes)), None)


def is_retriever(thing: object) -> bool:
    """Whether something may be a retriever: an object of a library that we know, or something to call."""
    return not isinstance(thing, type) and (find_library(thing) is not None or callable(thing))


def adopt(thing: Any, identity: str = "") -> Retriever:
    """A retriever out of whatever is one."""
    library = find_library(thing)
    target = library.adopt if library is not None else "ragworth.interop.callables:adopt"
    module, _, name = target.partition(":")
    made: Retriever = getattr(import_module(module), name)(thing, identity)
    return made
