"""``fused(bm25 % 100, dense % 100)``: fuse several pipelines into one list.

By reciprocal ranks (Cormack, Clarke and Büttcher, SIGIR 2009): a passage's score is the sum of 1 / (k + r) over the
lists that contain it at rank r. Equal scores are ordered by passage id, descending; the order of the lists doesn't
matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import ClassVar

import polars as pl

from ragworth.core.errors import InputError, format_count
from ragworth.data import Contexts
from ragworth.judging.contract import option as named
from ragworth.retrieval.contract import Place, Step, StepContext, format_value
from ragworth.retrieval.pipeline import Pipeline, StepLike


@dataclass(frozen=True, init=False)
class Fused(Step):
    """Fusion of several pipelines, each with its own depth."""

    parts: tuple[Pipeline, ...]
    k: float = named(60.0, "the larger, the less the first ranks stand out", low=0)

    kind: ClassVar[str] = "fused"
    title: ClassVar[str] = "results of several pipelines, fused by ranks"
    place: ClassVar[Place] = "first"
    bounded: ClassVar[bool] = False
    takes_pipelines: ClassVar[bool] = True

    def __init__(self, *parts: StepLike, k: float = 60.0) -> None:
        pipelines = tuple(Pipeline.of(part).complete() for part in parts)
        needs = dict.fromkeys(need for part in pipelines for step in part.steps for need in step.needs)
        for name, value in {"parts": pipelines, "k": k, "needs": tuple(needs)}.items():
            object.__setattr__(self, name, value)
        self.__post_init__()

    def check(self) -> None:
        if len(self.parts) < 2:
            raise InputError(
                f"fused has {format_count(len(self.parts), 'pipeline')}",
                expected="two or more, such as fused(bm25, dense)",
            )

    @property
    def inner_pipelines(self) -> tuple[Pipeline, ...]:
        return self.parts

    def problems(self, context: StepContext) -> list[str]:
        found = [each for part in self.parts for step in part.steps for each in step.problems(context)]
        return list(dict.fromkeys(found))

    def files(self, context: StepContext) -> tuple[Path, ...]:
        return tuple(path for part in self.parts for step in part.steps for path in step.files(context))

    def sources(self, context: StepContext) -> tuple[str, ...]:
        return tuple(source for part in self.parts for step in part.steps for source in step.sources(context))

    def join(self, results: Sequence[Contexts], context: StepContext) -> Contexts:
        lists = [
            each.frame.select("query", "passage", (1 / (self.k + pl.col("rank").cast(pl.Float64))).alias(f"s{number}"))
            for number, each in enumerate(results)
        ]
        pairs = pl.concat([each.frame.select("query", "passage") for each in results]).unique()
        names = [f"s{number}" for number in range(len(lists))]
        wide = reduce(lambda left, each: left.join(each, on=["query", "passage"], how="left"), lists, pairs)
        # Summed from smallest to largest, so that the order of the lists can't change the last digit.
        score = pl.concat_list(pl.col(name).fill_null(0.0) for name in names).list.sort().list.sum()
        ordered = wide.select("query", "passage", score.alias("score")).sort(
            "query", "score", "passage", descending=[False, True, True]
        )
        rank = pl.int_range(1, pl.len() + 1, dtype=pl.UInt32).over("query")
        return Contexts.trusted(ordered.with_columns(rank.alias("rank"), pl.lit("run").alias("system")))

    def __str__(self) -> str:
        inside = [str(part) for part in self.parts]
        if self.k != 60.0:
            inside.append(f"k={format_value(self.k)}")
        return f"{self.kind}({', '.join(inside)})"
