"""Send JSON to an endpoint and read its replies: retries, one deadline for each call, and limits on replies.

aiohttp speaks HTTP, in an event loop of its own thread. That works everywhere: in scripts, from many threads at once,
and in Jupyter, where a loop is already running. The environment is read only for the location of certificates: no
proxies, no netrc and no cookies, so that prompts and keys go only to the endpoint named. Redirects are not followed for
the same reason. This module imports aiohttp, so it is imported only when a model is first called.
"""

from __future__ import annotations

import asyncio
import io
import os
import ssl
import threading
import zlib
from collections.abc import Coroutine, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

import aiohttp

from ragworth.core.errors import JobStopped
from ragworth.llm.contract import Failure
from ragworth.llm.openai.api_key import ApiKey
from ragworth.llm.openai.options import EndpointOptions
from ragworth.llm.openai.rate_limit import RateLimiter
from ragworth.llm.openai.replies import ALL_RETRIES, EndpointError, malformed_reply, one_line

CONNECT_SECONDS, IDLE_SECONDS = 10.0, 5.0
"""Timeout for connecting, and how long to keep an unused connection."""

MAX_REPLY = 32 << 20
"""Maximum bytes of a reply, both raw and decoded."""

PIECE_BYTES = 1 << 18
"""Maximum bytes decoded at a time."""

MAX_LINE, MAX_HEADERS = 100 << 10, 512
"""Maximum bytes of a line in the head of a reply, and maximum number of lines."""

LARGE_REQUEST = 1 << 20
"""Requests of more bytes are sent piece by piece."""

MAX_SILENT_DEADLINES = 3
"""Deadlines in a row without a complete reply to any request after which an endpoint is given up."""

_HEADERS = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "gzip"}

T = TypeVar("T")


class EndpointReply(NamedTuple):
    """A decoded reply, with the only header that is used."""

    status: int
    retry_after: str | None
    text: str


class EndpointClient:
    """The event loop, connections and rate limit of one endpoint. `run` and `close` may be called from any thread."""

    def __init__(self, url: str, options: EndpointOptions, secret: ApiKey | None) -> None:
        self.url = url
        self.options = options
        self._secret = secret
        self.process = os.getpid()
        """The process that it works in. A forked one has no thread for it."""
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._session: aiohttp.ClientSession | None = None
        self._closed = False
        self.pace = RateLimiter(options.concurrency, options.deadline)
        self.last_reply = 0.0
        self._silent_since: float | None = None
        """When the first request began that timed out since the last reply."""
        self._refused_until = 0.0
        """Until when requests to an endpoint that was given up fail at once."""

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run ``work`` in the loop and wait for it. An interrupt of the waiting thread stops the work too."""
        try:
            with self._lock:  # so that close() cancels it, or it isn't begun
                future = asyncio.run_coroutine_threadsafe(work, self._running_loop())
        except BaseException:  # it was closed, or no thread can be started
            work.close()
            raise
        try:
            return future.result()
        except CancelledError:
            raise _closed_error() from None
        except BaseException:
            future.cancel()
            raise

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        """The loop, started when it is first needed. For callers that hold the lock."""
        if self._closed:
            raise _closed_error()
        if self._loop is None:
            loop = asyncio.new_event_loop()
            thread = threading.Thread(target=_run_loop, args=(loop,), name="ragworth-endpoint", daemon=True)
            try:
                thread.start()
            except BaseException:  # a loop that nobody runs would never end what close() waits for
                loop.close()
                raise
            self._loop, self._thread = loop, thread
        return self._loop

    def hurry(self) -> None:
        """Reject requests that wait for their turn."""
        if os.getpid() != self.process:
            return
        with self._lock:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self.pace.give_up)

    def close(self) -> None:
        """Cancel requests under way, and release connections, loop and thread. Closing twice is harmless."""
        with self._lock:
            self._closed = True
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is None or thread is None or os.getpid() != self.process:
            return
        if thread is threading.current_thread():  # the garbage collector ran here, and a thread can't wait for itself
            loop.create_task(self._shut_down()).add_done_callback(lambda _: loop.stop())
            return
        asyncio.run_coroutine_threadsafe(self._shut_down(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()

    async def _shut_down(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        if self._session is not None:
            await self._session.close()
        await asyncio.sleep(0)  # let the loop close the connections
        with suppress(RuntimeError):  # no thread can be started during interpreter shutdown
            await asyncio.get_running_loop().shutdown_default_executor()

    async def exchange(self, path: str, content: bytes | None) -> EndpointReply:
        """Send a request once, and read the whole reply. Raises `EndpointError` if there is no readable one.

        A path from / is outside the /v1 part. No message of aiohttp that may quote the reply is passed on: a quotation
        may end within a key, and is not recognized then.
        """
        url = self.url.removesuffix("/v1") + path if path.startswith("/") else f"{self.url}/{path}"
        method = "GET" if content is None else "POST"
        try:
            async with self._open_session().request(
                method,
                url,
                # Not the session's headers, which aiohttp also sends to a proxy. Only here is the key revealed.
                headers=_HEADERS if self._secret is None else {**_HEADERS, "Authorization": self._secret.header()},
                data=io.BytesIO(content) if content and len(content) > LARGE_REQUEST else content,
                proxy=self.options.proxy,
                allow_redirects=False,
            ) as response:
                headers = response.headers
                body = await _read_body(response.content, ", ".join(headers.getall("Content-Encoding", ())))
                return EndpointReply(response.status, headers.get("Retry-After"), body.decode("utf-8", "replace"))
        except aiohttp.ClientConnectorError as error:
            problem = f"no connection to {url} ({error})"
        except aiohttp.ConnectionTimeoutError:
            problem = f"no connection to {url} (nothing within {CONNECT_SECONDS:g} s)"
        except aiohttp.ClientHttpProxyError as error:
            problem = f"no connection to {url} (the proxy refuses: HTTP {error.status})"
        except aiohttp.ClientResponseError:
            problem = "the reply is not HTTP, or its head is too large"
        except (aiohttp.ClientError, OSError, ValueError) as error:
            words = error.strerror if isinstance(error, OSError) else None
            problem = f"the connection broke off ({words or type(error).__name__})"
        # Raised here, so that no traceback leads into the frames that saw the key.
        raise EndpointError(Failure("unreachable", one_line(self.scrub(problem))), retries=ALL_RETRIES)

    def _open_session(self) -> aiohttp.ClientSession:
        """The session of the loop, opened when it is first needed; without limits of its own: those here apply."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=0,
                    keepalive_timeout=IDLE_SECONDS,
                    ssl=_ssl_context() if self.url.startswith("https:") else True,
                    resolver=aiohttp.ThreadedResolver(),
                ),
                timeout=aiohttp.ClientTimeout(sock_connect=CONNECT_SECONDS),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trust_env=False,
                max_line_size=MAX_LINE,
                max_field_size=MAX_LINE,
                max_headers=MAX_HEADERS,
            )
        return self._session

    def note_reply(self) -> None:
        """Record that the endpoint answers."""
        self.last_reply, self._silent_since = asyncio.get_running_loop().time(), None

    def note_timeout(self, began: float) -> JobStopped | None:
        """Slow down after a request without a reply; an error if the endpoint is given up."""
        self.pace.slower(began, alone=self.last_reply <= began)
        now, deadline = asyncio.get_running_loop().time(), self.options.deadline
        if self._silent_since is None:
            self._silent_since = max(began, self.last_reply)
        if now - self._silent_since < MAX_SILENT_DEADLINES * deadline:
            return None
        self._refused_until = now + deadline
        return self.silence_error(now)

    def silence_error(self, now: float) -> JobStopped | None:
        """The error for an endpoint that was given up; None for any other."""
        if now >= self._refused_until:
            return None
        return JobStopped(
            f"{urlsplit(self.url).netloc} has completed no reply for {MAX_SILENT_DEADLINES} deadlines of "
            f"{self.options.deadline:g} s\n  to do: is the server stuck? If it is only slow, the option deadline "
            "allows more time; then run the same again to go on"
        )

    def scrub(self, text: str) -> str:
        """Remove the key from a text."""
        return text if self._secret is None else self._secret.scrub(text)

    def redact(self, value: Any, text: str) -> Any:
        """Remove the key from a reply, of which ``text`` is the JSON."""
        return value if self._secret is None else self._secret.redact(value, text)

    def redact_tokens(self, tokens: Sequence[str]) -> tuple[str, ...]:
        """Remove tokens that spell out the key."""
        return tuple(tokens) if self._secret is None else self._secret.redact_tokens(tokens)


