"""``oracle`` and ``adversary``: contexts made from relevance labels, as good and as bad as a retriever could be.

A passage is relevant where its label is `level` or more. One whose judgment failed counts as not judged. Where the
collection has texts of passages, only passages with a text are shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ragworth.retrieval.contract import Need, Place, Step, StepContext, passages_by_query, unscored_contexts
from ragworth.retrieval.steps.random_sample import query_rng, sample_passages
from ragworth.tables import Contexts
from ragworth.tasks.options import option as named


@dataclass(frozen=True)
class LabelledStep(Step):
    """What both have in common."""

    level: float = named(1.0, "label from which on a passage is relevant")

    place: ClassVar[Place] = "either"
    needs: ClassVar[tuple[Need, ...]] = ("relevance",)
    scored: ClassVar[bool] = False

    def judged(self, setting: StepContext, query: str, *, relevant: bool) -> list[str]:
        """Passages judged relevant, or not: highest label first, then by id descending, as ties are broken always."""
        labels = setting.labels.get(query, {})
        found = [
            (label, passage)
            for passage, label in labels.items()
            if (label >= self.level) == relevant and (passage in setting.known or not setting.known)
        ]
        return [passage for _, passage in sorted(found, reverse=True)]

    def is_relevant(self, setting: StepContext, query: str, passage: str) -> bool:
        label = setting.labels.get(query, {}).get(passage)
        return label is not None and label >= self.level


@dataclass(frozen=True)
class Oracle(LabelledStep):
    """Relevant passages only: first those that were retrieved, in their order, then the others, highest label first.

    Standing first it gives all relevant passages of a query. A query without any gets nothing.
    """

    fill: bool = named(True, "add relevant passages that were not retrieved")

    kind: ClassVar[str] = "oracle"
    title: ClassVar[str] = "relevant passages only, by their labels"
    bounded: ClassVar[bool] = False

    def apply(self, before: Contexts | None, setting: StepContext) -> Contexts:
        retrieved = passages_by_query(before) if before is not None else {}
        made = []
        for query in setting.ids:
            found = [each for each in retrieved.get(query, []) if self.is_relevant(setting, query, each)]
            if self.fill or before is None:
                there = set(found)
                found += [each for each in self.judged(setting, query, relevant=True) if each not in there]
            made.append((query, found))
        return unscored_contexts(made)


@dataclass(frozen=True)
class Adversary(LabelledStep):
    """No relevant passages: of what was retrieved, everything that is not judged relevant, in its order.

    Standing first it gives the passages judged not relevant, highest label first, and then, drawn at random, ones
    that nobody judged.
    """

    seed: int = named(0, "another one draws other passages; the seed of the whole counts besides", low=0)

    kind: ClassVar[str] = "adversary"
    title: ClassVar[str] = "passages that are not relevant, by the labels"

    def apply(self, before: Contexts | None, setting: StepContext) -> Contexts:
        if before is None:
            return unscored_contexts((query, self.worst(setting, query)) for query in setting.ids)
        return unscored_contexts(
            (query, [each for each in passages if not self.is_relevant(setting, query, each)])
            for query, passages in passages_by_query(before).items()
        )

    def worst(self, setting: StepContext, query: str) -> list[str]:
        """As many passages that are not relevant as there should be."""
        found = self.judged(setting, query, relevant=False)[: setting.depth]
        labels = setting.labels.get(query, {})
        # As many more as are judged, so that enough are left when those are taken out.
        drawn = sample_passages(setting.passages, setting.depth + len(labels), query_rng(self, setting, query))
        found += [each for each in drawn if each not in labels]
        return found[: setting.depth]
