"""The way to an endpoint: requests sent as often as it takes, within a hard deadline.

This module imports h11, so it is itself imported only when a model is first asked.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NamedTuple, TypeVar

from ragworth.llm.contract import Failure
from ragworth.llm.openai.api_key import ApiKey
from ragworth.llm.openai.connections import BrokenConnection, Connections, HttpReply, NoConnection, ReplyTooLarge
from ragworth.llm.openai.errors import (
    EndpointError,
    error_for_status,
    is_overload,
    is_quota_exhausted,
    malformed_reply,
    one_line,
    parse_reply,
)
from ragworth.llm.openai.loop import EventLoopThread
from ragworth.llm.openai.protocol import read_counts
from ragworth.llm.openai.rate_limit import (
    PausedTooLong,
    RateLimiter,
    RateLimits,
    RequestSlot,
    backoff_seconds,
    parse_retry_after,
)

MAX_REPLY = 32 << 20
"""Bytes of a reply that are read, at most, both as they come and decoded."""

THREADED_REPLY = 1 << 20
"""Bytes from which on a reply is read in a thread of its own, so that the event loop goes on and deadlines hold."""

MALFORMED_RETRIES = 2
"""How often a reply that cannot be understood is asked for anew: it may have been paid for."""

PROBE_RETRIES = 3
"""Repetitions while finding out what an endpoint can do. Who waits then wants to hear soon that there is none."""

T = TypeVar("T")


class HttpRequest(NamedTuple):
    """One HTTP request. ``cost`` is how many tokens it takes, about."""

    url: str
    body: dict[str, Any] | None = None
    cost: float = 0.0
    retries: int | None = None
    """Repetitions after which to give up, where they are to be fewer than usual."""


class RequestTimer:
    """All HTTP requests that one request of the caller's takes. They share its deadline.

    The clock starts when the first of them is let through: waiting in our own queue is not the endpoint's fault.
    """

    def __init__(self) -> None:
        self.began: float | None = None

    @property
    def seconds(self) -> float:
        return 0.0 if self.began is None else time.monotonic() - self.began


class AttemptFailed(Exception):  # noqa: N818 (it may come right yet)
    """An attempt that failed, and what it says about the next one."""

    def __init__(self, cause: EndpointError, *, most: int, overload: bool = False, wait: float | None = None) -> None:
        self.cause, self.most, self.overload, self.wait = cause, most, overload, wait
        super().__init__()


class EndpointChannel:
    """A loop, a client and a pace for one endpoint. Can be used from any thread but its own."""

    def __init__(self, limits: RateLimits, secret: ApiKey | None) -> None:
        self.limits = limits
        self._secret = secret
        self._loop = EventLoopThread()
        self._connections = Connections(secret, limits.concurrency)
        self._pace: RateLimiter | None = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do ``work`` in the loop and wait for it. Not to be called from the loop itself."""
        return self._loop.run(work)

    def close(self) -> None:
        """Give up what is under way and let go of connections, loop and thread."""
        self._loop.close(self._connections.close)

    def hurry(self) -> None:
        """Turn requests away that wait for their turn."""

        async def work() -> None:
            if self._pace is not None:
                self._pace.give_up()

        self.run(work())

    def line(self, base: str, *, probing: bool = False) -> EndpointSession:
        """For one request of the caller's, or for finding out what there is."""
        return EndpointSession(self, base, probing)

    def redact_tokens(self, tokens: Sequence[str]) -> tuple[str, ...]:
        """Tokens without those that spell out the key."""
        return tuple(tokens) if self._secret is None else self._secret.redact_tokens(tokens)

    async def ask(self, turn: RequestTimer, call: HttpRequest, read: Callable[[Any], T]) -> T:
        """Send a request as often as it takes, and give what ``read`` makes of the reply, or raise `Trouble`."""
        if self._pace is None:
            self._pace = RateLimiter(self.limits)
        pace, place = self._pace, None
        try:
            if turn.began is None:
                place = await pace.enter(call.cost)
                turn.began = time.monotonic()
            attempts = RetryState(turn.began + self.limits.deadline)
            try:
                async with asyncio.timeout(attempts.left):
                    return await self._persist(pace, call, read, place, attempts)
            except TimeoutError:
                raise self._late(pace, attempts) from None
        except PausedTooLong as pause:
            raise EndpointError(Failure("rate-limited", str(pause)), 429) from None

    def _late(self, pace: RateLimiter, attempts: RetryState) -> EndpointError:
        """Why there is no reply at the deadline: the last thing that went wrong, or nothing came at all."""
        if attempts.waiting and attempts.last is not None:
            return attempts.last
        if not attempts.waiting:
            pace.slower(attempts.began)
        return EndpointError(Failure("timed-out", f"no complete reply within {self.limits.deadline:g} s"))

    async def _persist(
        self,
        pace: RateLimiter,
        call: HttpRequest,
        read: Callable[[Any], T],
        place: RequestSlot | None,
        attempts: RetryState,
    ) -> T:
        allowed = self.limits.retries if call.retries is None else call.retries
        while True:
            attempts.number += 1
            attempts.waiting = True
            place = place or await pace.enter(call.cost, again=True)
            attempts.began, attempts.waiting = place.began, False
            try:
                result, spent = await self._once(call, read)
                if spent:
                    pace.correct(place, spent)
                pace.faster()
                return result
            except AttemptFailed as setback:
                failed = setback
                if failed.overload:
                    pace.slower(place.began)
                if failed.wait is not None:
                    pace.pause(failed.wait)
            finally:
                pace.leave()
            place, attempts.last, attempts.waiting = None, failed.cause, True
            wait = backoff_seconds(attempts.number) if failed.wait is None else failed.wait
            if attempts.number > min(failed.most, allowed) or wait > attempts.left:
                raise failed.cause
            await asyncio.sleep(wait)

    async def _once(self, call: HttpRequest, read: Callable[[Any], T]) -> tuple[T, int]:
        """One attempt: what ``read`` makes of the reply, and the tokens that it took."""
        content = encode_body(call.body)
        try:
            reply = await self._connections.send(call.url, content, MAX_REPLY)
        except NoConnection as error:
            raise self._unreachable(f"no connection to {call.url} ({error})") from None
        except BrokenConnection as error:
            raise self._unreachable(f"the connection broke off ({error})") from None
        except ReplyTooLarge:
            raise AttemptFailed(malformed_reply(f"the reply has more than {MAX_REPLY >> 20} MiB"), most=0) from None
        except EndpointError as cause:
            raise AttemptFailed(cause, most=MALFORMED_RETRIES) from None
        if len(reply.body) > THREADED_REPLY:
            return await asyncio.to_thread(self._understood, reply, read)
        return self._understood(reply, read)

    def _understood(self, reply: HttpReply, read: Callable[[Any], T]) -> tuple[T, int]:
        text = reply.body.decode("utf-8", "replace")
        try:
            if not 200 <= reply.status < 300:
                raise error_for_status(reply.status, text, self._scrub)
            value = parse_reply(text, self._scrub)
        except EndpointError as cause:
            raise self._setback(cause, text, reply.retry_after) from None
        try:
            if self._secret is not None:
                value = self._secret.redact(value, text)
            return read(value), sum(read_counts(value))
        except RecursionError:
            raise AttemptFailed(malformed_reply("the reply is nested too deeply"), most=MALFORMED_RETRIES) from None
        except EndpointError as cause:
            raise AttemptFailed(cause, most=MALFORMED_RETRIES if cause.failure.reason == "malformed" else 0) from None

    def _setback(self, cause: EndpointError, text: str, after: str | None) -> AttemptFailed:
        overload = is_overload(cause.status)
        most = MALFORMED_RETRIES if cause.failure.reason == "malformed" else self.limits.retries
        if not cause.failure.retry or is_quota_exhausted(text):
            most = 0
        wait = parse_retry_after(after) if overload and most else None
        return AttemptFailed(cause, most=most, overload=overload, wait=wait)

    def _unreachable(self, detail: str) -> AttemptFailed:
        return AttemptFailed(
            EndpointError(Failure("unreachable", one_line(self._scrub(detail)))), most=self.limits.retries
        )

    def _scrub(self, text: str) -> str:
        return text if self._secret is None else self._secret.scrub(text)


