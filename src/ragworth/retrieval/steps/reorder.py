"""``reversed``, ``shuffled`` and ``top``: the same passages in another order, or fewer of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from ragworth.data import Contexts
from ragworth.judging.contract import option as named
from ragworth.retrieval.contract import Place, Step, StepContext, argument, passages_by_query, unscored_contexts
from ragworth.retrieval.steps.random_sample import query_rng, sample_passages


@dataclass(frozen=True)
class Reversed(Step):
    """Retrieved passages in reverse order. Their scores, which no longer match the order, are dropped."""

    kind: ClassVar[str] = "reversed"
    control: ClassVar[bool] = True
    title: ClassVar[str] = "retrieved passages in reverse order"
    place: ClassVar[Place] = "behind"

    def apply(self, before: Contexts | None, context: StepContext) -> Contexts:
        assert before is not None
        turned = (pl.col("rank").max().over("query") + 1 - pl.col("rank")).cast(pl.UInt32)
        frame = before.frame.with_columns(turned, pl.lit(None, pl.Float64).alias("score"))
        return Contexts.trusted(frame.sort("query", "rank"), before.notes)


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


@dataclass(frozen=True)
class Top(Step):
    """The first k passages; written ``% k``."""

    k: int = argument(10, "how many passages to keep", low=1)

    kind: ClassVar[str] = "top"
    title: ClassVar[str] = "the first k retrieved passages; written % k"
    place: ClassVar[Place] = "behind"

    def apply(self, before: Contexts | None, context: StepContext) -> Contexts:
        assert before is not None
        return before.cut(self.k)

    def __str__(self) -> str:
        return f"% {self.k}"
