"""Which way a metric or an outcome is better, and its lowest and highest value."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ragworth.answer_outcomes import outcome_direction, outcome_type
from ragworth.core.errors import RagworthError
from ragworth.formats.grades import Direction
from ragworth.metrics.parsing import parse
from ragworth.stats.range_intervals import Bounds

Floats = npt.NDArray[np.float64]


def is_metric(name: str) -> bool:
    """Whether a name is that of a metric of contexts, and not of an outcome of answers."""
    try:
        parse(name)
    except RagworthError:
        return False
    return True


def direction(metric: str) -> Direction:
    """Which way a metric or an outcome is better, by its name."""
    try:
        return 1 if parse(metric).declaration.higher_is_better else -1
    except RagworthError:
        return outcome_direction(metric)


def higher_is_better(metric: str) -> bool:
    """Whether higher is better, or at least not worse."""
    return direction(metric) >= 0


def value_bounds(metric: str, values: Floats | None = None) -> Bounds | None:
    """Lowest and highest value of a metric or an outcome, by its name; None if unknown.

    An outcome of unknown name whose ``values`` are all 0 or 1 is a share. A file's ``correct`` may have a scale of its
    own, such as 1 to 5: then the bounds aren't known.
    """
    try:
        return parse(metric).bounds(np.inf)
    except RagworthError:
        known = outcome_type(metric)
    if known is not None and known.bounds is not None and values is not None:
        low, high = known.bounds
        return known.bounds if bool((np.isnan(values) | ((values >= low) & (values <= high))).all()) else None
    if known is not None:
        return known.bounds
    binary = values is not None and bool((np.isnan(values) | (values == 0) | (values == 1)).all())
    return (0.0, 1.0) if binary else None
