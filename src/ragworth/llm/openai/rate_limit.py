"""Limit the rate of requests to an endpoint, and send them again until a deadline.

Like in TCP, the number of concurrent requests grows by one for every successful round and is halved when the endpoint
reports an overload. Everything runs in one event loop, so nothing is locked.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import json
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ragworth.llm.contract import NO_USAGE, Failure, Usage
from ragworth.llm.openai.replies import (
    EndpointError,
    TokenCounts,
    error_for_status,
    malformed_reply,
    parse_reply,
    read_counts,
    read_model_name,
)

if TYPE_CHECKING:
    from ragworth.llm.openai.client import EndpointClient

FIRST_WAIT, MAX_WAIT = 0.5, 20.0
"""Seconds before the first retry, doubling up to the second number."""

MAX_PAUSE = 3600.0
"""Maximum ``Retry-After``, so that one wrong header can't block a model for days."""

MAX_HEADER = 64
"""Maximum characters of a ``Retry-After``; no date has more."""


THREADED_REPLY = 1 << 20
"""Replies of more characters are parsed in a separate thread, so that deadlines hold."""

T = TypeVar("T")


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


class EndpointReply(NamedTuple):
    """A decoded reply, with the only header that is used."""

    status: int
    retry_after: str | None
    text: str


class EndpointCall:
    """One request of the caller, and all HTTP requests for it, which share its deadline.

    The clock starts when the first of them is let through, because waiting in our own queue is not the endpoint's
    fault.
    """

    def __init__(self, client: EndpointClient, retries: int) -> None:
        self.client = client
        self._retries = retries
        self._began: float | None = None
        self.counts = TokenCounts()
        """The tokens of all replies, as far as they are reported."""
        self.wasted = TokenCounts()
        """Those of replies that couldn't be used."""
        self.model = ""
        """The name under which the last reply came."""

    @property
    def seconds(self) -> float:
        return 0.0 if self._began is None else time.monotonic() - self._began

    @property
    def spent(self) -> Usage:
        """The cost of the call so far, as far as the endpoint reports it."""
        return Usage(*self.counts, self.seconds) if any(self.counts) else NO_USAGE

    async def send(self, path: str, body: dict[str, Any] | None, read: Callable[[Any], T]) -> T:
        """POST ``body``, or GET without one, with retries, and return ``read`` of the reply, or raise `EndpointError`.

        Raises `JobStopped` if no request had a reply for several deadlines.
        """
        client, pace, content = self.client, self.client.pace, encode_body(body)
        place: float | None = None  # when it was let through
        last: EndpointError | None = None
        if self._began is None:
            place = await pace.enter()
            self._began = time.monotonic()
        try:
            async with asyncio.timeout(self._left):
                for attempt in itertools.count(1):
                    place = place or await pace.enter(again=True)
                    try:
                        if stopped := client.silence_error(place):
                            raise stopped
                        reply = await client.exchange(path, content, reconnect=attempt == 1)
                        client.note_reply()
                        if len(reply.text) > THREADED_REPLY:
                            result = await asyncio.to_thread(self.understand, reply, read)
                        else:
                            result = self.understand(reply, read)
                        pace.faster()
                        return result
                    except EndpointError as error:
                        last = error
                        wait = self._wait_before_retry(error, place, attempt)
                    finally:
                        pace.leave()
                    place = None
                    await asyncio.sleep(wait)
        except TimeoutError:
            failure = Failure("timed-out", f"no complete reply within {client.options.deadline:g} s")
            if place is None:  # waiting, not for a reply
                raise last or EndpointError(failure) from None
            raise client.note_timeout(place) or EndpointError(failure) from None
        raise AssertionError  # the loop has no end

    @property
    def _left(self) -> float:
        return self.client.options.deadline - self.seconds

    def _wait_before_retry(self, error: EndpointError, began: float, attempt: int) -> float:
        """Seconds to wait before the next attempt; raises the error if there is none."""
        if error.is_overload:
            self.client.pace.slower(began)
        if error.wait is not None:
            self.client.pace.pause(error.wait)
        wait = backoff_seconds(attempt) if error.wait is None else error.wait
        if attempt > min(error.retries, self._retries) or wait > self._left:
            raise error
        return wait

    def understand(self, reply: EndpointReply, read: Callable[[Any], T]) -> T:
        """Read a reply, and count its tokens."""
        try:
            if not 200 <= reply.status < 300:
                raise error_for_status(reply.status, reply.text, self.client.scrub)
            value = parse_reply(reply.text, self.client.scrub)
        except EndpointError as error:
            if error.is_overload and error.retries:
                error.wait = parse_retry_after(reply.retry_after)
            raise
        counts = TokenCounts()
        try:
            value = self.client.redact(value, reply.text)
            counts = read_counts(value)
            result = read(value)
        except EndpointError:
            self.wasted = self.wasted.plus(counts)
            raise
        except RecursionError:
            raise malformed_reply("the reply is nested too deeply") from None
        finally:
            self.counts = self.counts.plus(counts)
        self.model = read_model_name(value) or self.model
        return result


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


def encode_body(body: dict[str, Any] | None) -> bytes | None:
    """Encode the JSON of a request, rejecting lone surrogates."""
    try:
        return None if body is None else json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        raise EndpointError(Failure("refused", "the prompt contains a lone surrogate", retry=False)) from None
