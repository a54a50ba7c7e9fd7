"""Threads for array work, and errors that mean the machine ran out of memory, threads or files."""

from __future__ import annotations

import errno
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import chain, islice
from typing import Literal, NoReturn, TypeVar

T = TypeVar("T")
R = TypeVar("R")

Shortage = Literal["memory", "threads", "files"]

MEMORY_PATTERN = re.compile(
    r"out of memory|(can't|cannot|could not|failed to|unable to) allocate|bad_alloc|memory allocation|"
    r"failed to map segment|Polars binary is missing",  # raised when Polars' library can't be loaded
    re.IGNORECASE,
)
THREADS_PATTERN = re.compile(
    r"can't start new thread|thread ?pool|failed to spawn thread|pthread_create", re.IGNORECASE
)
ERRNO_SHORTAGES: dict[int | None, Shortage] = {errno.ENOMEM: "memory", errno.EAGAIN: "threads", errno.EMFILE: "files"}

MAX_CAUSES = 8
"""Causes of an error that are examined."""


def find_shortage(error: BaseException) -> Shortage | None:
    """Return what the machine ran out of, according to an error or one of its causes."""
    found: BaseException | None = error
    for _ in range(MAX_CAUSES):
        if found is None:
            return None
        if (short := _shortage_of(found)) is not None:
            return short
        found = found.__cause__ or found.__context__
    return None


def _shortage_of(error: BaseException) -> Shortage | None:
    if isinstance(error, MemoryError):
        return "memory"
    if isinstance(error, OSError) and error.errno in ERRNO_SHORTAGES:
        return ERRNO_SHORTAGES[error.errno]
    # RuntimeError of threading and torch, ImportError of the loader, errors and panics of Polars.
    text = str(error)[:2000]
    return "threads" if THREADS_PATTERN.search(text) else "memory" if MEMORY_PATTERN.search(text) else None


MAX_THREADS = 4
"""Threads at a time; each holds an item and its result in memory."""


def map_threads(function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """Yield ``function(item)`` in order. Threads work on the items ahead, while NumPy and Polars let other
    threads run; a single item needs none.

    An error of the items comes in their order, too: after the results of those before.
    """
    import polars as pl

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