def _closed_error() -> EndpointError:
    return EndpointError(Failure("stopped", "the model was closed before the reply came"))


async def _read_body(content: aiohttp.StreamReader, encodings: str) -> bytearray:
    """Read a reply, decoded piece by piece; between pieces the event loop runs, so that deadlines hold."""
    is_compressed, body, received = is_gzip(encodings), bytearray(), 0
    stream = zlib.decompressobj(31)
    async for chunk in content.iter_any():
        received += len(chunk)
        for piece in decompress(stream, chunk) if is_compressed else (chunk,):
            body += piece
            if len(body) > MAX_REPLY:
                break
            if len(piece) == PIECE_BYTES:
                await asyncio.sleep(0)
        if max(received, len(body)) > MAX_REPLY:
            raise EndpointError(Failure("malformed", f"the reply has more than {MAX_REPLY >> 20} MiB"))
    if is_compressed and received and not stream.eof:
        raise malformed_reply("the reply is compressed and cut short")
    return body


def is_gzip(encodings: str) -> bool:
    """Return whether a reply is compressed, by its ``Content-Encoding``.

    A few kilobytes of gzip can stand for gigabytes, and layers multiply: more than one layer is rejected unread.
    """
    names = [name for name in (one.strip().lower() for one in encodings.split(",")) if name not in ("", "identity")]
    if names and names not in (["gzip"], ["x-gzip"]):
        raise malformed_reply("the reply is compressed in a way that can't be read; one layer of gzip can")
    return bool(names)


def decompress(stream: zlib._Decompress, data: bytes) -> Iterator[bytes]:
    """Yield decoded bytes in pieces of at most `PIECE_BYTES`. Bytes after the end of the stream are ignored."""
    size = PIECE_BYTES
    try:
        # A full piece may have more behind it, even if all input is consumed.
        while (data or size == PIECE_BYTES) and not stream.eof:
            piece = stream.decompress(data, PIECE_BYTES)
            data, size = stream.unconsumed_tail, len(piece)
            yield piece
    except zlib.error:
        raise malformed_reply("the reply is compressed and damaged") from None


def _ssl_context() -> ssl.SSLContext:
    """Certificates named by the environment, as many companies have their own; otherwise those of certifi."""
    if os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR"):
        return ssl.create_default_context()
    import certifi

    return ssl.create_default_context(cafile=certifi.where())


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Run the loop until it is stopped."""
    try:
        loop.run_forever()
    finally:
        loop.close()
