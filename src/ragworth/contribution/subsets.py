"""Sets of passages as bit masks, and the values that are known of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]

SubsetValues: TypeAlias = Mapping[int, Floats]
"""The value of each known subset: an array with one number for each sentence of the answer, in nats.

Passage i is in the subset ``mask`` if ``mask >> i & 1``. The value of the whole answer is the sum over its sentences.
"""


def full_subset(k: int) -> int:
    """All of k passages."""
    return (1 << k) - 1


def members(mask: int) -> list[int]:
    """Numbers of the passages in a subset, in order."""
    return [i for i in range(mask.bit_length()) if mask >> i & 1]


def leave_one_out(values: SubsetValues, k: int) -> Floats:
    """What the answer loses when each passage is removed from the whole context; passages × sentences."""
    everything = full_subset(k)
    return np.array([values[everything] - values[everything ^ (1 << i)] for i in range(k)]).reshape(k, -1)
