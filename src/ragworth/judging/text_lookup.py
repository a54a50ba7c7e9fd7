"""Look up texts and answers by id, or say why there is none; select some of the queries."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Protocol, TypeVar

import polars as pl

from ragworth.calls.programs import NoValue
from ragworth.core.errors import InputError
from ragworth.data import ANSWERED_STATUSES, OK, Answers, Contexts
from ragworth.data.collection import Collection
from ragworth.data.conversations import asked_question, turns_of


class HasQuery(Protocol):
    """Something that belongs to a query."""

    @property
    def query(self) -> str: ...


T = TypeVar("T", bound=HasQuery)
V = TypeVar("V", bound=Sequence[Any])


def check_positive_count(name: str, value: Any) -> None:
    """Reject a count that isn't a positive whole number, or None for all."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise InputError(f"{name} is {value!r}", expected="a whole number, 1 or more, or None for all")


def sample_queries(
    queries: Iterable[str], limit: int | None = None, sample: int | None = None, seed: int = 0
) -> list[str]:
    """Return the first ``limit`` distinct queries, or a random ``sample`` of them, in their order."""
    check_positive_count("limit", limit)
    check_positive_count("sample", sample)
    every = list(dict.fromkeys(queries))
    if sample is not None and sample < len(every):
        lucky = set(random.Random(seed).sample(every, sample))
        every = [query for query in every if query in lucky]
    return every[:limit] if limit is not None else every


def sample_by_hash(queries: Iterable[str], sample: int, seed: int) -> set[str]:
    """So many of the queries, by a hash of each: a larger sample holds a smaller one, so that nothing is paid twice."""

    def place(query: str) -> bytes:
        return hashlib.sha256(f"{seed}\n{query}".encode()).digest()

    return set(sorted(set(queries), key=place)[:sample])


def sample_by_query(items: Sequence[T], limit: int | None, sample: int | None, seed: int = 0) -> list[T]:
    """Return the items of the first ``limit`` queries, or of a random ``sample`` of them."""
    kept = set(sample_queries((each.query for each in items), limit, sample, seed))
    return [each for each in items if each.query in kept]


NO_QUERY = "no-query-text"
NO_REWRITE = "no-rewrite"
NO_PASSAGE = "no-passage-text"
EMPTY_PASSAGE = "empty-passage"
NO_ANSWERS = "no-accepted-answers"
NO_SUBQUESTIONS = "no-subquestions"
NO_SUBQUESTION = "empty-subquestion"
NO_RELEVANT = "no-relevant"
UNKNOWN_CONTEXT = "unknown-context"
"""Status of an answer for which nobody says what was shown."""


class Subquestion(NamedTuple):
    id: str
    text: str


def _present(value: V, status: str, reason: str) -> V:
    """Return a text or tuple that isn't blank; raises `NoValue` for one that is."""
    if not (value.strip() if isinstance(value, str) else value):
        raise NoValue(status, reason)
    return value


