"""Run metrics over the contexts of all systems, block by block."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ragworth.data import OK, Judgments, Ratings
from ragworth.metrics.block_builder import BlockBuilder, KnownTruth, ShownContexts
from ragworth.metrics.blocks import Block, Floats
from ragworth.metrics.declaration import Metric
from ragworth.metrics.ground_truth import ASPECT_SCALES, aspect_values, judged_values, rating_matrices
from ragworth.metrics.token_counts import Tokens

LEFT_OUT = "left-out"
"""Status of a judged query that a system has no context for, if such queries are left out."""


class UnlabelledCount(NamedTuple):
    """Passages shown without a relevance label, and all passages shown."""

    passages: int
    shown: int

    def plus(self, block: Block, metric: Metric) -> UnlabelledCount:
        assert block.abstention is not None
        cutoff = np.inf if metric.cutoff is None else metric.cutoff
        filled, end = block.filled(cutoff), block.upto(cutoff)
        unknown = filled & np.isnan(block.relevance[:, :end]) & ~np.isnan(block.abstention[:, :end])
        if block.failed is not None:
            unknown &= ~block.failed[:, :end]
        return UnlabelledCount(self.passages + int(unknown.sum()), self.shown + int(filled.sum()))


class ScoringJob:
    """The metrics over one set of queries, and their inputs."""

    def __init__(
        self,
        shown: ShownContexts,
        metrics: list[Metric],
        judgments: Judgments | None,
        ratings: Ratings | None,
        tokens: Tokens | None,
        universe: str,
    ) -> None:
        truth = judgments.of(universe) if universe != "ratings" and judgments is not None else None
        truth = ratings.frame if truth is None and ratings is not None else truth
        assert truth is not None  # needs were checked
        self.shown, self.metrics, self.universe = shown, metrics, universe
        self.unlabelled: dict[tuple[str, str], UnlabelledCount] = {}
        self.judged = truth.select("query", "passage")
        self.queries = truth["query"].unique(maintain_order=True)
        needs = {need for metric in metrics for need in metric.needs}
        self.known = KnownTruth(
            self.queries,
            judged=judged_values(truth, self.queries) if "relevance" in needs else None,
            aspects={a: aspect_values(judgments, a, self.queries) for a in ASPECT_SCALES if a in needs and judgments},
            rated=rating_matrices(ratings, self.queries) if "ratings" in needs and ratings else None,
            lengths=tokens.frame if "tokens" in needs and tokens else None,
        )
        self.blocks = BlockBuilder(
            shown, self.known, self._depth(), {float(m.values["rel"]) for m in metrics if "runs" in m.needs}
        )

    def _depth(self) -> int:
        """The deepest rank that any metric reads."""
        deepest = int(self.shown.size.max(initial=0))
        reach = [
            m.cutoff * m.declaration.reach if m.cutoff is not None and "runs" not in m.needs else deepest
            for m in self.metrics
        ]
        return min(deepest, max(reach))

    def scores(self, complete: bool) -> dict[tuple[str, str], pl.DataFrame]:
        """Scores by system and metric, one row per query."""
        parts = {}
        names = [str(metric) for metric in self.metrics]
        n = len(self.queries)
        for i, system in enumerate(self.shown.systems):
            values = np.empty((len(names), n))
            status = np.zeros((len(names), n), dtype=np.uint16)  # numbers in `statuses`: texts take 8 bytes each
            statuses = {OK: 0, LEFT_OUT: 1}
            for low, high, block in self.blocks.of(i):
                for j, metric in enumerate(self.metrics):
                    values[j, low:high], status[j, low:high] = _compute_metric(metric, block, statuses)
                    if {"relevance", "abstention"} <= metric.needs:
                        before = self.unlabelled.get((system, names[j]), UnlabelledCount(0, 0))
                        self.unlabelled[system, names[j]] = before.plus(block, metric)
            if not complete:
                status[:, self.blocks.context[i] < 0] = statuses[LEFT_OUT]
            words = pl.Series(statuses.keys(), dtype=pl.String)
            for j, name in enumerate(names):
                reasons = words.gather(status[j]) if status[j].any() else None
                parts[system, name] = _score_frame(self.queries, values[j], reasons, system, name)
        return parts


def _score_frame(
    queries: pl.Series, values: Floats, status: pl.Series | None, system: str, metric: str
) -> pl.DataFrame:
    """Scores of one system by one metric, with constant columns stored once; without ``status``, all are OK."""
    frame = pl.DataFrame({"query": queries, "value": values})
    if status is not None:
        frame = frame.with_columns(pl.when(status == OK).then(pl.col("value")).alias("value"))
    return frame.select(
        pl.lit(system, pl.String).alias("system"),
        "query",
        pl.lit(metric, pl.String).alias("metric"),
        "value",
        pl.lit(OK, pl.String).alias("status") if status is None else status.alias("status"),
    )


def _compute_metric(metric: Metric, block: Block, statuses: dict[str, int]) -> tuple[Floats, npt.NDArray[np.uint16]]:
    """Compute values of one metric over one block, and numbers of their statuses, to which it adds new ones.

    Failed judgments that it depends on give missing values.
    """
    result = metric.compute(block)
    status = np.zeros(block.size, dtype=np.uint16)
    missing = list(result.missing)
    if block.failed is not None and metric.declaration.minds_failures and "relevance" in metric.needs:
        reach = np.inf if metric.cutoff is None else metric.cutoff * metric.declaration.reach
        missing.append((np.asarray(block.failed[:, : block.upto(reach)].any(axis=1)), "unjudged"))
        if metric.whole_query:
            missing.append((block.truth.failed > 0, "unjudged"))
    missing.append((~np.isfinite(result.values), "overflow"))
    for where, reason in reversed(missing):
        status[where] = statuses.setdefault(reason, len(statuses))
    return result.values, status
