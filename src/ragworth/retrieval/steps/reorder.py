"""``random``, ``reversed`` and ``shuffled``: random passages, the same passages in another order; and random numbers.

Each query has its own generator, seeded by the kind of step, the seeds and the query's id, so adding queries doesn't
change the others. Python guarantees the same numbers for the same seed in all versions.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from ragworth.data import Contexts
from ragworth.judging.contract import option as named
from ragworth.retrieval.pipeline import Need, Place, Step, StepContext, passages_by_query, unscored_contexts


def query_rng(step: Step, context: StepContext, query: str) -> random.Random:
    """Return the random generator of a step for a query."""
    seed = getattr(step, "seed", 0)
    return random.Random(f"{step.kind} {context.seed} {seed} {query}".encode("utf-8", "surrogatepass"))


def sample_passages(passages: pl.Series, k: int, rng: random.Random) -> list[str]:
    """Draw ``k`` passages uniformly; a shorter draw is the beginning of a longer one."""
    swapped: dict[int, int] = {}
    picked = []
    total = len(passages)
    for at in range(min(k, total)):
        other = at + int(rng.random() * (total - at))
        picked.append(swapped.get(other, other))
        swapped[other] = swapped.get(at, at)
    return passages.gather(picked).to_list()


@dataclass(frozen=True)
class Random(Step):
    """Random passages of the collection, for each query separately."""

    seed: int = named(0, "changes the random passages, in addition to the global seed", low=0)

    kind: ClassVar[str] = "random"
    control: ClassVar[bool] = True
    title: ClassVar[str] = "random passages of the collection"
    place: ClassVar[Place] = "first"
    needs: ClassVar[tuple[Need, ...]] = ("passages",)

    def apply(self, before: Contexts | None, context: StepContext) -> Contexts:
        return unscored_contexts(
            (query, sample_passages(context.passages, context.depth, query_rng(self, context, query)))
            for query in context.ids
        )


@dataclass(frozen=True)
class Reversed(Step):
    """Retrieved passages in reverse order. Their scores, which no longer match the order, are dropped."""

    kind: ClassVar[str] = "reversed"
    control: ClassVar[bool] = True
    title: ClassVar[str] = "retrieved passages in reverse order"
    place: ClassVar[Place] = "behind"

    def apply(self, before: Contexts | None, context: StepContext) -> Contexts:
        assert before is not None
        return unscored_contexts((query, passages[::-1]) for query, passages in passages_by_query(before).items())


@dataclass(frozen=True)
class Shuffled(Step):
    """Retrieved passages in a random order, for each query separately, so that other queries change nothing."""

    seed: int = named(0, "changes the random order, in addition to the global seed", low=0)

    kind: ClassVar[str] = "shuffled"
    control: ClassVar[bool] = True
    title: ClassVar[str] = "retrieved passages in random order"
    place: ClassVar[Place] = "behind"

    def apply(self, before: Contexts | None, context: StepContext) -> Contexts:
        assert before is not None
        # Starting from the order of ids, so that only the set of passages counts, not its order.
        return unscored_contexts(
            (query, sample_passages(pl.Series(sorted(passages)), len(passages), query_rng(self, context, query)))
            for query, passages in passages_by_query(before).items()
        )
