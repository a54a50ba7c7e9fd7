"""``fused`` and ``within``: steps made of pipelines.

``fused(bm25 % 100, dense % 100)`` fuses several pipelines into one list by reciprocal ranks (Cormack, Clarke and
Büttcher, SIGIR 2009): a passage's score is the sum of 1 / (k + r) over the lists that contain it at rank r. Equal
scores are ordered by passage id, descending; the order of the lists doesn't matter.

``within(bm25 % 10, chunks="small")`` runs a pipeline on the passages of one chunking only. A collection may contain
passages of several (``ragworth chunk --name``), so that systems on different chunkings can be compared in one
evaluation; each retrieves among its own passages, with its own index and word weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import polars as pl

from ragworth.core.errors import InputError, format_count, format_list
from ragworth.data import Contexts
from ragworth.judging.contract import option as named
from ragworth.retrieval.origins import CHUNKING_NAME, in_chunking, origin
from ragworth.retrieval.pipeline import Combined, Pipeline, Step, StepContext, Top


@dataclass(frozen=True, init=False)
class Fused(Combined):
    """Fusion of several pipelines, each with its own depth."""

    k: float = named(60.0, "the larger, the less the first ranks stand out", low=0)

    kind: ClassVar[str] = "fused"
    title: ClassVar[str] = "results of several pipelines, fused by ranks"

    def check(self) -> None:
        if len(self.parts) < 2:
            raise InputError(
                f"fused has {format_count(len(self.parts), 'pipeline')}",
                expected="two or more, such as fused(bm25, dense)",
            )

    @property
    def inner_pipelines(self) -> tuple[Pipeline, ...]:
        return self.parts

    def join(self, results: Sequence[Contexts], context: StepContext) -> Contexts:
        lists = pl.concat([each.frame.select("query", "passage", "rank") for each in results])
        share = 1 / (self.k + pl.col("rank").cast(pl.Float64))
        # Summed from smallest to largest, so that the order of the lists can't change the last digit.
        fused = lists.group_by("query", "passage").agg(share.sort().sum().alias("score"))
        ordered = fused.sort("query", "score", "passage", descending=[False, True, True])
        rank = pl.int_range(1, pl.len() + 1, dtype=pl.UInt32).over("query")
        return Contexts.trusted(ordered.with_columns(rank=rank, system=pl.lit("run")))


@dataclass(frozen=True, init=False)
class Within(Combined):
    """Results of a pipeline that sees only the passages of one chunking.

    The pipeline sets its own depth, or has that of a first stage; a cut after `within` is the same as one inside. It
    runs together with those of other systems within the same chunking.
    """

    chunks: str = named("", "name of the chunking: the part after @ in the ids of its passages")

    kind: ClassVar[str] = "within"
    title: ClassVar[str] = "results of a pipeline on the passages of one chunking"

    def check(self) -> None:
        example = 'such as within(bm25 % 10, chunks="small")'
        if len(self.parts) != 1:
            raise InputError(f"within has {format_count(len(self.parts), 'pipeline')}", expected=f"one, {example}")
        if not CHUNKING_NAME.fullmatch(self.chunks):
            raise InputError("within lacks the name of a chunking", expected=example)

    def problems(self, context: StepContext) -> list[str]:
        inner = self.restrict(context, self.chunks)
        if context.collection.passages.height and not inner.collection.passages.height:
            names = sorted({place.name for each in context.passage_ids if (place := origin(each)) and place.name})
            there = (
                f"there are {format_list(names)}" if names else "no passage has one (ragworth chunk --name makes them)"
            )
            return [f"within: no passage is of the chunking {self.chunks!r}; {there}"]
        return super().problems(inner)

    def inner(self, steps: Sequence[Step]) -> Pipeline:
        """Return its pipeline with the cut that follows it, which limits the depth of its first stage."""
        return Pipeline((*self.parts[0].steps, *(step for step in steps[1:2] if isinstance(step, Top))))

    @staticmethod
    def restrict(context: StepContext, chunks: str) -> StepContext:
        """Restrict the context to the passages of one chunking."""
        passages = context.collection.passages
        inside = passages.filter(in_chunking(passages["passage"], chunks))
        return replace(context, collection=replace(context.collection, passages=inside))
