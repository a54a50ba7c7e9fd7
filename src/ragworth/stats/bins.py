"""Values told apart: each by itself if they are few, or in bins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

MOST_VALUES, BINS = 6, 5


def bin_values(
    values: npt.NDArray[np.float64], scale: Sequence[float] = (), names: Mapping[float, str] | None = None
) -> tuple[npt.NDArray[np.int64], list[str]]:
    """The bin of each value, and the names of the bins, lowest first.

    Up to six different values are a bin each, by its name if all have one; more are put into five bins of equal width,
    from 0 to 1 if all lie there. If all values are on a ``scale``, every step of it is a bin, also if it doesn't occur.
    """
    known, names = np.unique(values), names or {}
    if set(known) <= set(scale):
        known = np.array(sorted(scale))
    if len(known) <= MOST_VALUES:
        named = set(known) <= set(names)
        return np.searchsorted(known, values), [names[each] if named else f"{each:g}" for each in known]
    low, high = (0.0, 1.0) if known[0] >= 0 and known[-1] <= 1 else (float(known[0]), float(known[-1]))
    edges = np.linspace(low, high, BINS + 1)
    place = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, BINS - 1)
    return place, [f"{a:.2g}–{b:.2g}" for a, b in pairwise(edges)]