class TextLookup:
    """The texts of a collection by id. A missing text raises `NoValue` with its own status."""

    def __init__(self, collection: Collection) -> None:
        self.collection = collection

    def query(self, query: str) -> str:
        """The question, in a conversation an `AskedQuestion` with its history."""
        if self._turns.get(query, "") is None:
            raise NoValue(NO_REWRITE, f"there is no human rewrite of the turn {query!r}")
        return _present(self.known_query(query), NO_QUERY, f"the collection has no text for the query {query!r}")

    def known_query(self, query: str) -> str:
        """The text of a query, empty if there is none."""
        return self._queries.get(query) or ""

    def passage(self, passage: str) -> str:
        text = self._passages.get(passage)
        if text is None:
            raise NoValue(NO_PASSAGE, f"the collection has no text for the passage {passage!r}")
        return _present(text, EMPTY_PASSAGE, f"the text of the passage {passage!r} is empty")

    def known_passage(self, passage: str) -> str:
        """The text of a passage, empty if there is none."""
        return self._passages.get(passage, "")

    def is_empty(self, passage: str) -> bool:
        """Whether the text of a passage is known and empty."""
        text = self._passages.get(passage)
        return text is not None and not text.strip()

    def answers(self, query: str) -> tuple[str, ...]:
        """Return the accepted answers of a query; raises if there are none."""
        return _present(self.known_answers(query), NO_ANSWERS, f"no answer is accepted for the query {query!r}")

    def known_answers(self, query: str) -> tuple[str, ...]:
        """Return the accepted answers of a query, without blank ones."""
        return self._answers.get(query, ())

    def subquestion(self, query: str, name: str) -> str:
        text = next((each.text for each in self.subquestions(query) if each.id == name), "")
        return _present(text, NO_SUBQUESTION, f"the sub-question {name!r} of the query {query!r} has no text")

    def subquestions(self, query: str) -> tuple[Subquestion, ...]:
        found = self._subquestions.get(query, ())
        return _present(found, NO_SUBQUESTIONS, f"there are no sub-questions of the query {query!r}")

    def relevant(self, query: str, level: float = 1.0) -> tuple[str, ...]:
        """Return the ids of passages judged relevant at a level or above, best first."""
        found = tuple(passage for passage, value in self._relevance.get(query, ()) if value >= level)
        return _present(
            found, NO_RELEVANT, f"no passage is judged relevant (at least {level:g}) to the query {query!r}"
        )

    @cached_property
    def _queries(self) -> Mapping[str, str]:
        texts: dict[str, str | None] = {**dict(self.collection.queries.iter_rows()), **self._turns}
        return {query: text for query, text in texts.items() if text is not None}

    @cached_property
    def _turns(self) -> Mapping[str, str | None]:
        """What is asked in each turn; None without the human rewrite that would be asked."""
        turns = turns_of(self.collection) if self.collection.turns.height else []
        return {turn.query: asked_question(turn, self.collection.turn_form) for turn in turns}

    @cached_property
    def _passages(self) -> Mapping[str, str]:
        return dict(self.collection.passages.select("passage", "text").iter_rows())

    @cached_property
    def _answers(self) -> Mapping[str, tuple[str, ...]]:
        found: dict[str, list[str]] = {}
        for query, text in self.collection.answers.iter_rows():
            if text.strip():
                found.setdefault(query, []).append(text)
        return {query: tuple(texts) for query, texts in found.items()}

    @cached_property
    def _subquestions(self) -> Mapping[str, tuple[Subquestion, ...]]:
        found: dict[str, list[Subquestion]] = {}
        for query, name, text in self.collection.subquestions.iter_rows():
            found.setdefault(query, []).append(Subquestion(name, text))
        return {query: tuple(each) for query, each in found.items()}

    @cached_property
    def _relevance(self) -> Mapping[str, list[tuple[str, float]]]:
        found: dict[str, list[tuple[str, float]]] = {}
        if self.collection.relevance is not None:
            judged = self.collection.relevance.of("relevance").filter(pl.col("status") == OK)
            for query, passage, value in judged.select("query", "passage", "value").iter_rows():
                found.setdefault(query, []).append((passage, value))
        return {query: sorted(pairs, key=lambda pair: -pair[1]) for query, pairs in found.items()}


class Answer(NamedTuple):
    """One answer of the table."""

    system: str
    query: str
    repeat: int
    text: str | None
    status: str
    source: str

    @property
    def words(self) -> str:
        """Return the text; raises `NoValue` with the answer's status if there is none."""
        if self.text is None or self.status not in ANSWERED_STATUSES:
            raise NoValue(self.status, "there is no answer to grade", self.text or None)
        return self.text


class AnswerBook:
    """All answers. ``contexts``: the passages that each system showed, if known."""

    def __init__(self, answers: Answers | None = None, contexts: Contexts | None = None) -> None:
        rows = [] if answers is None else answers.frame.select(Answer._fields).iter_rows()
        self.answers = [Answer(*row) for row in rows]
        self.contexts = contexts
        self._places: dict[tuple[str, str], dict[int, Answer]] = {}
        for each in self.answers:
            self._places.setdefault((each.system, each.query), {})[each.repeat] = each

    def partner(self, system: str, query: str, repeat: int) -> Answer | None:
        """Return the same repeat of another system's answer, or its only answer."""
        found = self._places.get((system, query), {})
        return next(iter(found.values())) if len(found) == 1 else found.get(repeat)

    def shown(self, system: str, query: str) -> tuple[str, ...] | None:
        """Return the passages that a system showed for a query; empty if it showed nothing.

        None where nothing is known, also of a system that is known to have shown something for other queries.
        """
        return self._shown.get((system, query))

    @cached_property
    def _shown(self) -> Mapping[tuple[str, str], tuple[str, ...]]:
        found: dict[tuple[str, str], list[str]] = {}
        if self.contexts is not None:
            found |= {pair: [] for pair in self.contexts.empty}
            for system, query, passage in self.contexts.frame.select("system", "query", "passage").iter_rows():
                found.setdefault((system, query), []).append(passage)
        return {key: tuple(each) for key, each in found.items()}
