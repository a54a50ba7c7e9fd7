"""Send requests to an endpoint with retries, within a hard deadline.

This module imports h11, so it is imported only when a model is first called.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import urlsplit

from ragworth.core.errors import JobStopped
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
from ragworth.llm.openai.protocol import NO_COUNTS, TokenCounts, read_counts, read_model_name
from ragworth.llm.openai.rate_limit import (
    PausedTooLong,
    RateLimiter,
    RateLimits,
    backoff_seconds,
    parse_retry_after,
)

MAX_REPLY = 32 << 20
"""Maximum bytes of a reply, both raw and decoded."""

THREADED_REPLY = 1 << 20
"""Replies of at least this many bytes are parsed in a separate thread, so that deadlines hold."""

MALFORMED_RETRIES = 2
"""Retries after an invalid reply, which may have been paid for."""

PROBE_RETRIES = 3
"""Retries while probing an endpoint, so that users soon hear if there is none."""

MAX_SILENT_DEADLINES = 3
"""Deadlines in a row without a complete reply to any request after which an endpoint is given up."""

T = TypeVar("T")


class HttpRequest(NamedTuple):
    """An HTTP request."""

    url: str
    body: dict[str, Any] | None = None
    retries: int | None = None
    """Maximum retries, if fewer than usual."""


class RequestTimer:
    """All HTTP requests for one request of the caller. They share its deadline.

    The clock starts when the first of them is let through, because waiting in our own queue is not the endpoint's
    fault.
    """

    def __init__(self) -> None:
        self.began: float | None = None
        self.spent = NO_COUNTS
        """The tokens of all replies, as far as they are reported."""
        self.wasted = NO_COUNTS
        """Those of replies that couldn't be used."""
        self.model = ""
        """The name under which the last reply came."""

    @property
    def seconds(self) -> float:
        return 0.0 if self.began is None else time.monotonic() - self.began


class UsableReply(NamedTuple, Generic[T]):
    """The content of a reply, its tokens, and the name of the model that answered, as the endpoint reports it."""

    result: T
    spent: TokenCounts
    model: str


class AttemptFailed(Exception):  # noqa: N818 (it may come right yet)
    """A failed attempt, and its consequences for the next one."""

    def __init__(
        self,
        cause: EndpointError,
        *,
        most: int,
        overload: bool = False,
        wait: float | None = None,
        spent: TokenCounts = NO_COUNTS,
    ) -> None:
        self.cause, self.most, self.overload, self.wait, self.spent = cause, most, overload, wait, spent
        super().__init__()


