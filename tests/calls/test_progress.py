"""One line on how a job goes: rewritten on a terminal, now and then in a file."""

from __future__ import annotations

import io

import pytest

from ragworth.calls.budget import JobTally, Price
from ragworth.calls.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr("ragworth.calls.progress.time.monotonic", found)
    return found


def test_a_line_says_rate_time_left_store_and_failures() -> None:
    tally = JobTally(None, asked=1616, distinct=1616, cached=1204, done=409, failed=3)
    line = Progress().line(tally, 1588, 10.84)
    assert line == "412 of 2,000 calls · 38/s · 42 s left · 1,204 from the store · 3 failed"


def test_slow_rates_have_a_decimal_and_money_is_shown_when_it_is_known() -> None:
    tally = JobTally(Price(1.0, 10.0), asked=5, distinct=5, done=5, prompt_tokens=500_000, new_tokens=50_000)
    assert Progress().line(tally, 0, 10.0) == "5 calls · 0.5/s · 55,000 tokens/s · 0 from the store · 0 failed · cost 1"
    free = JobTally(Price(0.0, 0.0), asked=1, distinct=1, done=1)
    assert Progress().line(free, 0, 2.0) == "1 call · 0.5/s · 0 from the store · 0 failed · free"


def test_the_time_that_the_first_responses_took_is_not_that_of_the_others(clock: Clock) -> None:
    """It includes loading the model: two calls after a minute don't mean four hours for 500."""
    stream = Terminal()
    shown = Progress(stream=stream)
    tally = JobTally(None, asked=500, distinct=500)
    lines = []
    for seconds, calls in ((60, 2), (10, 20), (10, 20), (100, 458)):
        clock.now += seconds
        tally.done += calls
        tally.prompt_tokens += 100 * calls
        shown.update(tally, 500 - tally.done)
        lines.append(stream.getvalue().split("\r")[-1].partition(" · 0 from")[0])
    assert lines == [
        "2 of 500 calls",
        "22 of 500 calls · 2.0/s · 4 min left · 200 tokens/s",
        "42 of 500 calls · 2.0/s · 4 min left · 200 tokens/s",
        "500 calls · 2.8/s · 278 tokens/s",
    ]


def test_work_that_asks_nobody(clock: Clock) -> None:
    stream = Terminal()
    shown = Progress(stream=stream)
    shown.working("encoding", 1024, 4096)
    clock.now += 10
    shown.working("encoding", 2048, 4096)
    clock.now += 0.01
    shown.working("encoding", 3072, 4096)  # too soon
    clock.now += 10
    shown.working("encoding", 4096, 4096)
    lines = [line.rstrip() for line in stream.getvalue().split("\r")[1:]]
    assert lines == [
        "encoding: 1,024 of 4,096",
        "encoding: 2,048 of 4,096 · 102/s · 20 s left",
        "encoding: 4,096 of 4,096 · 154/s",
    ]
    assert stream.getvalue().endswith("\n")
