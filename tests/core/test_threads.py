"""Work on several threads gives results and errors in the order of the items."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import polars as pl
import pytest

from ragworth.core.resources import MAX_THREADS, map_threads


@pytest.fixture(autouse=True, params=[1, MAX_THREADS])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pl, "thread_pool_size", lambda: request.param)


def broken_after(count: int) -> Iterator[int]:
    yield from range(count)
    raise ValueError("the source broke")


def slow_square(number: int) -> int:
    time.sleep(0.002 * (number % 3))
    return number * number


def test_results_are_in_order() -> None:
    assert list(map_threads(slow_square, range(20))) == [number * number for number in range(20)]


@pytest.mark.parametrize("count", [0, 1, 2, 9])
def test_an_error_of_the_source_comes_after_all_results(count: int) -> None:
    results = map_threads(slow_square, broken_after(count))
    assert [next(results) for _ in range(count)] == [number * number for number in range(count)]
    with pytest.raises(ValueError, match="the source broke"):
        next(results)


def test_the_first_error_wins_and_no_thread_is_left() -> None:
    def divide(number: int) -> float:
        return 1 / (number - 2)

    before = threading.active_count()
    results = map_threads(divide, broken_after(5))
    assert [next(results), next(results)] == [-0.5, -1.0]
    with pytest.raises(ZeroDivisionError):
        next(results)
    started = map_threads(slow_square, range(100))
    next(started)
    started.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before
