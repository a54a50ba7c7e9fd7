"""An endpoint on this machine for tests, with a toy model behind it, that misbehaves on request.

::

    with Endpoint() as server:                      # or Endpoint(kind="vllm"), Endpoint(behaviour)
        model = open_model(f"toy@{server.url}")
        server.script(status(429, retry_after="1"), HANG)   # for the next two requests to the model
        ...
        assert len(server.seen) == 5

Nothing but the standard library is used, and one thread whatever the number of connections.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from tests.llm.openai.endpoint_replies import Refusal, Traits, reply

MODEL_PATHS = ("/v1/chat/completions", "/v1/completions", "/completion")


class Seen(NamedTuple):
    """A request that came in. ``number`` counts those to the model, from 0; -1 for others, as to ``/tokenize``."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any
    number: int


@dataclass(frozen=True)
class Act:
    """How a request is answered. Without any field set: as it should be."""

    status: int = 200
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    edit: Callable[[Any], Any] | None = None
    """Changes the JSON that would have been sent."""
    raw: bytes | None = None
    """Everything that is sent, head and all; the connection ends with it, unless it is to be kept."""
    keep: bool = False
    delay: float = 0.0
    manner: Literal["whole", "hang", "drip", "reset", "silent", "endless"] = "whole"


GOOD = Act()
HANG = Act(manner="hang")
DRIP = Act(manner="drip")
"""A byte now and then, and never the end."""
RESET = Act(manner="reset")
"""Half of the reply, and then no connection."""
SILENT = Act(manner="silent")
"""No connection, without a word."""
ENDLESS = Act(manner="endless")
TRUNCATED = Act(body=b'{"choices": [{"message": {"role": "assist')
HTML = Act(body=b"<!DOCTYPE html><html><body>502 Bad Gateway</body></html>")


def status(code: int, message: str = "injected", retry_after: str = "") -> Act:
    """An error as OpenAI words it."""
    body = json.dumps({"error": {"message": message, "type": "injected", "code": None}}).encode()
    return Act(code, body, {"Retry-After": retry_after} if retry_after else {})


def edited(change: Callable[[Any], Any]) -> Act:
    """The proper reply, changed."""
    return Act(edit=change)


def slow(seconds: float) -> Act:
    return Act(delay=seconds)


class Endpoint:
    """A server on a free port of the loopback interface. ``behaviour`` decides for each request to the model how
    it is answered; keywords are `Traits`."""

    def __init__(
        self, behaviour: Callable[[Seen], Act] | None = None, *, tls: ssl.SSLContext | None = None, **traits: Any
    ) -> None:
        self.behaviour = behaviour
        self.others: Callable[[Seen], Act] | None = None
        """The same for other requests."""
        self.tls = tls
        self.traits = Traits(**traits)
        self.seen: list[Seen] = []
        self.active = 0
        self.most_at_once = 0
        self.connections = 0
        self.url = ""
        self._script: deque[Act] = deque()
        self._numbers = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="test-endpoint", daemon=True)

    def script(self, *acts: Act) -> None:
        """How the next requests to the model are answered, in order of arrival; earlier scripts end."""
        self._script = deque(acts)

    def asked(self) -> list[Seen]:
        """The requests to the model."""
        return [one for one in self.seen if one.number >= 0]

    def __enter__(self) -> Endpoint:
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()
        self.url = "{}://{}:{}".format("https" if self.tls else "http", *self._server.sockets[0].getsockname())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _start(self) -> asyncio.Server:
        return await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=512, ssl=self.tls)

    async def _stop(self) -> None:
        self._server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, for as many requests as come over it."""
        self.connections += 1
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while await self._answer(reader, writer):
                pass
        writer.close()
        with suppress(ConnectionError, asyncio.CancelledError):
            await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request; whether the connection stays."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = head[0].split(" ")
        path = urlsplit(target).path  # a proxy is asked for a whole address
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        content = await reader.readexactly(int(headers.get("content-length", 0)))
        number = -1
        if path in MODEL_PATHS:
            number, self._numbers = self._numbers, self._numbers + 1
        seen = Seen(method, path, headers, json.loads(content) if content else None, number)
        self.seen.append(seen)
        self.active += 1
        self.most_at_once = max(self.most_at_once, self.active)
        try:
            return await self._act(self._chosen(seen), seen, writer)
        finally:
            self.active -= 1

    def _chosen(self, seen: Seen) -> Act:
        if seen.number < 0:
            return GOOD if self.others is None else self.others(seen)
        if self._script:
            return self._script.popleft()
        return GOOD if self.behaviour is None else self.behaviour(seen)

    async def _act(self, act: Act, seen: Seen, writer: asyncio.StreamWriter) -> bool:
        await asyncio.sleep(act.delay)
        if act.manner == "hang":
            await asyncio.sleep(3600)
        if act.manner == "silent":
            return False
        if act.raw is not None:
            writer.write(act.raw)
            await writer.drain()
            return act.keep
        code, body = self._reply(act, seen)
        lines = [f"HTTP/1.1 {code} Whatever", "Content-Type: application/json"]
        lines += [f"{name}: {value}" for name, value in act.headers.items()]
        length = 1 << 40 if act.manner == "endless" else len(body)
        writer.write("\r\n".join([*lines, f"Content-Length: {length}", "", ""]).encode())
        if act.manner == "whole":
            writer.write(body)
            await writer.drain()
            return True
        if act.manner == "reset":
            writer.write(body[: len(body) // 2])
            await writer.drain()
            return False
        while True:  # a drip now and then, or all that the line can take
            writer.write(body[:1] if act.manner == "drip" else b" " * (1 << 20))
            await writer.drain()
            await asyncio.sleep(0.05 if act.manner == "drip" else 0)

    def _reply(self, act: Act, seen: Seen) -> tuple[int, bytes]:
        if act.body is not None:
            return act.status, act.body
        key = self.traits.key
        if key and seen.headers.get("authorization") != f"Bearer {key}":
            return 401, json.dumps({"error": {"message": f"wrong key: {seen.headers.get('authorization')}"}}).encode()
        try:
            value = reply(self.traits, seen.path, seen.body)
        except Refusal as refusal:
            return refusal.status, json.dumps(refusal.body).encode()
        return act.status, json.dumps(value if act.edit is None else act.edit(value)).encode()