class EndpointChannel:
    """Event loop, client and rate limiter of an endpoint. Can be used from any thread but its own."""

    def __init__(self, limits: RateLimits, secret: ApiKey | None) -> None:
        self.limits = limits
        self._secret = secret
        self._loop = EventLoopThread()
        self._connections = Connections(secret, limits.concurrency)
        self._pace: RateLimiter | None = None
        self._last_reply = 0.0
        self._silent_since: float | None = None
        """When the first request began that timed out since the last reply."""
        self._refused_until = 0.0
        """Until when requests to an endpoint that was given up fail at once."""

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run ``work`` in the loop and wait for it. Must not be called from the loop itself."""
        return self._loop.run(work)

    def close(self) -> None:
        """Cancel requests under way and release connections, loop and thread."""
        self._loop.close(self._connections.close)

    def hurry(self) -> None:
        """Reject requests that wait for their turn."""

        async def work() -> None:
            if self._pace is not None:
                self._pace.give_up()

        self.run(work())

    def line(self, base: str, *, probing: bool = False) -> EndpointSession:
        """Open a session for one request of the caller, or for probing."""
        return EndpointSession(self, base, probing)

    def redact_tokens(self, tokens: Sequence[str]) -> tuple[str, ...]:
        """Remove tokens that spell out the key."""
        return tuple(tokens) if self._secret is None else self._secret.redact_tokens(tokens)

    async def ask(self, turn: RequestTimer, call: HttpRequest, read: Callable[[Any], T]) -> T:
        """Send a request with retries, and return ``read`` of the reply, or raise `EndpointError`.

        Raises `JobStopped` if no request had a reply for several deadlines.
        """
        if self._pace is None:
            self._pace = RateLimiter(self.limits)
        pace, place = self._pace, None
        try:
            if turn.began is None:
                place = await pace.enter()
                turn.began = time.monotonic()
            attempts = RetryState(turn, turn.began + self.limits.deadline)
            try:
                async with asyncio.timeout(attempts.left):
                    return await self._persist(pace, call, read, place, attempts)
            except TimeoutError:
                raise self._deadline_error(pace, attempts, call.url) from None
        except PausedTooLong as pause:
            raise EndpointError(Failure("rate-limited", str(pause)), 429) from None

    def _deadline_error(self, pace: RateLimiter, attempts: RetryState, url: str) -> Exception:
        """Why there is no reply at the deadline: the last error, or no reply at all."""
        if attempts.waiting and attempts.last is not None:
            return attempts.last
        if not attempts.waiting:
            pace.slower(attempts.began, alone=self._last_reply <= attempts.began)
            if self._is_silent(attempts.began):
                return self._silence_error(url)
        return EndpointError(Failure("timed-out", f"no complete reply within {self.limits.deadline:g} s"))

    def _is_silent(self, began: float) -> bool:
        """Return whether the endpoint is given up, now that a request that began then has timed out."""
        now, deadline = asyncio.get_running_loop().time(), self.limits.deadline
        if self._silent_since is None:
            self._silent_since = max(began, self._last_reply)
        if now - self._silent_since < MAX_SILENT_DEADLINES * deadline:
            return False
        self._refused_until = now + deadline
        return True

    def _silence_error(self, url: str) -> JobStopped:
        return JobStopped(
            f"{urlsplit(url).netloc} has completed no reply for {MAX_SILENT_DEADLINES} deadlines of "
            f"{self.limits.deadline:g} s\n  to do: is the server stuck? If it is only slow, the option deadline allows "
            "more time; then run the same again to go on"
        )

    async def _persist(
        self,
        pace: RateLimiter,
        call: HttpRequest,
        read: Callable[[Any], T],
        place: float | None,
        attempts: RetryState,
    ) -> T:
        allowed = self.limits.retries if call.retries is None else call.retries
        while True:
            attempts.number += 1
            attempts.waiting = True
            place = place or await pace.enter(again=True)
            attempts.began, attempts.waiting = place, False
            try:
                if attempts.began < self._refused_until:
                    raise self._silence_error(call.url)
                reply = await self._attempt(call, read)
                attempts.turn.spent = attempts.turn.spent.plus(reply.spent)
                attempts.turn.model = reply.model or attempts.turn.model
                pace.faster()
                return reply.result
            except AttemptFailed as setback:
                failed = setback
                attempts.turn.spent = attempts.turn.spent.plus(failed.spent)
                attempts.turn.wasted = attempts.turn.wasted.plus(failed.spent)
                if failed.overload:
                    pace.slower(place)
                if failed.wait is not None:
                    pace.pause(failed.wait)
            finally:
                pace.leave()
            place, attempts.last, attempts.waiting = None, failed.cause, True
            wait = backoff_seconds(attempts.number) if failed.wait is None else failed.wait
            if attempts.number > min(failed.most, allowed) or wait > attempts.left:
                raise failed.cause
            await asyncio.sleep(wait)

    async def _attempt(self, call: HttpRequest, read: Callable[[Any], T]) -> UsableReply[T]:
        """Make one attempt."""
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
        self._last_reply, self._silent_since = asyncio.get_running_loop().time(), None
        if len(reply.body) > THREADED_REPLY:
            return await asyncio.to_thread(self._understood, reply, read)
        return self._understood(reply, read)

    def _understood(self, reply: HttpReply, read: Callable[[Any], T]) -> UsableReply[T]:
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
            return UsableReply(read(value), read_counts(value), read_model_name(value))
        except RecursionError:
            raise AttemptFailed(malformed_reply("the reply is nested too deeply"), most=MALFORMED_RETRIES) from None
        except EndpointError as cause:
            again = cause.failure.reason in ("malformed", "server-error")
            most = MALFORMED_RETRIES if again else 0
            raise AttemptFailed(cause, most=most, spent=read_counts(value)) from None

    def _setback(self, cause: EndpointError, text: str, after: str | None) -> AttemptFailed:
        overload = is_overload(cause.status)
        most = MALFORMED_RETRIES if cause.failure.reason == "malformed" else self.limits.retries
        if not cause.failure.retry or is_quota_exhausted(cause.status, text):
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
    """One request of the caller on its way through a channel, with its base address and deadline.

    While ``probing``, every HTTP request has its own deadline and fewer retries.
    """

    def __init__(self, channel: EndpointChannel, base: str, probing: bool = False) -> None:
        self.channel = channel
        self.turn = RequestTimer()
        self._base = base
        self._probing = probing

    async def get(self, path: str, read: Callable[[Any], T]) -> T:
        """GET ``path`` and return ``read`` of the reply. A path from / is outside the /v1 part."""
        return await self._send(HttpRequest(self._url(path)), read)

    async def ask(self, path: str, body: dict[str, Any], read: Callable[[Any], T]) -> T:
        """POST ``body`` likewise."""
        return await self._send(HttpRequest(self._url(path), body), read)

    async def _send(self, call: HttpRequest, read: Callable[[Any], T]) -> T:
        if self._probing:
            return await self.channel.ask(RequestTimer(), call._replace(retries=PROBE_RETRIES), read)
        return await self.channel.ask(self.turn, call, read)

    def anew(self) -> EndpointSession:
        """A session for another request to the same address."""
        return EndpointSession(self.channel, self._base)

    def _url(self, path: str) -> str:
        return self._base.removesuffix("/v1") + path if path.startswith("/") else f"{self._base}/{path}"


class RetryState:
    """Failed attempts of a request, and its deadline."""

    def __init__(self, turn: RequestTimer, ends: float) -> None:
        self.turn = turn
        self.ends = ends
        self.number = 0
        self.began = 0.0
        self.waiting = True
        self.last: EndpointError | None = None

    @property
    def left(self) -> float:
        return self.ends - time.monotonic()


def encode_body(body: dict[str, Any] | None) -> bytes | None:
    """Encode the JSON of a request, rejecting lone surrogates."""
    try:
        return None if body is None else json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        raise EndpointError(Failure("refused", "the prompt contains a lone surrogate", retry=False)) from None
