"""Spreads array work over the processor's cores; NumPy and Polars let other threads run meanwhile."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from typing import TypeVar

import polars as pl

T = TypeVar("T")
R = TypeVar("R")

MAX_THREADS = 4
"""Threads at a time; each holds an item and its result in memory."""


def map_threads(function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """Yield ``function(item)`` in order. Threads work on the items ahead; a single item needs none."""
    threads = min(MAX_THREADS, pl.thread_pool_size())
    items = iter(items)
    first = list(islice(items, 2))
    if threads < 2 or len(first) < 2:
        yield from map(function, chain(first, items))
        return
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[R]] = deque()
        try:
            for item in chain(first, items):
                waiting.append(pool.submit(function, item))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
