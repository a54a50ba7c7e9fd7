"""``within(bm25 % 10, chunks="small")``: run a pipeline on the passages of one chunking only.

A collection may contain passages of several chunkings (``ragworth chunk --name``), so that systems on different ones
can be compared in one evaluation; each retrieves among its own passages, with its own index and word weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from ragworth.core.errors import InputError, format_count, format_list
from ragworth.judging.contract import option as named
from ragworth.retrieval.contract import Place, Step, StepContext, format_value
from ragworth.retrieval.origins import CHUNKING_NAME, in_chunking, origin
from ragworth.retrieval.pipeline import Pipeline, StepLike


@dataclass(frozen=True, init=False)
class Within(Step):
    """Results of a pipeline that sees only the passages of one chunking.

    The pipeline sets its own depth, or has that of a first stage; a cut after `within` is the same as one inside. `run`
    runs it together with those of other systems within the same chunking.
    """

    parts: tuple[Pipeline, ...]
    chunks: str = named("", "name of the chunking: the part after @ in the ids of its passages")

    kind: ClassVar[str] = "within"
    title: ClassVar[str] = "results of a pipeline on the passages of one chunking"
    place: ClassVar[Place] = "first"
    bounded: ClassVar[bool] = False
    takes_pipelines: ClassVar[bool] = True

    def __init__(self, *parts: StepLike, chunks: str = "") -> None:
        pipelines = tuple(Pipeline.of(part).complete() for part in parts)
        needs = dict.fromkeys(need for part in pipelines for step in part.steps for need in step.needs)
        for name, value in {"parts": pipelines, "chunks": chunks, "needs": tuple(needs)}.items():
            object.__setattr__(self, name, value)
        self.__post_init__()

    def check(self) -> None:
        if len(self.parts) != 1:
            raise InputError(
                f"within has {format_count(len(self.parts), 'pipeline')}",
                expected='one, such as within(bm25 % 10, chunks="small")',
            )
        if not CHUNKING_NAME.fullmatch(self.chunks):
            raise InputError(
                "within lacks the name of a chunking", expected='such as within(bm25 % 10, chunks="small")'
            )

    @property
    def all_pipelines(self) -> tuple[Pipeline, ...]:
        return self.parts

    @property
    def _steps(self) -> Iterator[Step]:
        return iter(self.parts[0].steps)

    def problems(self, context: StepContext) -> list[str]:
        inner = restrict_to_chunking(context, self.chunks)
        if context.collection.passages.height and not inner.collection.passages.height:
            names = sorted({found.name for each in context.passage_ids if (found := origin(each)) and found.name})
            there = (
                f"there are {format_list(names)}" if names else "no passage has one (ragworth chunk --name makes them)"
            )
            return [f"within: no passage is of the chunking {self.chunks!r}; {there}"]
        return [each for step in self._steps for each in step.problems(inner)]

    def files(self, context: StepContext) -> tuple[Path, ...]:
        return tuple(path for step in self._steps for path in step.files(context))

    def sources(self, context: StepContext) -> tuple[str, ...]:
        return tuple(source for step in self._steps for source in step.sources(context))

    def __str__(self) -> str:
        return f"{self.kind}({self.parts[0]}, chunks={format_value(self.chunks)})"


def restrict_to_chunking(context: StepContext, chunks: str) -> StepContext:
    """The context restricted to the passages of one chunking."""
    passages = context.collection.passages
    mine = passages.filter(in_chunking(passages["passage"], chunks))
    return replace(context, collection=replace(context.collection, passages=mine))
