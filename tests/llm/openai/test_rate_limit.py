"""How fast an endpoint is asked, in a loop whose clock jumps to whatever happens next."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from datetime import UTC, datetime
from typing import Any, TypeVar

import pytest

from ragworth.llm.openai.rate_limit import (
    RateLimiter,
    parse_retry_after,
)
from ragworth.llm.openai.replies import EndpointError

T = TypeVar("T")


class Jumping(selectors.DefaultSelector):
    """Instead of waiting, it says that the time has passed."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        found: list[Any] = super().select(0)
        if not found and timeout:
            self.now += timeout
        return found


class JumpingLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.clock = Jumping()
        super().__init__(self.clock)

    def time(self) -> float:
        return self.clock.now


def run(work: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(work)


def now() -> float:
    return asyncio.get_running_loop().time()


async def visits(gate: RateLimiter, count: int, seconds: float = 1.0) -> list[float]:
    """When each of ``count`` requests of some length was let through."""

    async def one() -> float:
        place = await gate.enter()
        await asyncio.sleep(seconds)
        gate.leave()
        return place

    return sorted(await asyncio.gather(*(one() for _ in range(count))))


def test_no_more_at_a_time_than_allowed() -> None:
    times = run(visits(RateLimiter(4, 120.0), 12))
    assert [round(time) for time in times] == [0] * 4 + [1] * 4 + [2] * 4


def test_overload_halves_and_success_adds_one_a_round() -> None:
    async def work() -> list[float]:
        gate = RateLimiter(16, 120.0)
        widths = []
        for began in (0.0, 0.0, 0.0):  # three of one round: they count once
            gate.slower(began)
        widths.append(gate.width)
        await asyncio.sleep(1)
        gate.slower(now())
        widths.append(gate.width)
        for _ in range(5):
            gate.faster()
        widths.append(gate.width)
        for _ in range(10):
            await asyncio.sleep(1)
            gate.slower(now())
        widths.append(gate.width)
        for _ in range(1000):
            gate.faster()
        return [*widths, gate.width]

    eight, four, more, least, most = run(work())
    assert (eight, four, least, most) == (8, 4, 1, 16)
    assert 5 <= more <= 5.2


def test_a_pause_beyond_the_deadline_is_told_at_once() -> None:
    async def work() -> float:
        gate = RateLimiter(1, 10.0)
        await gate.enter()
        waiting = asyncio.ensure_future(gate.enter())
        await asyncio.sleep(1)
        gate.pause(3000)
        for late in (waiting, gate.enter()):
            with pytest.raises(EndpointError) as caught:
                await late
            assert caught.value.failure.reason == "rate-limited"
            assert "3000 s" in caught.value.failure.detail
        return now()

    assert run(work()) == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("3", 3.0),
        (" 0.25 ", 0.25),
        ("Wed, 21 Oct 2015 07:28:10 GMT", 10.0),
        ("Wed, 21 Oct 2015 07:27:00 GMT", 0.0),
        ("", None),
        (None, None),
        ("soon", None),
        ("-3", None),
        ("Wed, 21 Oct 20150000000000000000 07:28:10 GMT", None),
        ("9" * 5000, None),
    ],
)
def test_retry_after_as_number_and_as_date(header: str | None, seconds: float | None) -> None:
    assert parse_retry_after(header, datetime(2015, 10, 21, 7, 28, tzinfo=UTC)) == seconds


def test_a_pause_holds_for_everybody() -> None:
    async def work() -> list[float]:
        gate = RateLimiter(2, 120.0)
        gate.pause(7)
        return await visits(gate, 3)

    assert run(work()) == pytest.approx([7, 7, 8], abs=0.1)
