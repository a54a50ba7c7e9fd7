"""Means with intervals, differences between systems, and correlations of metrics."""

from ragworth.comparison.comparable import Comparable, conversations_of, join_scores, to_scores
from ragworth.comparison.differences import Comparison, compare, is_different
from ragworth.comparison.metric_correlation import correlate
from ragworth.comparison.metric_range import direction, higher_is_better, value_bounds
from ragworth.comparison.query_intervals import missing_interval
from ragworth.comparison.score_matrix import ScoreMatrix, score_matrices
from ragworth.comparison.summaries import ABSENT, summarise

__all__ = [
    "ABSENT",
    "Comparable",
    "Comparison",
    "ScoreMatrix",
    "compare",
    "conversations_of",
    "correlate",
    "direction",
    "higher_is_better",
    "is_different",
    "join_scores",
    "missing_interval",
    "score_matrices",
    "summarise",
    "to_scores",
    "value_bounds",
]
