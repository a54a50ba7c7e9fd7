"""``oracle`` and ``adversary``: contexts from relevance labels, as good and as bad as a retriever could be.

A passage is relevant if its label is at least `level`. A failed judgment counts as unjudged. If the collection has
texts of passages, only passages with a text are shown.
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
    """Base class of steps that use labels."""

    level: float = named(1.0, "lowest label of a relevant passage")

    place: ClassVar[Place] = "either"
    needs: ClassVar[tuple[Need, ...]] = ("relevance",)
    scored: ClassVar[bool] = False
    control: ClassVar[bool] = True

    def judged(self, context: StepContext, query: str, *, relevant: bool) -> list[str]:
        """Passages judged relevant, or irrelevant: highest label first, ties by id descending."""
        labels = context.labels.get(query, {})
        found = [
            (label, passage)
            for passage, label in labels.items()
            if (label >= self.level) == relevant and (passage in context.passage_ids or not context.passage_ids)
        ]
        return [passage for _, passage in sorted(found, reverse=True)]

    def is_relevant(self, context: StepContext, query: str, passage: str) -> bool:
        label = context.labels.get(query, {}).get(passage)
        return label is not None and label >= self.level


@dataclass(frozen=True)
class Oracle(LabelledStep):
    """Only relevant passages: first those retrieved, in order, then the others, highest label first.

    As a first step, it returns all relevant passages of a query. A query without any gets nothing.
    """

    fill: bool = named(True, "add relevant passages that were not retrieved")

    kind: ClassVar[str] = "oracle"
    title: ClassVar[str] = "only relevant passages, by their labels"
    bounded: ClassVar[bool] = False

    def apply(self, before: Contexts | None, context: StepContext) -> Contexts:
        retrieved = passages_by_query(before) if before is not None else {}
        rows = []
        for query in context.ids:
            found = [each for each in retrieved.get(query, []) if self.is_relevant(context, query, each)]
            if self.fill or before is None:
                there = set(found)
                found += [each for each in self.judged(context, query, relevant=True) if each not in there]
            rows.append((query, found))
        return unscored_contexts(rows)


@dataclass(frozen=True)
class Adversary(LabelledStep):
    """No relevant passages: everything retrieved that isn't judged relevant, in order.

    As a first step, it returns the passages judged irrelevant, highest label first, then random unjudged ones.
    """

    seed: int = named(0, "changes the random passages, in addition to the global seed", low=0)

    kind: ClassVar[str] = "adversary"
    title: ClassVar[str] = "only irrelevant passages, by their labels"

    def apply(self, before: Contexts | None, context: StepContext) -> Contexts:
        if before is None:
            return unscored_contexts((query, self.worst(context, query)) for query in context.ids)
        return unscored_contexts(
            (query, [each for each in passages if not self.is_relevant(context, query, each)])
            for query, passages in passages_by_query(before).items()
        )

    def worst(self, context: StepContext, query: str) -> list[str]:
        """As many irrelevant passages as the depth requires."""
        found = self.judged(context, query, relevant=False)[: context.depth]
        labels = context.labels.get(query, {})
        # As many more as are judged, so that enough remain after removing those.
        drawn = sample_passages(context.passages, context.depth + len(labels), query_rng(self, context, query))
        found += [each for each in drawn if each not in labels]
        return found[: context.depth]
