"""How sure the order of systems is that metrics are compared with."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ragworth.core.errors import format_count
from ragworth.stats.bootstrap import Clusters
from ragworth.stats.estimate import Resampling
from ragworth.stats.systems import FEWEST, separated_pairs

SURE_SHARE = 0.8
"""Share of the pairs of systems that differ significantly from which their order needs no note."""


def order_notes(outcome: npt.NDArray[np.float64], name: str, plan: Resampling, clusters: Clusters = None) -> list[str]:
    """Note an order of systems by an outcome (queries × systems) that is mostly chance."""
    known = outcome[:, ~np.isnan(outcome).all(axis=0)]
    if known.shape[1] < FEWEST:
        return []
    found = separated_pairs(known, plan.alpha, clusters)
    if found.separated >= SURE_SHARE * found.pairs:
        return []
    differ = "differs" if found.separated == 1 else "differ"
    pairs = f"{found.separated:,} of {format_count(found.pairs, 'pair')} of systems {differ} significantly by {name}"
    return [
        f"{pairs} (paired t-tests, uncorrected): the order of the others may be chance. With more queries, systems may "
        "rank differently, and so may correlations over systems; their intervals don't allow for that"
    ]
