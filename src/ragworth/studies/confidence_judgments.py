"""What studies of the model's confidence share: how it is asked for, what counts as one, and which passages mislead."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import polars as pl

from ragworth.annotators.token_confidence import MEASURES
from ragworth.calls.programs import NoValue
from ragworth.collection import Collection
from ragworth.config import Workspace
from ragworth.studies.arms import Floats, matrix
from ragworth.studies.contract import Case
from ragworth.studies.pool import PassagePool
from ragworth.tables import OK
from ragworth.tasks.text_lookup import TextLookup
from ragworth.text_match.matching import match_answer, to_matchable

KIND = "confidence"
"""The kind of judgment that gives the measures."""

SPARE = 30
"""Passages drawn at random beyond those needed, because some may hold an accepted answer."""


def with_confidence(space: Workspace, *, each: bool = False) -> Workspace:
    """A workspace in which confidence is asked for as studies compare it: contexts of one query with each other.

    What the model would say without any context is then the same for all of them and is not asked. ``each``: every
    passage as a context of its own. Outcomes out of files are of other contexts, and play no part.
    """
    task = space.judgments[KIND]
    settings = {**task.settings, "each": each, "relative": False}
    return replace(space, judgments={**space.judgments, KIND: replace(task, settings=settings)}, graded=())


def confidences_of(case: Case, systems: list[str], queries: list[str]) -> dict[str, Floats]:
    """The confidence in each context, queries × systems, by measure; NaN where there is none."""
    assert case.results.outcomes is not None
    good = case.results.outcomes.frame.filter(pl.col("status") == OK)
    known = set(good["aspect"].unique())
    return {name: matrix(good.filter(pl.col("aspect") == name), systems, queries) for name in MEASURES if name in known}


def gold(pool: PassagePool, query: str) -> str | None:
    """The relevant passage: of several the one with the highest label, of equals the one that was found first."""
    known = [each for each in pool.relevant(query) if pool.has_text(each)]
    labels = pool.labels.get(query, {})
    return max(known, key=lambda each: labels[each], default=None)


def unsuited_reason(pool: PassagePool, query: str) -> str:
    """Why nothing can be made of a query: no accepted answers, or no relevant passage; empty where something can."""
    if query in pool.without_answers:
        return "no accepted answers"
    return "" if gold(pool, query) is not None else "no relevant passage"


@dataclass
class DistractorPool:
    """Passages that cannot give the answer away: those in which an accepted one is found by its words are passed over.

    ``held`` counts how many were.
    """

    collection: Collection
    held: int = 0
    _texts: TextLookup = field(init=False)

    def __post_init__(self) -> None:
        self._texts = TextLookup(self.collection)

    def first(self, query: str, passages: Iterable[str], number: int) -> list[str]:
        """The first of the passages that have a text and no accepted answer of the query in it."""
        found: list[str] = []
        for each in passages:
            if len(found) == number:
                break
            holds = self._holds(query, each)
            self.held += holds is True
            if holds is False:
                found.append(each)
        return found

    def _holds(self, query: str, passage: str) -> bool | None:
        """None where there is no text to look at."""
        try:
            text = to_matchable(self._texts.passage(passage))
        except NoValue:
            return None
        return any(match_answer(text, answer) is not None for answer in self._texts.known_answers(query))
