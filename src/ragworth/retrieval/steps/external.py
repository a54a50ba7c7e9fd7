"""``run`` and ``called``: results of another program, from its file, and those of a retriever in Python.

``called`` wraps a live object, so its written form can't be parsed again; it is only for people.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MethodType
from typing import Any, ClassVar

import polars as pl

from ragworth.core.errors import InputError, format_count, format_list, quote_short
from ragworth.data import Contexts
from ragworth.data.collection import text_id
from ragworth.data.ranking import MIN_DISTANCES
from ragworth.formats import Spec, read_contexts
from ragworth.interop.hits import RankedHits
from ragworth.interop.retrievers import Retriever, RetrieverQuery, adopt
from ragworth.retrieval.pipeline import Need, Place, Step, StepContext, argument, format_value

RISING_SHARE = 0.9
"""Share of the queries whose scores rise from which on these may be distances."""


@dataclass(frozen=True)
class Run(Step):
    """A run in any format of contexts: a TREC file, a table, JSON lines.

    It is read in full depth unless a cut follows. Queries that weren't requested are left out.
    """

    path: str = argument("", "file of one system, or FORMAT:FILE")

    kind: ClassVar[str] = "run"
    title: ClassVar[str] = "results of another program, from its file"
    place: ClassVar[Place] = "first"
    bounded: ClassVar[bool] = False

    def check(self) -> None:
        if not self.path:
            raise InputError("run lacks a file", expected='a path, such as run("runs/dense.txt")')

    def problems(self, context: StepContext) -> list[str]:
        return [f"run: there is no file {path}" for path in self.files(context) if not path.exists()]

    def files(self, context: StepContext) -> tuple[Path, ...]:
        spec = Spec.of(self.path)
        return () if spec.format == "ir_datasets" else ((context.folder or Path()) / spec.path,)

    def apply(self, before: Contexts | None, context: StepContext) -> Contexts:
        spec = Spec.of(self.path)
        (path,) = self.files(context) or (spec.path,)
        contexts = read_contexts(f"{spec.format}:{path}" if spec.format else path)
        if len(contexts.systems) > 1:
            raise InputError(
                f"the file has {format_count(len(contexts.systems), 'system')}",
                expected="one system",
                remedy="write a file for each, or read it and pass contexts.only(NAME) as a system",
                file=self.path,
            )
        return contexts


@dataclass(frozen=True, eq=False)
class Called(Step):
    """Passages from a function of the query's text, a PyTerrier transformer, a retriever of LangChain, LlamaIndex, ….

    Two of them are equal if they call the same object, or the same method of one. Texts that the collection doesn't
    have are remembered in `StepContext.returned_texts`; a text without an id is the passage with exactly this text. A
    query without words isn't sent and retrieves nothing.
    """

    thing: Any
    id: str = field(default="", kw_only=True)
    """Field of a result with a passage's id in the collection."""

    kind: ClassVar[str] = "called"
    title: ClassVar[str] = "results of a third-party retriever"
    place: ClassVar[Place] = "first"
    needs: ClassVar[tuple[Need, ...]] = ("query texts",)

    def check(self) -> None:
        _ = self.retriever

    @cached_property
    def retriever(self) -> Retriever:
        return adopt(self.thing, self.id)

    def apply(self, before: Contexts | None, context: StepContext) -> Contexts:
        queries = [RetrieverQuery(query, text) for query, text in context.queries.select("query", "text").iter_rows()]
        by_text = _passages_by_text(context)
        results = dict(
            self.retriever.retrieve(queries, context.depth, lambda text: by_text.get(text_id(text)) or text_id(text))
        )
        notes = [
            *self._record_texts(self._texts(results), by_text, context),
            *self._repeat_notes(results),
            *self._distance_notes(results),
        ]
        rows = [
            ("run", query, rank, hit.passage, hit.score)
            for query, ranked in results.items()
            for rank, hit in enumerate(ranked.hits, 1)
        ]
        frame = pl.DataFrame(rows, schema=Contexts.schema, orient="row")
        return Contexts.trusted(frame, tuple(f"{self.retriever.name}: {note}" for note in notes))

    def _texts(self, results: Mapping[str, RankedHits]) -> dict[str, str | None]:
        """Return the text of each passage, if returned."""
        texts: dict[str, str | None] = {}
        for query, ranked in results.items():
            for hit in ranked.hits:
                text = texts.get(hit.passage)
                if None not in (text, hit.text) and text != hit.text:
                    raise self._two_texts_error(f"for the query {quote_short(query, 24)} it", hit.passage)
                texts[hit.passage] = text if text is not None else hit.text
        return texts

    def _record_texts(
        self, texts: Mapping[str, str | None], by_text: Mapping[str, str], context: StepContext
    ) -> list[str]:
        """Remember returned texts, and note where they disagree with the collection."""
        own = dict(context.collection.passages.filter(pl.col("passage").is_in(list(texts))).iter_rows())
        unknown = {each: text for each, text in texts.items() if each not in own}
        same = {each: by_text[text_id(text)] for each, text in unknown.items() if text and text_id(text) in by_text}
        if context.passage_ids and unknown and len(unknown) == len(texts):
            raise self._unknown_ids_error(unknown, same, context)
        for passage, text in unknown.items():
            if text is not None and context.returned_texts.setdefault(passage, text) != text:
                raise self._two_texts_error("it or another system", passage)
        if not context.passage_ids:
            return []  # the returned texts are the passages
        notes = {
            "with another text than the collection's, which counts": [
                each for each, text in own.items() if texts[each] not in (None, text)
            ],
            "with a text that the collection has under another id": list(same),
            "not in the collection": [each for each in unknown if each not in same],
        }
        return [_note_passages(passages, words) for words, passages in notes.items() if passages]

    def _two_texts_error(self, who: str, passage: str) -> InputError:
        return InputError(
            f"{self.retriever.name}: {who} returned a second text for the passage {quote_short(passage, 40)}",
            expected="one text for each id",
            remedy="name the field that holds the id: retrieval.called(…, id=…)",
        )

    def _unknown_ids_error(
        self, unknown: Mapping[str, str | None], same: Mapping[str, str], context: StepContext
    ) -> InputError:
        """Return the error for a retriever none of whose ids is in the collection, with a remedy."""
        one = next(iter(same or unknown))
        text = f" ({quote_short(unknown[one], 40)})" if unknown[one] is not None else ""
        other = f"; the collection has its text as {quote_short(same[one], 40)}" if same else ""
        return InputError(
            f"none of {format_count(len(unknown), 'passage')} from {self.retriever.name} is in the collection, such as "
            f"{quote_short(one, 40)}{text}{other}",
            expected=f"ids as the collection has them, such as {quote_short(context.passages[0], 40)}",
            remedy="name the field that holds the id: retrieval.called(…, id=…); or return texts without ids from a "
            'function, {"text": …}: passages are then matched by text',
        )

    def _repeat_notes(self, results: Mapping[str, RankedHits]) -> list[str]:
        """Note passages that were returned more than once for a query."""
        repeats = {query: ranked.again for query, ranked in results.items() if ranked.again}
        few = format_list([quote_short(query, 24) for query in repeats], 3)
        number = format_count(sum(repeats.values()), "repeated hit")
        return [f"{number} for the same query left out ({few})"] if repeats else []

    def _distance_notes(self, results: Mapping[str, RankedHits]) -> list[str]:
        """Note scores that rise in the order returned, for nearly all queries: the lowest may be the best."""
        several = [ranked.trend for ranked in results.values() if len(ranked.hits) > 1]
        rising = several.count(1)
        if rising < max(MIN_DISTANCES, RISING_SHARE * len(several)):
            return []
        return [
            f"in {format_count(rising, 'query', 'queries')} of {len(several):,}, it returns hits with rising scores, "
            "but the highest score counts as the best; if these scores are distances, return them with a minus sign, "
            "or hits without scores in your order"
        ]

    @property
    def _address(self) -> str:
        """Address of its object, which the step keeps alive, so that nothing else can get it.

        A method is a new object whenever it is accessed, so it goes by its parts.
        """
        thing = self.thing
        parts = (thing.__self__, thing.__func__) if isinstance(thing, MethodType) else (thing,)
        return ".".join(f"{id(part):x}" for part in parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Called) and self._address == other._address and self.id == other.id

    def __hash__(self) -> int:
        return hash((self._address, self.id))

    def __str__(self) -> str:
        # The address distinguishes functions with the same name.
        identity = f", id={format_value(self.id)}" if self.id else ""
        return f"called({self.retriever.name} at {self._address}{identity})"


def _passages_by_text(context: StepContext) -> dict[str, str]:
    """Return the passages whose text no other passage has, by the id derived from the text, which is short."""
    alone = context.collection.passages.unique("text", keep="none")
    return {text_id(text): passage for passage, text in alone.select("passage", "text").iter_rows()}


def _note_passages(passages: Sequence[str], words: str) -> str:
    few = format_list([quote_short(each, 24) for each in passages], 3)
    return f"{format_count(len(passages), 'passage')} {words} ({few})"
