"""Judging on a budget: metrics from a cheap judgment of everything and an expensive one of a sample.

The unit is the query. Every query has a metric's value by the cheap judge; some, drawn at random, have it by the
expensive one as well: the same metric, with the expensive judgments in place of the cheap ones. The mean that the
expensive judge would give for all of them follows by prediction-powered inference
(`ragworth.stats.prediction_powered`): the mean of the sample, moved by what the cheap judge says of the other queries,
as far as it goes with the expensive one.

Beside it stand the two that one would have without: the cheap mean, which is off by however the cheap judge errs and
whose interval does not know that; and the mean of the sample alone, which is right and less sure.
"""

from __future__ import annotations

from ragworth.two_judges.estimates import (
    DIFFERENCE_COLUMNS,
    ESTIMATE_COLUMNS,
    EstimationResult,
    estimate,
    estimate_warnings,
)
from ragworth.two_judges.outcomes import estimate_outcomes
from ragworth.two_judges.scores import PARTLY_JUDGED, metrics_reading

__all__ = [
    "DIFFERENCE_COLUMNS",
    "ESTIMATE_COLUMNS",
    "PARTLY_JUDGED",
    "EstimationResult",
    "estimate",
    "estimate_outcomes",
    "estimate_warnings",
    "metrics_reading",
]
