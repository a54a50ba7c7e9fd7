"""``fused(bm25 % 100, dense % 100)``: fuse several pipelines into one list.

``rrf`` (reciprocal rank fusion; Cormack, Clarke and Büttcher, SIGIR 2009): a passage's score is the sum of w / (k + r)
over the lists that contain it at rank r. ``weighted``: the sum of w · s over all lists, where s is its score there,
scaled separately for each query and list: ``minmax`` to 0 … 1, ``z`` to mean 0 and deviation 1. A passage missing in a
list counts 0 there with ``rrf`` and ``minmax``, and the list's lowest score with ``z``. With ``weighted``, so does a
passage without a score, which was beyond a re-ranker's depth or couldn't be judged. If all scores of a list are equal,
they are 1 with ``minmax`` and 0 with ``z``. A list without passages for a query is ignored. Equal scores are ordered by
passage id, descending; the order of the lists doesn't matter.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import reduce
from pathlib import Path
from typing import ClassVar

import polars as pl

from ragworth.errors import InputError, format_count
from ragworth.metrics.declaration import format_number
from ragworth.retrieval.contract import Place, Step, StepContext, format_value
from ragworth.retrieval.pipeline import Pipeline, StepLike
from ragworth.retrieval.rerankers.llm_reranker import LlmReranker
from ragworth.tables import Contexts
from ragworth.tasks.options import option as named

METHODS = ("rrf", "weighted")
SCALES = ("minmax", "z")


@dataclass(frozen=True, init=False)
class Fused(Step):
    """Fusion of several pipelines, each with its own depth."""

    parts: tuple[Pipeline, ...]
    method: str = named("rrf", "by ranks (rrf), or by scores (weighted)", choices=METHODS)
    k: float = named(60.0, "rrf: the larger, the less the first ranks stand out", low=0)
    weights: str = named("", "weight of each list, such as 0.7, 0.3; equal by default")
    scale: str = named("minmax", "weighted: how the scores of a list are scaled", choices=SCALES)

    kind: ClassVar[str] = "fused"
    title: ClassVar[str] = "results of several pipelines, fused by ranks or scores"
    place: ClassVar[Place] = "first"
    bounded: ClassVar[bool] = False
    takes_pipelines: ClassVar[bool] = True

    def __init__(
        self,
        *parts: StepLike,
        method: str = "rrf",
        k: float = 60.0,
        weights: str | Sequence[float] = "",
        scale: str = "minmax",
    ) -> None:
        pipelines = tuple(Pipeline.of(part).complete() for part in parts)
        needs = dict.fromkeys(need for part in pipelines for step in part.steps for need in step.needs)
        values = {"parts": pipelines, "method": method, "k": k, "scale": scale, "weights": _format_weights(weights)}
        for name, value in (values | {"needs": tuple(needs)}).items():
            object.__setattr__(self, name, value)
        self.__post_init__()

    def check(self) -> None:
        if len(self.parts) < 2:
            raise InputError(
                f"fused has {format_count(len(self.parts), 'pipeline')}",
                expected="two or more, such as fused(bm25, dense)",
            )
        shares = self.shares
        if len(shares) != len(self.parts) or min(shares) < 0 or not max(shares) > 0:
            raise InputError(
                f"fused has {format_count(len(self.parts), 'pipeline')} and the weights {self.weights!r}",
                expected="a number, 0 or more, for each pipeline, and not all of them 0",
            )
        for part in self.parts:
            if self.method == "weighted" and not part.scored:
                raise self._without(part)

    @staticmethod
    def _without(part: Pipeline) -> InputError:
        return InputError(
            f"{str(part)!r} has no scores to weight",
            expected="pipelines whose order comes from scores",
            remedy='fuse them by their ranks: method="rrf"',
        )

    @property
    def shares(self) -> tuple[float, ...]:
        """Weight of each list."""
        return _parse_weights(self.weights) if self.weights else (1.0,) * len(self.parts)

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
        planned = context.model_access is not None and context.model_access.plan
        lists = [self._contributions(each, number, planned) for number, each in enumerate(results)]
        pairs = pl.concat([each.frame.select("query", "passage") for each in results]).unique()
        names = [f"s{number}" for number in range(len(lists))]
        wide = reduce(lambda left, each: left.join(each, on=["query", "passage"], how="left"), lists, pairs)
        if self.method == "weighted" and self.scale == "z":
            wide = wide.with_columns(pl.col(name).fill_null(pl.col(name).min().over("query")) for name in names)
        # Summed from smallest to largest, so that the order of the lists can't change the last digit.
        score = pl.concat_list(pl.col(name).fill_null(0.0) for name in names).list.sort().list.sum()
        ordered = wide.select("query", "passage", score.alias("score")).sort(
            "query", "score", "passage", descending=[False, True, True]
        )
        rank = pl.int_range(1, pl.len() + 1, dtype=pl.UInt32).over("query")
        return Contexts.trusted(ordered.with_columns(rank.alias("rank"), pl.lit("run").alias("system")))

    def _contributions(self, found: Contexts, number: int, planned: bool) -> pl.DataFrame:
        """Contribution of a list to each of its passages: query, passage, and a separate column."""
        frame = found.frame
        name, share = f"s{number}", self.shares[number]
        if self.method == "rrf":
            value = share / (self.k + pl.col("rank").cast(pl.Float64))
        else:
            if frame.height and frame["score"].null_count() == frame.height:
                if not planned or not any(isinstance(step, LlmReranker) for step in self.parts[number].steps):
                    raise self._without(self.parts[number])
                frame = frame.with_columns(score=-pl.col("rank").cast(pl.Float64))  # no scores in a plan
            value = share * self._scale_scores()
        return frame.select("query", "passage", value.alias(name)).drop_nulls(name)

    def _scale_scores(self) -> pl.Expr:
        """A list's scores, scaled separately for each query."""
        score = pl.col("score")
        low, high = score.min().over("query"), score.max().over("query")
        known = pl.when(score.is_null()).then(None)
        if self.scale == "minmax":
            return known.when(high > low).then((score - low) / (high - low)).otherwise(1.0)
        deviation = score.std(ddof=0).over("query")
        return known.when(high > low).then((score - score.mean().over("query")) / deviation).otherwise(0.0)

    def __str__(self) -> str:
        inside = [str(part) for part in self.parts]
        for each in fields(self):
            if each.kw_only and getattr(self, each.name) != each.default:
                inside.append(f"{each.name}={format_value(getattr(self, each.name))}")
        return f"{self.kind}({', '.join(inside)})"


def _format_weights(weights: str | Sequence[float]) -> str:
    """Normalize weights, so that equal ones are equal."""
    numbers = _parse_weights(weights) if isinstance(weights, str) else tuple(float(weight) for weight in weights)
    return ", ".join(format_number(number) for number in numbers)


def _parse_weights(weights: str) -> tuple[float, ...]:
    try:
        numbers = tuple(float(part) for part in re.split(r"[,\s]+", weights.strip()) if part)
    except (ValueError, AttributeError):
        numbers = (math.nan,)
    if not all(map(math.isfinite, numbers)):
        raise InputError(f"the weights of fused are {weights!r}", expected='numbers, such as weights="0.7, 0.3"')
    return numbers
