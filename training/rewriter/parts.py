"""Work on queries, split among processes: each has the model in memory and a store of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import polars as pl

from training.rewriter.costs import Cost

Work = Callable[[pl.DataFrame, int], tuple[pl.DataFrame, Cost]]
"""What a process does with some rows, given its number."""


def split_by_query(frame: pl.DataFrame, parts: int) -> list[pl.DataFrame]:
    """The rows in parts with about as many queries each; fewer parts if there are fewer queries."""
    number = (pl.col("query").rank("dense") - 1) % parts
    return [part for n in range(parts) if (part := frame.filter(number == n)).height]


def run_parts(work: Work, parts: Sequence[pl.DataFrame], cost: Cost) -> list[pl.DataFrame]:
    """Run the parts side by side, a single one in this process; their calls are added to ``cost``."""
    if len(parts) == 1:
        results = [work(parts[0], 0)]
    else:
        with ProcessPoolExecutor(len(parts), get_context("spawn")) as pool:
            results = list(pool.map(work, parts, range(len(parts))))
    for _, part_cost in results:
        cost.add_part(part_cost)
    return [frame for frame, _ in results]
