"""Rows of tables as arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl


def matrix(frame: pl.DataFrame, systems: Sequence[str], queries: Sequence[str]) -> npt.NDArray[np.float64]:
    """Values of a frame (system, query, value) as queries × systems; NaN where there is none."""
    row, column = ({name: at for at, name in enumerate(names)} for names in (queries, systems))
    made = np.full((len(queries), len(systems)), np.nan)
    for system, query, value in frame.select("system", "query", "value").iter_rows():
        if system in column and query in row and value is not None:
            made[row[query], column[system]] = value
    return made
