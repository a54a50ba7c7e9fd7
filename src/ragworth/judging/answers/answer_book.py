"""Look up answers by system, query and repeat, with the passages each system showed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

from ragworth.calls.programs import NoValue
from ragworth.data import ANSWERED_STATUSES, Answers, Contexts


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
    def _shown(self) -> Mapping[tuple[str, str], tuple[str, ...]]:
        found: dict[tuple[str, str], list[str]] = {}
        if self.contexts is not None:
            found |= {pair: [] for pair in self.contexts.empty}
            for system, query, passage in self.contexts.frame.select("system", "query", "passage").iter_rows():
                found.setdefault((system, query), []).append(passage)
        return {key: tuple(each) for key, each in found.items()}
