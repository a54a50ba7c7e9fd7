"""Keep connections to an endpoint open, and read replies from them within limits.

h11 speaks HTTP/1.1 and asyncio moves the bytes. A general client takes several times the CPU time, most of it for
connections that the request doesn't use (benchmarks/endpoint.py).

The environment is read only for the location of certificates: no proxies and no netrc, so that prompts and keys go only
to the endpoint named. Redirects are not followed for the same reason.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import time
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import h11

from ragworth.llm.openai.api_key import ApiKey
from ragworth.llm.openai.errors import malformed_reply

CONNECT_SECONDS = 10.0
"""Timeout for connecting, in seconds."""

IDLE_SECONDS = 5.0
"""Seconds to keep an unused connection."""

MAX_HEAD, CHUNK_BYTES = 100 << 10, 64 << 10
"""Maximum bytes of a reply's head, and bytes read at a time."""

DECODED_BYTES = 1 << 18
"""Maximum bytes decoded at a time."""

_GZIP = 31
"""zlib's code for gzip."""

_HEADERS = [(b"Content-Type", b"application/json"), (b"Accept", b"application/json"), (b"Accept-Encoding", b"gzip")]


class NoConnection(Exception):  # noqa: N818 (its name says what is the matter)
    """Nobody answers at the address."""


class BrokenConnection(Exception):  # noqa: N818
    """The connection ended before the reply did, or the reply is not HTTP."""


class ReplyTooLarge(Exception):  # noqa: N818
    """A reply exceeds the size limit, raw or decoded."""


class HttpReply(NamedTuple):
    """A decoded reply, with the only header that is used."""

    status: int
    retry_after: str | None
    body: bytearray


class Target(NamedTuple):
    """Where a request goes."""

    host: str
    port: int
    path: bytes
    header: bytes
    """The value of the Host header."""


