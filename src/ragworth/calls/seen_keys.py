"""Count distinct keys of calls, of which a job may have millions."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

MAX_RUN = 1 << 20
"""Keys in a run that isn't merged any more, so that merging needs little memory."""


class SeenKeys:
    """Keys seen so far: the first eight bytes of each, in sorted runs. Equal runs are merged, so there are few."""

    def __init__(self) -> None:
        self._runs: list[npt.NDArray[np.uint64]] = []

    def add(self, keys: Iterable[bytes]) -> int:
        """Add keys, and return how many of them are new."""
        fresh = np.unique(np.frombuffer(b"".join([key[:8] for key in keys]), np.uint64))
        for run in self._runs:
            places = np.minimum(np.searchsorted(run, fresh), len(run) - 1)
            fresh = fresh[run[places] != fresh]
        if number := len(fresh):
            while self._runs and len(self._runs[-1]) <= min(len(fresh), MAX_RUN):
                fresh = np.sort(np.concatenate([self._runs.pop(), fresh]), kind="stable")
            self._runs.append(fresh)
        return number
