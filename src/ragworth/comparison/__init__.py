"""Means with intervals, differences between systems, and correlations of metrics."""

from ragworth.comparison.comparable import Comparable, conversations_of, join_scores, to_scores
from ragworth.comparison.comparison import Comparison
from ragworth.comparison.differences import compare
from ragworth.comparison.metric_correlation import correlate
from ragworth.comparison.metric_range import direction, higher_is_better, value_bounds
from ragworth.comparison.query_intervals import missing_interval
from ragworth.comparison.ranking import RankedSystems, rank
from ragworth.comparison.score_matrix import ScoreMatrix, score_matrices
from ragworth.comparison.significance import is_different, least_holm_p, out_of_reach
from ragworth.comparison.summaries import ABSENT, summarise

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
