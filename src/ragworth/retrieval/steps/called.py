"""``called``: what somebody else's retriever gives: a function, or an object of a library.

It has no written form that could be read again, because it is made of a living object; it prints for people.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import polars as pl

from ragworth.errors import InputError, counted, listed, quoted
from ragworth.interop.hits import Ranked
from ragworth.interop.retrievers import Asked, Retriever, adopt
from ragworth.retrieval.contract import Need, Place, Setting, Step, written
from ragworth.tables import Contexts


@dataclass(frozen=True, eq=False)
class Called(Step):
    """Passages from a function of the query's text, a PyTerrier transformer, a retriever of LangChain, LlamaIndex, ….

    Two of them are equal that call the same object. Texts that come along are remembered in `Setting.brought`, where
    the collection does not have them. A query without a word in it is not passed on and has nothing.
    """

    thing: Any
    id: str = field(default="", kw_only=True)
    """Field of what comes back that holds a passage's id, as it is in the collection."""

    kind: ClassVar[str] = "called"
    title: ClassVar[str] = "what somebody else's retriever gives"
    place: ClassVar[Place] = "first"
    needs: ClassVar[tuple[Need, ...]] = ("query texts",)

    def check(self) -> None:
        _ = self.retriever

    @cached_property
    def retriever(self) -> Retriever:
        return adopt(self.thing, self.id)

    def apply(self, before: Contexts | None, setting: Setting) -> Contexts:
        asked = [Asked(query, text) for query, text in setting.queries.select("query", "text").iter_rows()]
        found = dict(self.retriever.retrieve(asked, setting.depth))
        notes = [*self._known(found, setting), *self._again(found)]
        rows = [
            ("run", query, rank, hit.passage, hit.score)
            for query, ranked in found.items()
            for rank, hit in enumerate(ranked.hits, 1)
        ]
        return Contexts.trusted(pl.DataFrame(rows, schema=Contexts.schema, orient="row"), tuple(notes))

    def _known(self, found: dict[str, Ranked], setting: Setting) -> list[str]:
        """Take in texts that came along, and say what does not agree with the collection."""
        texts: dict[str, str | None] = {}
        for query, ranked in found.items():
            for hit in ranked.hits:
                text = texts.get(hit.passage)
                if None not in (text, hit.text) and text != hit.text:
                    raise self._two(f"for the query {quoted(query, 24)} it", hit.passage)
                texts[hit.passage] = text if text is not None else hit.text
        own = dict(setting.collection.passages.filter(pl.col("passage").is_in(list(texts))).iter_rows())
        other = [each for each, text in texts.items() if each in own and text not in (None, own[each])]
        strange = []
        for passage, text in texts.items():
            if passage in own or (text is None and passage in setting.brought):
                continue
            if text is None:
                strange.append(passage)
            elif setting.brought.setdefault(passage, text) != text:
                raise self._two("it or another system", passage)
        if setting.known and strange and len(strange) == len(texts):
            raise self._stranger(strange, setting)
        notes = [self._note(other, "with another text than the collection's, which counts")] if other else []
        return notes + ([self._note(strange, "not in the collection")] if setting.known and strange else [])

    def _two(self, who: str, passage: str) -> InputError:
        return InputError(
            f"{self.retriever.name}: {who} brought another text for the passage {quoted(passage, 40)} than before",
            expected="one text for each id",
            remedy="name the field that holds the id: retrieval.called(…, id=…)",
        )

    def _stranger(self, strange: Sequence[str], setting: Setting) -> InputError:
        return InputError(
            f"none of {counted(len(strange), 'passage')} from {self.retriever.name} is in the collection, such as "
            f"{quoted(strange[0], 40)}",
            expected=f"ids as the collection has them, such as {quoted(setting.passages[0], 40)}",
            remedy='name the field that holds the id: retrieval.called(…, id=…); texts go as {"text": …}',
        )

    def _again(self, found: dict[str, Ranked]) -> list[str]:
        """A note on passages that came more than once for a query."""
        twice = [query for query, ranked in found.items() if ranked.again]
        number = sum(ranked.again for ranked in found.values())
        few = listed([quoted(query, 24) for query in twice], 3)
        words = f"{counted(number, 'hit')} left out that came again for the same query ({few})"
        return [f"{self.retriever.name}: {words}"] if twice else []

    def _note(self, passages: Sequence[str], words: str) -> str:
        few = listed([quoted(each, 24) for each in passages], 3)
        return f"{self.retriever.name}: {counted(len(passages), 'passage')} {words} ({few})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Called) and self.thing is other.thing and self.id == other.id

    def __hash__(self) -> int:
        return hash((id(self.thing), self.id))

    def __str__(self) -> str:
        # The address tells apart functions of one name; the step keeps its object, so nothing else comes to lie there.
        field = f", id={written(self.id)}" if self.id else ""
        return f"called({self.retriever.name} at {id(self.thing):x}{field})"
