"""What contexts can be made of: for each query the passages that systems found, with their labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import zip_longest
from random import Random

import polars as pl

from ragworth.collection import Collection
from ragworth.evaluation.inputs import EvaluationInputs
from ragworth.retrieval.contract import unscored_contexts
from ragworth.tables import Contexts


def interleaved(lists: Sequence[Sequence[str]]) -> list[str]:
    """The first of each list, then the second of each, …, each passage once."""
    return list(dict.fromkeys(each for row in zip_longest(*lists) for each in row if each is not None))


@dataclass(frozen=True, eq=False)
class PassagePool:
    """Passages to make contexts of.

    Attributes
    ----------
    found: for each query the first ``depth`` passages that the workspace's systems found, in their order (of several
        systems the first of each, then the second of each, …).
    labels: relevance by query and passage; a passage that nobody judged is not relevant.
    level: lowest label that is relevant.
    """

    collection: Collection
    found: dict[str, list[str]]
    labels: dict[str, dict[str, float]]
    level: float = 1.0
    seed: int = 0
    without_answers: frozenset[str] = field(default=frozenset())
    """Queries that have no accepted answers."""

    @classmethod
    def of(cls, material: EvaluationInputs, contexts: Contexts, depth: int, level: float = 1.0) -> PassagePool:
        setting = material.setting
        lists: dict[str, dict[str, list[str]]] = {query: {} for query in setting.ids}
        rows = contexts.frame.sort("rank", maintain_order=True).select("query", "system", "passage")
        for query, system, passage in rows.iter_rows():
            lists[query].setdefault(system, []).append(passage)
        found = {query: interleaved(list(some.values()))[:depth] for query, some in lists.items()}
        known = set(material.collection.answers["query"])
        without = frozenset(query for query in setting.ids if query not in known)
        return cls(material.collection, found, setting.labels, level, material.workspace.seed, without)

    @property
    def queries(self) -> list[str]:
        return list(self.found)

    @cached_property
    def passages(self) -> pl.Series:
        """All passages of the collection, in the order of ids."""
        return self.collection.passages["passage"].sort()

    def has_text(self, passage: str) -> bool:
        return passage in self._known

    def is_relevant(self, query: str, passage: str) -> bool:
        label = self.labels.get(query, {}).get(passage)
        return label is not None and label >= self.level

    def relevant(self, query: str, *, fill: bool = True) -> list[str]:
        """Relevant passages: those that were found, in their order, then (``fill``) others, highest label first."""
        first = [each for each in self.found[query] if self.is_relevant(query, each)]
        if not fill:
            return first
        labels, known = self.labels.get(query, {}), self._known
        rest = sorted(
            ((label, each) for each, label in labels.items() if label >= self.level and each in known), reverse=True
        )
        return [*first, *(each for _, each in sorted(rest, reverse=True) if each not in first)]

    def others(self, query: str) -> list[str]:
        """Passages that were found and are not relevant, in their order."""
        return [each for each in self.found[query] if not self.is_relevant(query, each)]

    def random(self, query: str, number: int, chance: Random) -> list[str]:
        """Passages of the collection at random: none that was found for the query, and none that has a label for it."""
        from ragworth.retrieval.steps.random_sample import sample_passages

        taken = {*self.found[query], *self.labels.get(query, {})}
        drawn = sample_passages(self.passages, number + len(taken), chance)
        return [each for each in drawn if each not in taken][:number]

    def dice(self, what: str, query: str) -> Random:
        """Dice of a query for one purpose: another query, or another purpose, changes nothing."""
        return Random(f"{what} {self.seed} {query}".encode("utf-8", "surrogatepass"))

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.passages)


def contexts_from_lists(contexts: dict[str, dict[str, list[str]]]) -> Contexts:
    """Contexts by system and query: the passages in the order shown."""
    tables = []
    for system, rows in contexts.items():
        table = unscored_contexts(rows.items()).renamed(system)
        table.empty = frozenset((system, query) for query, shown in rows.items() if not shown)
        tables.append(table)
    return Contexts.concat(tables)
