"""Scores of one metric as a matrix, queries × systems."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from ragworth.comparison.metric_range import Floats
from ragworth.data import Scores
from ragworth.metrics.ground_truth import query_numbers
from ragworth.metrics.scoring_job import LEFT_OUT


class ScoreMatrix(NamedTuple):
    """One metric's values, queries × systems; NaN if missing.

    ``asked`` counts the rows of each system, also those without a value, but none of queries that its run left out.
    """

    metric: str
    queries: pl.Series
    systems: list[str]
    values: Floats
    asked: dict[str, int]

    def has(self, *systems: str) -> bool:
        return set(systems) <= set(self.systems)

    def columns(self) -> dict[str, Floats]:
        """The values of each system."""
        return dict(zip(self.systems, self.values.T, strict=True))


def score_matrices(scores: Scores) -> list[ScoreMatrix]:
    """Convert the scores of each metric to a matrix."""
    result: list[ScoreMatrix] = []
    for metric in scores.distinct("metric"):
        part = scores.having("metric", [metric]).frame
        queries, systems = part["query"].unique(maintain_order=True), part["system"].unique(maintain_order=True)
        values = np.full((len(queries), len(systems)), np.nan)
        at = query_numbers(part["query"], queries), query_numbers(part["system"], systems)
        values[at] = part["value"].fill_null(float("nan")).to_numpy()
        was_asked = part["status"].ne_missing(LEFT_OUT).to_numpy()
        asked = np.bincount(at[1][was_asked], minlength=len(systems)).tolist()
        result.append(ScoreMatrix(metric, queries, systems.to_list(), values, dict(zip(systems, asked, strict=True))))
    return result
