"""What one retriever found for each query, as candidates for contexts: relevant, not relevant, and random passages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from random import Random

import polars as pl

from ragworth.calls.programs import NoValue
from ragworth.collection import Collection
from ragworth.errors import InputError, format_list
from ragworth.retrieval.steps.random_sample import sample_passages
from ragworth.tasks.text_lookup import TextLookup
from ragworth.text_match.matching import match_answer, to_matchable


class Unusable(Exception):  # noqa: N818 (it is counted, not reported)
    """Why no context can be made for a query."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """Passages that one retriever found for each query, with their labels.

    Attributes
    ----------
    found: for each query the first ``depth`` passages that one retriever found, in its order.
    labels: relevance by query and passage; a passage that nobody judged isn't relevant.
    """

    collection: Collection
    found: dict[str, list[str]]
    labels: dict[str, dict[str, float]]
    level: float = 1.0
    seed: int = 0
    answered: frozenset[str] | None = None
    """Queries with accepted answers; None if answers aren't needed."""
    held: Counter[str] = field(default_factory=Counter)
    """How many passages were passed over because they hold an accepted answer, by arm."""

    @cached_property
    def passages(self) -> pl.Series:
        """All passages of the collection, in the order of ids."""
        return self.collection.passages["passage"].sort()

    def has_text(self, passage: str) -> bool:
        return passage in self._known

    def is_relevant(self, query: str, passage: str) -> bool:
        label = self.labels.get(query, {}).get(passage)
        return label is not None and label >= self.level

    def retrieved(self, query: str) -> list[str]:
        """Relevant passages that were found, in their order."""
        return [each for each in self.found[query] if self.is_relevant(query, each)]

    def relevant(self, query: str) -> list[str]:
        """Relevant passages: those that were found, in their order, then others with a text, highest label first."""
        first, labels = self.retrieved(query), self.labels.get(query, {})
        rest = sorted((label, each) for each, label in labels.items() if label >= self.level and each in self._known)
        return [*first, *(each for _, each in reversed(rest) if each not in first)]

    def first_relevant(self, query: str) -> str:
        """The relevant passage that was found first; if none was found, the one with the highest label."""
        return self._some_relevant(query)[0]

    def gold(self, query: str) -> str:
        """The relevant passage with a text that has the highest label; of equals the one found first."""
        known = self._some_relevant(query, with_text=True)
        return max(known, key=lambda each: self.labels[query][each])

    def _some_relevant(self, query: str, *, with_text: bool = False) -> list[str]:
        self.check_answered(query)
        known = [each for each in self.relevant(query) if not with_text or self.has_text(each)]
        if not known:
            raise Unusable("no relevant passage")
        return known

    def others(self, query: str) -> list[str]:
        """Passages that were found and aren't relevant, in their order."""
        return [each for each in self.found[query] if not self.is_relevant(query, each)]

    def random(self, query: str, number: int, rng: Random) -> list[str]:
        """Passages of the collection at random: none that was found for the query, and none that has a label for it."""
        taken = {*self.found[query], *self.labels.get(query, {})}
        drawn = sample_passages(self.passages, number + len(taken), rng)
        return [each for each in drawn if each not in taken][:number]

    def without_answer(self, arm: str, query: str, passages: Sequence[str], number: int) -> list[str]:
        """The first passages with a text in which no accepted answer is found; those that hold one are counted."""
        found: list[str] = []
        for each in passages:
            if len(found) == number:
                break
            holds = self._holds_answer(query, each)
            self.held[arm] += holds is True
            if holds is False:
                found.append(each)
        return found

    def check_answered(self, query: str) -> None:
        if self.answered is not None and query not in self.answered:
            raise Unusable("no accepted answers")

    def rng(self, purpose: str, query: str) -> Random:
        """Random numbers of a query for one purpose: another query, or another purpose, changes nothing."""
        return Random(f"{purpose} {self.seed} {query}".encode("utf-8", "surrogatepass"))

    def _holds_answer(self, query: str, passage: str) -> bool | None:
        """None if there is no text to look at."""
        try:
            text = to_matchable(self._texts.passage(passage))
        except NoValue:
            return None
        return any(match_answer(text, answer) is not None for answer in self._texts.known_answers(query))

    @cached_property
    def _texts(self) -> TextLookup:
        return TextLookup(self.collection)

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.passages)


def choose_retriever(known: Sequence[str], wanted: str | None, is_control: Callable[[str], bool], file: str) -> str:
    """The system whose passages are the candidates: the one that is named, or the first that isn't a control."""
    if wanted is not None:
        if wanted not in known:
            raise InputError(f"there is no system {wanted!r}", file=file, expected=format_list(list(known), 12))
        return wanted
    real = [name for name in known if not is_control(name)]
    if not real:
        found = "all systems are controls (random, oracle, reversed, …), so there are no retrieved candidates"
        remedy = "add a retriever under [systems], or name one of them: --retriever"
        raise InputError(found, file=file, remedy=remedy)
    return real[0]
