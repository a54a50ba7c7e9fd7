"""Limit the rate of requests to an endpoint: how many at a time, and when to retry.

Like in TCP, the number of concurrent requests grows by one for every successful round and is halved when the endpoint
reports an overload. Everything runs in one event loop, so nothing is locked.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import random
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from ragworth.llm.contract import Failure
from ragworth.llm.openai.replies import EndpointError

FIRST_WAIT, MAX_WAIT = 0.5, 20.0
"""Seconds before the first retry, doubling up to the second number."""

MAX_PAUSE = 3600.0
"""Maximum ``Retry-After``, so that one wrong header can't block a model for days."""

MAX_HEADER = 64
"""Maximum characters of a ``Retry-After``; no date has more."""


class QueuedRequest(NamedTuple):
    """A request waiting for a slot: retries come first, then the oldest."""

    new: bool
    number: int
    ready: asyncio.Future[float]


class RateLimiter:
    """Lets requests through to an endpoint."""

    def __init__(self, concurrency: int, deadline: float) -> None:
        self.most, self.deadline = concurrency, deadline
        self.width = float(concurrency)
        """Current limit of concurrent requests, between 1 and ``most``."""
        self.active = 0
        self._queue: list[QueuedRequest] = []
        self._numbers = itertools.count()
        self._paused_until = 0.0
        self._narrowed = -1.0
        self._timer: asyncio.TimerHandle | None = None

    async def enter(self, *, again: bool = False) -> float:
        """Wait for the right to one concurrent request, until `leave`, and return the time.

        ``again`` goes before new requests. Raises `EndpointError` if the endpoint's pause exceeds the deadline.
        """
        loop = asyncio.get_running_loop()
        if left := self._pause_beyond_deadline(loop.time()):
            raise _pause_error(left)
        entry = QueuedRequest(not again, next(self._numbers), loop.create_future())
        heapq.heappush(self._queue, entry)
        self._admit()
        try:
            return await entry.ready
        except asyncio.CancelledError:
            if entry.ready.done() and not entry.ready.cancelled():
                self.leave()
            raise

    def leave(self) -> None:
        """Release a slot."""
        self.active -= 1
        self._admit()

    def faster(self) -> None:
        """Record a successful request."""
        self.width = min(self.width + 1 / self.width, float(self.most))

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
        if left := self._pause_beyond_deadline(now):
            self._reject(_pause_error(left))

    def give_up(self) -> None:
        """Reject all waiting requests."""
        self._reject(EndpointError(Failure("rate-limited", "given up before it was sent"), 429))

    def _reject(self, error: EndpointError) -> None:
        for entry in self._queue:
            if not entry.ready.done():
                entry.ready.set_exception(EndpointError(error.failure, error.status))
        self._queue.clear()

    def _pause_beyond_deadline(self, now: float) -> float:
        """Seconds that are left of a pause which exceeds the deadline; otherwise 0."""
        left = self._paused_until - now
        return left if left > self.deadline else 0.0

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
            now = loop.time()
            if (wait := self._paused_until - now) > 0:
                self._timer = loop.call_later(wait + 1e-3, self._admit)
                return
            ready = heapq.heappop(self._queue).ready
            self.active += 1
            ready.set_result(now)


def _pause_error(left: float) -> EndpointError:
    return EndpointError(Failure("rate-limited", f"the endpoint asks for a pause, of which {left:.0f} s are left"), 429)


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
