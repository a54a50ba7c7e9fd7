"""One request of the caller to an endpoint: its HTTP requests, with retries, until one deadline."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ragworth.llm.contract import NO_USAGE, Failure, Generate, Usage
from ragworth.llm.openai.rate_limit import backoff_seconds, parse_retry_after
from ragworth.llm.openai.replies import (
    EndpointError,
    TokenCounts,
    error_for_status,
    malformed_reply,
    parse_reply,
    read_counts,
    read_model_name,
)
from ragworth.llm.openai.requests import RefusedParameters, RequestFormat, find_refused, request_body

if TYPE_CHECKING:
    from ragworth.llm.openai.client import EndpointClient, EndpointReply

THREADED_REPLY = 1 << 20
"""Replies of more characters are parsed in a separate thread, so that deadlines hold."""

PROBE_RETRIES = 3
"""Retries while probing an endpoint, so that users soon hear if there is none."""

T = TypeVar("T")


class EndpointCall:
    """One request of the caller, and all HTTP requests for it, which share its deadline.

    The clock starts when the first of them is let through, because waiting in our own queue is not the endpoint's
    fault.
    """

    def __init__(self, client: EndpointClient, *, is_probe: bool = False) -> None:
        self.client = client
        self._is_probe = is_probe
        """While probing, every HTTP request has its own deadline and fewer retries."""
        self._retries = min(client.options.retries, PROBE_RETRIES) if is_probe else client.options.retries
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
        if self._began is None or self._is_probe:
            place = await pace.enter()
            self._began = time.monotonic()
        try:
            async with asyncio.timeout(self._left):
                for attempt in itertools.count(1):
                    place = place or await pace.enter(again=True)
                    try:
                        if stopped := client.silence_error(place):
                            raise stopped
                        reply = await client.exchange(path, content)
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

    async def complete(
        self, model: str, request: Generate, form: RequestFormat, refused: RefusedParameters, read: Callable[[Any], T],
        *, seed: int = 0, n: int = 1,
    ) -> T:  # fmt: skip
        """Send a request for texts without the parameters that the endpoint refuses.

        A parameter is remembered if the request succeeds without it. An error that stays the same didn't mean it.
        """
        path = "chat/completions" if form.chat else "completions"
        without, last = refused.names, ""
        while True:
            body = request_body(model, request, form._replace(without=without), seed=seed, n=n)
            try:
                result = await self.send(path, body, read)
            except EndpointError as error:
                name = "" if error.failure.detail == last else find_refused(error, body)
                if not name:
                    raise
                without, last = without | {name}, error.failure.detail
            else:
                refused.names |= without
                return result

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


def encode_body(body: dict[str, Any] | None) -> bytes | None:
    """Encode the JSON of a request, rejecting lone surrogates."""
    try:
        return None if body is None else json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        raise EndpointError(Failure("refused", "the prompt contains a lone surrogate", retry=False)) from None
