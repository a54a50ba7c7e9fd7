"""Limit the rate of requests to an endpoint: how many at a time, how many per minute, and when to retry.

Like in TCP, the number of concurrent requests grows by one for every successful round and is halved when the endpoint
reports an overload. Everything runs in one event loop, so nothing is locked.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import random
from collections import deque
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple

MINUTE = 60.0
FIRST_WAIT, MAX_WAIT = 0.5, 20.0
"""Seconds before the first retry, doubling up to the second number."""

MAX_PAUSE = 3600.0
"""Maximum ``Retry-After``, so that one wrong header can't block a model for days."""

MAX_HEADER = 64
"""Maximum characters of a ``Retry-After``; no date has more."""


class RateLimits(NamedTuple):
    """Limits set by the user."""

    concurrency: int = 16
    deadline: float = 120.0
    """Seconds for a request with all its retries, from when it is first let through."""
    retries: int = 6
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None


class PausedTooLong(Exception):  # noqa: N818 (its name says what is the matter)
    """The endpoint wants a pause that exceeds the request's deadline."""


class SpentAmount:
    """An amount that was spent, and when. It is corrected once the true amount is known."""

    __slots__ = ("amount", "counted", "time")

    def __init__(self, time: float, amount: float) -> None:
        self.time, self.amount, self.counted = time, amount, True


class MinuteWindow:
    """At most ``most`` in any 60 seconds.

    Remembers everything spent in the last minute: a bucket that refills would let through up to twice as much in its
    first minute.
    """

    def __init__(self, most: float | None) -> None:
        self.most = most
        self._spent: deque[SpentAmount] = deque()
        self._sum = 0.0

    def wait(self, amount: float, now: float) -> float:
        """Seconds until ``amount`` may be spent. An amount above the limit may be spent after an idle minute."""
        if self.most is None:
            return 0.0
        while self._spent and self._spent[0].time <= now - MINUTE:
            gone = self._spent.popleft()
            gone.counted = False
            self._sum -= gone.amount
        room, needed, when = self.most - self._sum, min(amount, self.most) - 1e-9, now
        for spent in self._spent:
            if room >= needed:
                break
            room += spent.amount
            when = spent.time + MINUTE
        return when - now

    def spend(self, amount: float, now: float) -> SpentAmount:
        spent = SpentAmount(now, amount)
        if self.most is not None:
            self._spent.append(spent)
            self._sum += amount
        return spent

    def correct(self, spent: SpentAmount, amount: float) -> None:
        """Replace the expected amount with the true one."""
        if self.most is not None and spent.counted:
            self._sum += amount - spent.amount
            spent.amount = amount


class RequestSlot(NamedTuple):
    """The right to one concurrent request, until `RateLimiter.leave`."""

    began: float
    tokens: SpentAmount


class QueuedRequest(NamedTuple):
    """A request waiting for a slot: retries come first, then the oldest."""

    new: bool
    number: int
    cost: float
    ready: asyncio.Future[RequestSlot]


class RateLimiter:
    """Lets requests through to an endpoint."""

    def __init__(self, limits: RateLimits) -> None:
        self.limits = limits
        self.width = float(limits.concurrency)
        """Current limit of concurrent requests, between 1 and ``limits.concurrency``."""
        self.active = 0
        self._requests = MinuteWindow(limits.requests_per_minute)
        self._tokens = MinuteWindow(limits.tokens_per_minute)
        self._queue: list[QueuedRequest] = []
        self._numbers = itertools.count()
        self._paused_until = 0.0
        self._narrowed = -1.0
        self._timer: asyncio.TimerHandle | None = None

    async def enter(self, cost: float = 0.0, *, again: bool = False) -> RequestSlot:
        """Wait for a slot. ``cost`` is the approximate number of tokens; ``again`` goes before new requests."""
        loop = asyncio.get_running_loop()
        self._refuse_if_paused(loop.time())
        waiting = QueuedRequest(not again, next(self._numbers), cost, loop.create_future())
        heapq.heappush(self._queue, waiting)
        self._admit()
        try:
            return await waiting.ready
        except asyncio.CancelledError:
            if waiting.ready.done() and not waiting.ready.cancelled():
                self.leave()
            raise

    def leave(self) -> None:
        """Release a slot."""
        self.active -= 1
        self._admit()

    def correct(self, place: RequestSlot, tokens: int) -> None:
        """Record how many tokens a request really took."""
        self._tokens.correct(place.tokens, tokens)

    def faster(self) -> None:
        """Record a successful request."""
        self.width = min(self.width + 1 / self.width, float(self.limits.concurrency))

    def slower(self, began: float, *, alone: bool = False) -> None:
        """Record an overload seen by a request that began then. Requests of one round reduce the limit only once.

        ``alone``: nothing was answered since, so the next request goes alone.
        """
        if began > self._narrowed:
            self._narrowed = asyncio.get_running_loop().time()
            self.width = 1.0 if alone else max(1.0, self.width / 2)

    def pause(self, seconds: float) -> None:
        """Let nobody through for a while. Requests that can't wait that long fail at once."""
        now = asyncio.get_running_loop().time()
        self._paused_until = max(self._paused_until, now + min(seconds, MAX_PAUSE))
        try:
            self._refuse_if_paused(now)
        except PausedTooLong as error:
            for waiting in self._queue:
                if not waiting.ready.done():
                    waiting.ready.set_exception(PausedTooLong(*error.args))
            self._queue.clear()

    def give_up(self) -> None:
        """Reject all waiting requests."""
        for waiting in self._queue:
            if not waiting.ready.done():
                waiting.ready.set_exception(PausedTooLong("given up before it was sent"))
        self._queue.clear()

    def _refuse_if_paused(self, now: float) -> None:
        left = self._paused_until - now
        if left > self.limits.deadline:
            raise PausedTooLong(f"the endpoint asks for a pause, of which {left:.0f} s are left")

    def _admit(self) -> None:
        """Let through all requests that may go now, and schedule the next one."""
        loop = asyncio.get_running_loop()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._queue and self.active < max(1, int(self.width)):
            if self._queue[0].ready.done():  # whoever waited has given up
                heapq.heappop(self._queue)
                continue
            now, cost = loop.time(), self._queue[0].cost
            wait = max(self._paused_until - now, self._requests.wait(1, now), self._tokens.wait(cost, now))
            if wait > 0:
                self._timer = loop.call_later(wait + 1e-3, self._admit)
                return
            ready = heapq.heappop(self._queue).ready
            self.active += 1
            self._requests.spend(1, now)
            ready.set_result(RequestSlot(now, self._tokens.spend(cost, now)))


def backoff_seconds(attempt: int) -> float:
    """Seconds to wait after a number of failed attempts: doubling, with the upper half random.

    Randomness keeps many clients from returning all at once; it affects no result, so it needs no seed.
    """
    wait = min(FIRST_WAIT * 2.0 ** (attempt - 1), MAX_WAIT)
    return wait * (0.5 + random.random() / 2)


def parse_retry_after(header: str | None, now: datetime | None = None) -> float | None:
    """Seconds that a ``Retry-After`` header asks for, as a number or date; None if it is invalid."""
    text = (header or "").strip()
    if len(text) > MAX_HEADER:
        return None
    if text.replace(".", "", 1).isdecimal() and text.isascii():
        return float(text)
    try:
        date = parsedate_to_datetime(text)
        date = date if date.tzinfo else date.replace(tzinfo=UTC)
        return max(0.0, (date - (now or datetime.now(UTC))).total_seconds())
    except (ValueError, OverflowError):  # a year of twenty digits, or a date that a time zone puts out of range
        return None