class EndpointSession:
    """One request of the caller's on its way through a channel: knows addresses and the deadline they share.

    While ``probing``, every HTTP request has a deadline of its own and is repeated less often.
    """

    def __init__(self, channel: EndpointChannel, base: str, probing: bool = False) -> None:
        self.channel = channel
        self.turn = RequestTimer()
        self._base = base
        self._probing = probing

    async def get(self, path: str, read: Callable[[Any], T]) -> T:
        """What ``read`` makes of the reply. A path from / is outside of the /v1 part."""
        return await self._send(HttpRequest(self._url(path)), read)

    async def ask(self, path: str, body: dict[str, Any], read: Callable[[Any], T]) -> T:
        """The same with something to send. Its tokens are taken to be a quarter of its characters."""
        new = body.get("max_tokens") or body.get("max_completion_tokens") or 0
        cost = sum(len(str(body.get(name, ""))) for name in ("messages", "prompt")) / 4 + new * body.get("n", 1)
        return await self._send(HttpRequest(self._url(path), body, cost), read)

    async def _send(self, call: HttpRequest, read: Callable[[Any], T]) -> T:
        if self._probing:
            return await self.channel.ask(RequestTimer(), call._replace(retries=PROBE_RETRIES), read)
        return await self.channel.ask(self.turn, call, read)

    def anew(self) -> EndpointSession:
        """For another request to the same address."""
        return EndpointSession(self.channel, self._base)

    def _url(self, path: str) -> str:
        return self._base.removesuffix("/v1") + path if path.startswith("/") else f"{self._base}/{path}"


class RetryState:
    """What became of a request so far, and until when it may go on."""

    def __init__(self, ends: float) -> None:
        self.ends = ends
        self.number = 0
        self.began = 0.0
        self.waiting = True
        self.last: EndpointError | None = None

    @property
    def left(self) -> float:
        return self.ends - time.monotonic()


def encode_body(body: dict[str, Any] | None) -> bytes | None:
    """The JSON of a request. Half a character, which no reply could be the answer to, is refused here."""
    try:
        return None if body is None else json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        raise EndpointError(Failure("refused", "the prompt has half a character in it", retry=False)) from None
