"""``random``: passages drawn at random, and the dice of every step that draws.

Each query has dice of its own, made from the kind of step, the seeds and the query's id: asking about more queries
changes nothing for the others. Python promises the same numbers for the same seed in all its versions.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from ragworth.retrieval.contract import Need, Place, Step, StepContext, unscored_contexts
from ragworth.tables import Contexts
from ragworth.tasks.options import option as named


def query_rng(step: Step, setting: StepContext, query: str) -> random.Random:
    """Dice of a step for a query."""
    seed = getattr(step, "seed", 0)
    return random.Random(f"{step.kind} {setting.seed} {seed} {query}".encode("utf-8", "surrogatepass"))


def sample_passages(passages: pl.Series, k: int, chance: random.Random) -> list[str]:
    """``k`` of the passages, each as likely; the first of a longer draw are those of a shorter one."""
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
    """Passages of the collection drawn at random, for each query on its own."""

    seed: int = named(0, "another one draws other passages; the seed of the whole counts besides", low=0)

    kind: ClassVar[str] = "random"
    title: ClassVar[str] = "passages of the collection, at random"
    place: ClassVar[Place] = "first"
    scored: ClassVar[bool] = False
    needs: ClassVar[tuple[Need, ...]] = ("passages",)

    def apply(self, before: Contexts | None, setting: StepContext) -> Contexts:
        return unscored_contexts(
            (query, sample_passages(setting.passages, setting.depth, query_rng(self, setting, query)))
            for query in setting.ids
        )
