"""Connections to one endpoint, kept open for the next request, and replies read from them within limits.

httpcore speaks HTTP; which connection is used is decided here. httpcore's own pool looks at every connection for every
request, several times, and that costs more than the request itself (benchmarks/endpoint.py).

Of the environment nothing is read but where certificates are: no proxies and no netrc, so that prompts and
keys go to the endpoint that was named and nowhere else. Redirects are not followed for the same reason.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from typing import NamedTuple
from urllib.parse import quote, urlsplit

import httpcore

from ragworth.llm.openai.compression import PIECE, decoder_for
from ragworth.llm.openai.secret import Secret

CONNECT = 10.0
"""Seconds for a connection to come about."""

IDLE = 5.0
"""Seconds for which an unused connection is kept."""

_HEADERS = [(b"Content-Type", b"application/json"), (b"Accept", b"application/json"), (b"Accept-Encoding", b"gzip")]
_EXTENSIONS = {"timeout": {"connect": CONNECT}}


_LOGGERS = (logging.getLogger("httpcore.connection"), logging.getLogger("httpcore.http11"))


class TooLarge(Exception):  # noqa: N818 (its name says what is the matter)
    """A reply has more bytes than are read, as it came or decoded."""


class HttpReply(NamedTuple):
    """A reply as it came, decoded. Of its headers only the one that is used."""

    status: int
    retry_after: str | None
    body: bytearray


class Connections:
    """Connections to one host. All methods run in one event loop."""

    def __init__(self, secret: Secret | None, keep: int) -> None:
        self._secret = secret
        self._keep = keep
        """How many unused connections to keep."""
        self._idle: list[httpcore.AsyncHTTPConnection] = []
        self._targets: dict[str, httpcore.URL] = {}
        self._context: ssl.SSLContext | None = None
        self._filters = [] if secret is None else [_KeyFilter(secret)]
        for logger in _LOGGERS:
            for one in self._filters:
                logger.addFilter(one)

    async def send(self, url: str, content: bytes | None, largest: int) -> HttpReply:
        """Send a request and read the whole reply.

        Errors are httpcore's, `TooLarge`, and `Trouble` for a reply whose encoding can't be read.
        """
        target = self._target(url)
        connection = await self._connection(target)
        try:
            response = await connection.handle_async_request(self._request(target, content))
            try:
                return await _read(response, largest)
            finally:
                await response.aclose()
        finally:
            if connection.is_idle() and not connection.is_closed() and len(self._idle) < self._keep:
                self._idle.append(connection)
            else:
                await connection.aclose()

    async def close(self) -> None:
        """Close all connections that no request uses."""
        while self._idle:
            await self._idle.pop().aclose()

    def leave_logs(self) -> None:
        """Stop taking the key out of what httpcore logs."""
        for logger in _LOGGERS:
            for one in self._filters:
                logger.removeFilter(one)

    async def _connection(self, target: httpcore.URL) -> httpcore.AsyncHTTPConnection:
        """The connection that was used last, since it is the least likely to have been closed; or a new one."""
        while self._idle:
            connection = self._idle.pop()
            if not connection.has_expired():
                return connection
            await connection.aclose()
        if self._context is None and target.scheme == b"https":
            self._context = _certificates()
        return httpcore.AsyncHTTPConnection(target.origin, self._context, keepalive_expiry=IDLE)

    def _request(self, target: httpcore.URL, content: bytes | None) -> httpcore.Request:
        """The key is added here, at the last moment, so that it is nobody's argument or attribute before."""
        headers = [(b"Host", _host(target)), *_HEADERS]
        if self._secret is not None:
            headers.append((b"Authorization", self._secret.header().encode("ascii")))
        if content is not None:
            headers.append((b"Content-Length", b"%d" % len(content)))
        method = b"GET" if content is None else b"POST"
        return httpcore.Request(method, target, headers=headers, content=content, extensions=_EXTENSIONS)

    def _target(self, url: str) -> httpcore.URL:
        if url not in self._targets:
            parts = urlsplit(url)
            host = (parts.hostname or "").encode("idna" if not url.isascii() else "ascii")
            path = quote(parts.path, safe="/%:@!$&'()*+,;=~")
            self._targets[url] = httpcore.URL(
                scheme=parts.scheme.encode(), host=host, port=parts.port, target=path.encode()
            )
        return self._targets[url]


class _KeyFilter(logging.Filter):
    """Takes the key out of what httpcore logs: it logs a reply's headers, and a server may repeat the key there."""

    def __init__(self, secret: Secret) -> None:
        super().__init__()
        self._secret = secret

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = self._secret.scrub(record.getMessage()), ()
        return True


async def _read(response: httpcore.Response, largest: int) -> HttpReply:
    """The reply, decoded a piece at a time; between pieces the loop goes on, so that deadlines hold."""
    found = _found(response.headers)
    decoder, body, received = decoder_for(found.get(b"content-encoding", "")), bytearray(), 0
    async for chunk in response.aiter_stream():
        received += len(chunk)
        for piece in (chunk,) if decoder is None else decoder.decode(chunk):
            body += piece
            if len(body) > largest:
                raise TooLarge
            if decoder is not None and len(piece) == PIECE:
                await asyncio.sleep(0)
        if received > largest:
            raise TooLarge
    if decoder is not None and received:
        decoder.finish()
    return HttpReply(response.status, found.get(b"retry-after"), body)


def _found(headers: list[tuple[bytes, bytes]]) -> dict[bytes, str]:
    """The headers that matter; what comes more than once is one list."""
    found: dict[bytes, str] = {}
    for name, value in headers:
        key = name.lower()
        if key in (b"content-encoding", b"retry-after"):
            text = value.decode("latin-1")
            found[key] = f"{found[key]}, {text}" if key in found else text
    return found


def _host(target: httpcore.URL) -> bytes:
    host = b"[%b]" % target.host if b":" in target.host else target.host
    return host if target.port is None else b"%b:%d" % (host, target.port)


def _certificates() -> ssl.SSLContext:
    """Those that the environment names, as many firms have their own; else those of certifi."""
    if os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR"):
        return ssl.create_default_context()
    import certifi

    return ssl.create_default_context(cafile=certifi.where())
