"""Look up answers by system, query and repeat, with the passages each system showed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from ragworth.calls.programs import NoValue
from ragworth.errors import format_count
from ragworth.generation.writer import NO_CONTEXT_SYSTEM, ORACLE_SYSTEM
from ragworth.tables import ANSWERED_STATUSES, OK, Answers, Contexts
from ragworth.tasks.text_lookup import TextLookup


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

    def __init__(self, answers: Answers, contexts: Contexts | None = None) -> None:
        self.answers = [
            Answer(*row)
            for row in answers.frame.select("system", "query", "repeat", "text", "status", "source").iter_rows()
        ]
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
    def closed_book(self) -> frozenset[str]:
        """Systems that are known to show nothing for any query."""
        shown = {system for (system, _), passages in self._shown.items() if passages}
        return frozenset(system for system, _ in self._shown if system not in shown)

    @cached_property
    def _shown(self) -> Mapping[tuple[str, str], tuple[str, ...]]:
        found: dict[tuple[str, str], list[str]] = {}
        if self.contexts is not None:
            found |= {pair: [] for pair in self.contexts.empty}
            for system, query, passage in self.contexts.frame.select("system", "query", "passage").iter_rows():
                found.setdefault((system, query), []).append(passage)
        return {key: tuple(each) for key, each in found.items()}


class ContextSupport:
    """Whether the context of an answer had a relevant passage."""

    def __init__(self, texts: TextLookup, book: AnswerBook, level: float) -> None:
        self.book, self.level = book, level
        self.known = texts.collection.relevance is not None
        relevance = texts.collection.relevance
        self._judged: dict[str, dict[str, float | None]] = {}
        if relevance is not None:
            frame = relevance.of("relevance").select("query", "passage", "value", "status")
            for query, passage, value, status in frame.iter_rows():
                self._judged.setdefault(query, {})[passage] = value if status == OK else None

    def notes(self, answers: Sequence[Answer]) -> list[str]:
        """Note the number of answers with unknown contexts, if that matters."""
        written = [each for each in answers if each.status in ANSWERED_STATUSES]
        lost = sum(
            each.system not in (NO_CONTEXT_SYSTEM, ORACLE_SYSTEM) and self.book.shown(each.system, each.query) is None
            for each in written
        )
        if not lost or not self.known:
            return []
        number, them = f"{lost:,} of {format_count(len(written), 'answer')}", "it" if lost == 1 else "them"
        return [f"what was shown is not known for {number}; partial correctness not applied to {them}"]

    def relevant(self, answer: Answer) -> bool | None:
        """None if unknown, or meaningless because the answer had no context, as in a closed-book system.

        A passage that nobody judged is not relevant, as in all metrics; where judging one failed and no other is
        relevant, there is no telling (`NoValue`).
        """
        judged = self._judged.get(answer.query)
        shown = self.book.shown(answer.system, answer.query)
        if judged is None or shown is None or answer.system in (NO_CONTEXT_SYSTEM, *self.book.closed_book):
            return None if answer.system != ORACLE_SYSTEM else True
        values = [judged.get(passage, 0.0) for passage in shown]
        if any(value is not None and value >= self.level for value in values):
            return True
        if None in values:
            raise NoValue("unjudged", "whether a passage that was shown is relevant could not be judged")
        return False
