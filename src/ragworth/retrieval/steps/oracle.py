"""``oracle`` and ``adversary``: contexts from relevance labels, as good and as bad as a retriever could be.

A passage is relevant if its label is at least `level`. A failed judgment counts as unjudged. If the collection has
texts of passages, only passages with a text are shown. An unlabelled passage that copies a relevant one counts as
neither relevant nor irrelevant (`ragworth.retrieval.copies`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from ragworth.core.errors import format_count, format_list, quote_short
from ragworth.data import Contexts
from ragworth.judging.contract import option as named
from ragworth.retrieval.contract import Need, Place, Step, StepContext, passages_by_query, unscored_contexts
from ragworth.retrieval.copies import find_copies
from ragworth.retrieval.steps.random_sample import query_rng, sample_passages

SPARE = 30
"""Passages drawn at random beyond those needed, because some may copy a relevant one."""


def describe_queries(reasons: Mapping[str, Sequence[str]]) -> str:
    """Count and list queries by reason."""
    return "; ".join(
        f"{reason}: {format_count(len(queries), 'query', 'queries')} "
        f"({format_list([quote_short(each, 24) for each in queries], 3)})"
        for reason, queries in reasons.items()
    )


@dataclass(frozen=True)
class LabelledStep(Step):
    """Base class of steps that use labels."""

    level: float = named(1.0, "lowest label of a relevant passage")

    place: ClassVar[Place] = "either"
    needs: ClassVar[tuple[Need, ...]] = ("relevance",)
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

    def retrieved(self, before: Contexts | None, context: StepContext) -> dict[str, list[str]]:
        """Retrieved passages of each query, in order, without blank ones."""
        found = passages_by_query(before) if before is not None else {}
        blank = context.blank_ids | {each for each, text in context.returned_texts.items() if not text.strip()}
        return {query: [each for each in ids if each not in blank] for query, ids in found.items()}

    def copies(self, candidates: Mapping[str, Iterable[str]], context: StepContext) -> dict[str, set[str]]:
        """Unlabelled candidates of each query that copy a relevant passage."""
        relevant = {query: self.judged(context, query, relevant=True) for query in candidates}
        unlabelled = {
            query: [each for each in passages if each not in context.labels[query]]
            for query, passages in candidates.items()
            if relevant[query]
        }
        ids = {each for query, passages in unlabelled.items() for each in (*passages, *relevant[query])}
        texts = dict(
            context.texts.passages.filter(pl.col("passage").is_in(list(ids))).select("passage", "text").iter_rows()
        )
        found = {
            query: find_copies(passages, relevant[query], lambda each: texts.get(each, ""))
            for query, passages in unlabelled.items()
        }
        return {query: some for query, some in found.items() if some}

    def copy_notes(self, copies: Mapping[str, set[str]]) -> tuple[str, ...]:
        """How many passages were left out as copies."""
        if not copies:
            return ()
        number = format_count(sum(map(len, copies.values())), "unlabelled passage")
        reason = f"{number} with the text of a relevant one, or nearly so"
        return (f"{self} leaves out {describe_queries({reason: list(copies)})}",)


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
        retrieved = self.retrieved(before, context)
        rows = []
        for query in context.ids:
            found = [each for each in retrieved.get(query, []) if self.is_relevant(context, query, each)]
            if self.fill or before is None:
                there = set(found)
                found += [each for each in self.judged(context, query, relevant=True) if each not in there]
            rows.append((query, found))
        contexts = unscored_contexts(rows)
        contexts.notes = self._notes(context)
        return contexts

    def _notes(self, context: StepContext) -> tuple[str, ...]:
        """How many relevant passages can't be shown because they have no text."""
        if not context.passage_ids:
            return ()
        lacking = {
            query: sum(each not in context.passage_ids for each in labels if self.is_relevant(context, query, each))
            for query in context.ids
            if (labels := context.labels.get(query))
        }
        without = [query for query, number in lacking.items() if number]
        words = f"{format_count(sum(lacking.values()), 'relevant passage')} without a text"
        return (f"{self} leaves out {describe_queries({words: without})}",) if without else ()


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
            candidates = {query: self._worst(context, query) for query in context.ids}
        else:
            candidates = {
                query: [each for each in passages if not self.is_relevant(context, query, each)]
                for query, passages in self.retrieved(before, context).items()
            }
        copies = self.copies(candidates, context)
        kept = {
            query: [each for each in passages if each not in copies.get(query, ())]
            for query, passages in candidates.items()
        }
        depth = context.depth if before is None else None
        contexts = unscored_contexts((query, passages[:depth]) for query, passages in kept.items())
        contexts.notes = self.copy_notes(copies)
        return contexts

    def _worst(self, context: StepContext, query: str) -> list[str]:
        """Irrelevant passages: as many as the depth requires, and some to spare."""
        found = self.judged(context, query, relevant=False)
        labels = context.labels.get(query, {})
        # As many more as are judged, so that enough remain after removing those.
        number = context.depth + len(labels) + SPARE
        drawn = sample_passages(context.passages, number, query_rng(self, context, query))
        return [*found, *(each for each in drawn if each not in labels)]