class Connections:
    """Connections to one host. All methods run in one event loop."""

    def __init__(self, secret: ApiKey | None, keep: int) -> None:
        self._secret = secret
        self._keep = keep
        """How many unused connections to keep."""
        self._idle: list[Connection] = []
        self._targets: dict[str, Target] = {}
        self._context: ssl.SSLContext | None = None

    async def send(self, url: str, content: bytes | None, largest: int) -> HttpReply:
        """Send a request and read the whole reply.

        Raises the errors of this module, and `EndpointError` for a reply with an unreadable encoding.
        """
        target = self._target(url)
        connection = self._pop_unused() or await self._connect(target, tls=url.startswith("https:"))
        is_reusable = False
        try:
            response = await connection.request(self._request(target, content), content)
            reply = await _read_reply(response, connection.chunks(), largest)
            is_reusable = connection.is_reusable()
        except h11.ProtocolError as error:
            raise BrokenConnection(str(error)) from None
        except OSError as error:
            raise BrokenConnection(str(error) or type(error).__name__) from None
        finally:
            if is_reusable and len(self._idle) < self._keep:
                self._idle.append(connection)
            else:
                connection.close()
        return reply

    async def close(self) -> None:
        """Close all unused connections."""
        while self._idle:
            self._idle.pop().close()
        await asyncio.sleep(0)  # let the loop close them

    def _pop_unused(self) -> Connection | None:
        """The connection used last, since it is the least likely to have been closed."""
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_stale():
                return connection
            connection.close()
        return None

    async def _connect(self, target: Target, *, tls: bool) -> Connection:
        if tls and self._context is None:
            self._context = _ssl_context()
        loop = asyncio.get_running_loop()
        reader = CountingReader(limit=CHUNK_BYTES, loop=loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                transport, _ = await loop.create_connection(
                    lambda: protocol, target.host, target.port, ssl=self._context, happy_eyeballs_delay=0.25
                )
        except TimeoutError:
            raise NoConnection(f"nothing within {CONNECT_SECONDS:g} s") from None
        except (OSError, UnicodeError) as error:
            raise NoConnection(str(error) or type(error).__name__) from None
        return Connection(reader, asyncio.StreamWriter(transport, protocol, reader, loop))

    def _request(self, target: Target, content: bytes | None) -> h11.Request:
        """Build the request. The key is added only here, so it is never an argument or attribute elsewhere."""
        headers = [(b"Host", target.header), *_HEADERS]
        if self._secret is not None:
            headers.append((b"Authorization", self._secret.header().encode("ascii")))
        if content is not None:
            headers.append((b"Content-Length", b"%d" % len(content)))
        return h11.Request(method=b"GET" if content is None else b"POST", target=target.path, headers=headers)

    def _target(self, url: str) -> Target:
        if url not in self._targets:
            try:
                self._targets[url] = _parse_target(url)
            except UnicodeError:
                raise NoConnection("it has no valid host name") from None
        return self._targets[url]


class Connection:
    """A connection, for one request at a time."""

    def __init__(self, reader: CountingReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD)
        self._used = 0.0

    async def request(self, request: h11.Request, content: bytes | None) -> h11.Response:
        """Send a request, and read the reply up to its body."""
        sent = [self._http.send(request), self._http.send(h11.Data(data=content or b"")), self._end()]
        self._writer.write(b"".join(part for part in sent if part))
        with suppress(ConnectionError):  # a server may reply and hang up before it has read everything
            await self._writer.drain()
        while True:
            event = await self._event()
            if isinstance(event, h11.Response):
                return event
            if not isinstance(event, h11.InformationalResponse):
                raise BrokenConnection("the server closed the connection without a reply")

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body of the reply as it arrives."""
        while isinstance(event := await self._event(), h11.Data):
            yield bytes(event.data)
        if not isinstance(event, h11.EndOfMessage):
            raise BrokenConnection("the reply has no end")

    def is_reusable(self) -> bool:
        """Whether another request can follow: both sides are done, and nothing unexpected has arrived."""
        both = (self._http.our_state, self._http.their_state)
        if both != (h11.DONE, h11.DONE) or self._http.trailing_data[0] or self._reader.unread:
            return False
        self._http.start_next_cycle()
        self._used = time.monotonic()
        return True

    def is_stale(self) -> bool:
        """Whether the server has closed the connection, may be about to, or has sent something unasked."""
        is_gone = self._reader.at_eof() or self._reader.unread > 0 or self._writer.transport.is_closing()
        return is_gone or time.monotonic() - self._used > IDLE_SECONDS

    def close(self) -> None:
        self._writer.transport.abort()

    def _end(self) -> bytes | None:
        return self._http.send(h11.EndOfMessage())

    async def _event(self) -> h11.Event | type[h11.PAUSED]:
        while True:
            event = self._http.next_event()
            if event is not h11.NEED_DATA:
                return event  # type: ignore[return-value]
            data = await self._reader.read(CHUNK_BYTES)
            if not data and self._http.their_state is h11.SEND_RESPONSE:
                raise BrokenConnection("the server closed the connection without a reply")
            self._http.receive_data(data)


class CountingReader(asyncio.StreamReader):
    """A stream that knows how many received bytes are still unread."""

    unread = 0

    def feed_data(self, data: Any) -> None:
        self.unread += len(data)
        super().feed_data(data)

    async def read(self, n: int = -1) -> bytes:
        data = await super().read(n)
        self.unread -= len(data)
        return data


async def _read_reply(response: h11.Response, chunks: AsyncIterator[bytes], largest: int) -> HttpReply:
    """Decode the reply piece by piece; between pieces the event loop runs, so that deadlines hold."""
    found = _read_headers(response)
    decoder, body, received = decoder_for(found.get(b"content-encoding", "")), bytearray(), 0
    async for chunk in chunks:
        received += len(chunk)
        for piece in (chunk,) if decoder is None else decoder.decode(chunk):
            body += piece
            if len(body) > largest:
                raise ReplyTooLarge
            if decoder is not None and len(piece) == DECODED_BYTES:
                await asyncio.sleep(0)
        if received > largest:
            raise ReplyTooLarge
    if decoder is not None and received:
        decoder.finish()
    return HttpReply(response.status_code, found.get(b"retry-after"), body)


def _read_headers(response: h11.Response) -> dict[bytes, str]:
    """The relevant headers; repeated ones are joined to one list."""
    found: dict[bytes, str] = {}
    for name, value in response.headers:
        if name in (b"content-encoding", b"retry-after"):
            text = value.decode("latin-1")
            found[name] = f"{found[name]}, {text}" if name in found else text
    return found


def _parse_target(url: str) -> Target:
    parts = urlsplit(url)
    host = (parts.hostname or "").encode("ascii" if url.isascii() else "idna")
    written = b"[%b]" % host if b":" in host else host
    default = 443 if parts.scheme == "https" else 80
    header = written if parts.port is None else b"%b:%d" % (written, parts.port)
    path = quote(parts.path, safe="/%:@!$&'()*+,;=~").encode()
    return Target(host.decode(), default if parts.port is None else parts.port, path, header)


def _ssl_context() -> ssl.SSLContext:
    """Certificates named by the environment, as many companies have their own; otherwise those of certifi."""
    if os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR"):
        return ssl.create_default_context()
    import certifi

    return ssl.create_default_context(cafile=certifi.where())


class ReplyDecoder:
    """Decodes one layer of gzip piece by piece, so that a limit on the decoded size is enforced before it is exceeded.

    Bytes after its end are ignored. A few kilobytes of gzip can stand for gigabytes, and layers multiply: everything
    else is rejected without decoding a byte.
    """

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(_GZIP)

    def decode(self, data: bytes) -> Iterator[bytes]:
        """Yield the decoded bytes in pieces of at most `DECODED_BYTES`."""
        try:
            # A full piece may have more behind it, even if all input is consumed.
            size = DECODED_BYTES
            while (data or size == DECODED_BYTES) and not self._stream.eof:
                piece = self._stream.decompress(data, DECODED_BYTES)
                data, size = self._stream.unconsumed_tail, len(piece)
                yield piece
        except zlib.error:
            raise malformed_reply("the reply is compressed and damaged") from None

    def finish(self) -> None:
        """Raise if the end is missing."""
        if not self._stream.eof:
            raise malformed_reply("the reply is compressed and cut short")


def decoder_for(encodings: str) -> ReplyDecoder | None:
    """Return the decoder for a ``Content-Encoding`` header; None if nothing is compressed."""
    names = [name for name in (one.strip().lower() for one in encodings.split(",")) if name not in ("", "identity")]
    if not names:
        return None
    if names not in (["gzip"], ["x-gzip"]):
        raise malformed_reply("the reply is compressed in a way that can't be read; one layer of gzip can")
    return ReplyDecoder()
