"""``random``: random passages, and the random numbers of all steps.

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
from ragworth.retrieval.contract import Need, Place, Step, StepContext, unscored_contexts


def query_rng(step: Step, context: StepContext, query: str) -> random.Random:
    """The random generator of a step for a query."""
    seed = getattr(step, "seed", 0)
    return random.Random(f"{step.kind} {context.seed} {seed} {query}".encode("utf-8", "surrogatepass"))


def sample_passages(passages: pl.Series, k: int, chance: random.Random) -> list[str]:
    """Draw ``k`` passages uniformly; a shorter draw is the beginning of a longer one."""
    swapped: dict[int, int] = {}
    picked = []
    total = len(passages)
    for at in range(min(k, total)):
        other = at + int(chance.random() * (total - at))
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
