"""Spreads array work over the processor's cores; NumPy and Polars let other threads run meanwhile."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import chain, islice
from typing import NoReturn, TypeVar

import polars as pl

T = TypeVar("T")
R = TypeVar("R")

MAX_THREADS = 4
"""Threads at a time; each holds an item and its result in memory."""


def map_threads(function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """Yield ``function(item)`` in order. Threads work on the items ahead; a single item needs none.

    An error of the items comes in their order, too: after the results of those before.
    """
    threads = min(MAX_THREADS, pl.thread_pool_size())
    calls = _calls(function, items)
    first = list(islice(calls, 2))
    single, calls = len(first) < 2, chain(first, calls)
    del first  # items may be large
    if threads < 2 or single:
        yield from (call() for call in calls)
        return
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[R]] = deque()
        try:
            for call in calls:
                waiting.append(pool.submit(call))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _calls(function: Callable[[T], R], items: Iterable[T]) -> Iterator[Callable[[], R]]:
    try:
        for item in items:
            yield partial(function, item)
    except Exception as error:
        yield partial(_fail, error)


def _fail(error: Exception) -> NoReturn:
    raise error
