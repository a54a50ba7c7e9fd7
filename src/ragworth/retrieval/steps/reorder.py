"""``reversed``, ``shuffled`` and ``top``: the same passages in another order, or fewer of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from ragworth.retrieval.contract import Place, Step, StepContext, argument, passages_by_query, unscored_contexts
from ragworth.retrieval.steps.random_sample import query_rng, sample_passages
from ragworth.tables import Contexts
from ragworth.tasks.options import option as named


@dataclass(frozen=True)
class Reversed(Step):
    """What was retrieved in the opposite order: the last passage first. Scores, which no longer give the order, go."""

    kind: ClassVar[str] = "reversed"
    title: ClassVar[str] = "what was retrieved, last passage first"
    place: ClassVar[Place] = "behind"
    scored: ClassVar[bool] = False

    def apply(self, before: Contexts | None, setting: StepContext) -> Contexts:
        assert before is not None
        turned = (pl.col("rank").max().over("query") + 1 - pl.col("rank")).cast(pl.UInt32)
        frame = before.frame.with_columns(turned, pl.lit(None, pl.Float64).alias("score"))
        return Contexts.trusted(frame.sort("query", "rank"), before.notes)


@dataclass(frozen=True)
class Shuffled(Step):
    """What was retrieved in an order drawn for each query on its own, so that other queries change nothing."""

    seed: int = named(0, "another one draws another order; the seed of the whole counts besides", low=0)

    kind: ClassVar[str] = "shuffled"
    title: ClassVar[str] = "what was retrieved, in random order"
    place: ClassVar[Place] = "behind"
    scored: ClassVar[bool] = False

    def apply(self, before: Contexts | None, setting: StepContext) -> Contexts:
        assert before is not None
        # From the order of ids, so that only what was retrieved counts, and not how it was ordered.
        return unscored_contexts(
            (query, sample_passages(pl.Series(sorted(passages)), len(passages), query_rng(self, setting, query)))
            for query, passages in passages_by_query(before).items()
        )


@dataclass(frozen=True)
class Top(Step):
    """The first k passages; written ``% k``."""

    k: int = argument(10, "how many passages to keep", low=1)

    kind: ClassVar[str] = "top"
    title: ClassVar[str] = "the first k of what was retrieved; written % k"
    place: ClassVar[Place] = "behind"

    def apply(self, before: Contexts | None, setting: StepContext) -> Contexts:
        assert before is not None
        return before.cut(self.k)

    def __str__(self) -> str:
        return f"% {self.k}"
