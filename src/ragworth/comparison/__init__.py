"""Means with intervals, differences between systems, and correlations of metrics."""

from ragworth.comparison.comparable import Comparable, conversations_of, join_scores, to_scores
from ragworth.comparison.comparison import Comparison, is_different, least_holm_p, out_of_reach
from ragworth.comparison.differences import compare
from ragworth.comparison.score_matrix import (
    RankedSystems,
    ScoreMatrix,
    direction,
    higher_is_better,
    missing_interval,
    rank,
    score_matrices,
    value_bounds,
)
from ragworth.comparison.summaries import ABSENT, correlate, summarise

__all__ = [
    "ABSENT",
    "Comparable",
    "Comparison",
    "RankedSystems",
    "ScoreMatrix",
    "compare",
    "conversations_of",
    "correlate",
    "direction",
    "higher_is_better",
    "is_different",
    "join_scores",
    "least_holm_p",
    "missing_interval",
    "out_of_reach",
    "rank",
    "score_matrices",
    "summarise",
    "to_scores",
    "value_bounds",
]
