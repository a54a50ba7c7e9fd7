"""Which systems may be ranked by a metric or an outcome, and in which order.

Whoever has the fewest values can have the highest mean by chance, or because only easy questions were decided. So a
system is ranked only if at least half of the questions that it was asked have a value. Systems are ranked by the
questions that have a value for all of these, and only if that is at least half of what each of them was asked. Every
ranking goes by :func:`rank`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from ragworth.comparison.metric_range import Floats, higher_is_better
from ragworth.comparison.score_matrix import ScoreMatrix, score_matrices
from ragworth.data import Scores


class RankedSystems(NamedTuple):
    """The systems that are ranked by one metric, best first.

    Attributes
    ----------
    order: empty if fewer than two have enough values, or if those share too few questions.
    enough: systems with a value for at least half of their questions.
    decided, asked: by system, questions with a value, and all that it was asked.
    shared: the questions with a value for each of ``enough``.
    """

    order: list[str]
    enough: list[str]
    decided: dict[str, int]
    asked: dict[str, int]
    shared: list[str]

    def counts(self, system: str) -> str:
        """How many of its questions have a value: ``30 of 86``."""
        return f"{self.decided.get(system, 0):,} of {self.asked.get(system, 0):,}"


def rank(scores: Scores, metric: str) -> RankedSystems:
    """Rank systems by the mean of a metric; each row of ``scores`` is a question asked, with or without a value."""
    matrices = score_matrices(scores.having("metric", [metric]))
    if not matrices:
        return RankedSystems([], [], {}, {}, [])
    return rank_matrix(matrices[0])


def rank_matrix(matrix: ScoreMatrix) -> RankedSystems:
    """:func:`rank` of one metric's values."""
    known = ~np.isnan(matrix.values)
    decided = dict(zip(matrix.systems, known.sum(axis=0).tolist(), strict=True))
    enough = [system for system, n in decided.items() if n and 2 * n >= matrix.asked[system]]
    values = matrix.values[:, [matrix.systems.index(system) for system in enough]]
    shared = ~np.isnan(values).any(axis=1)
    most = max((matrix.asked[system] for system in enough), default=0)
    order = _by_mean(matrix.metric, enough, values[shared]) if len(enough) > 1 and 2 * shared.sum() >= most else []
    return RankedSystems(order, enough, decided, matrix.asked, matrix.queries.filter(pl.Series(shared)).to_list())


def _by_mean(metric: str, systems: list[str], values: Floats) -> list[str]:
    up = 1 if higher_is_better(metric) else -1
    means = dict(zip(systems, (up * values.mean(axis=0)).tolist(), strict=True))
    return sorted(systems, key=lambda system: -means[system])
