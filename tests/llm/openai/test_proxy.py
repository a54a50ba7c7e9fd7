"""A proxy that the user names: requests go through it, and it never sees a key that TLS protects."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from ragworth.core.errors import ModelError
from ragworth.llm.contract import Generate, Generated, Prompt
from ragworth.llm.openai import rate_limit
from ragworth.llm.openai.api_key import OWN_VARIABLE
from ragworth.llm.openai.model import open_model
from tests.llm.openai.endpoint import Endpoint
from tests.llm.openai.test_tls import certificate  # noqa: F401

KEY = "sk-test-5ecret-0123456789"
ASK = Generate(Prompt.chat("hello"), max_tokens=2)


class Proxy:
    """A proxy for encrypted connections on this machine, which records the head of each request to it."""

    def __init__(self, refusal: bytes = b"") -> None:
        self.heads: list[str] = []
        self.url = ""
        self._refusal = refusal
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Proxy:
        self._thread.start()
        starting = asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._server = asyncio.run_coroutine_threadsafe(starting, self._loop).result()
        self.url = "http://{}:{}".format(*self._server.sockets[0].getsockname())
        return self

    def __exit__(self, *error: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _stop(self) -> None:
        self._server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            head = await reader.readuntil(b"\r\n\r\n")
            self.heads.append(head.decode())
            if self._refusal:
                writer.write(self._refusal)
                await writer.drain()
            else:
                host, _, port = head.split(b" ")[1].decode().partition(":")
                there, back = await asyncio.open_connection(host, int(port))
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await asyncio.gather(_pump(reader, back), _pump(there, writer))
        writer.close()


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await source.read(1 << 16):
            sink.write(data)
            await sink.drain()
    sink.close()


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OWN_VARIABLE, KEY)
    monkeypatch.setattr(rate_limit, "FIRST_WAIT", 0.005)


@pytest.fixture
def tls(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:  # noqa: F811
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.with_name("cert.pem")))
    with Endpoint(tls=context, key=KEY) as server:
        yield server


def test_requests_go_through_the_proxy() -> None:
    with Endpoint(key=KEY) as proxy:
        model = open_model("toy@http://localhost:1", proxy=proxy.url)  # nothing is there
        found = model.generate([ASK])[0]
        model.close()
        assert isinstance(found, Generated)
        assert {one.headers["host"] for one in proxy.seen} == {"localhost:1"}
        assert "proxy" not in repr(model.partial.identity), "it changes no answer"


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
def test_a_proxy_of_an_encrypted_connection_sees_only_the_host(tls: Endpoint) -> None:
    with Proxy() as proxy:
        model = open_model(f"toy@{tls.url}", proxy=proxy.url)
        found = model.generate([ASK] * 2)
        model.close()
        assert all(isinstance(one, Generated) for one in found)
        assert all(head.startswith(f"CONNECT {tls.url.removeprefix('https://')} ") for head in proxy.heads)
        assert "5ecret" not in "".join(proxy.heads)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
def test_a_proxy_that_refuses(tls: Endpoint) -> None:
    with Proxy(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n") as proxy:
        model = open_model(f"toy@{tls.url}", proxy=proxy.url)
        with pytest.raises(ModelError, match="the proxy refuses: HTTP 407"):
            model.generate([ASK])
        model.close()
        assert not tls.seen


def test_a_proxy_on_another_machine_that_reads_everything_is_a_warning() -> None:
    with pytest.warns(UserWarning, match=r"texts and the API key go to proxy\.example unencrypted"):
        open_model("toy@http://localhost:8000", proxy="http://proxy.example:3128")
    open_model("toy@https://llm.example", proxy="http://proxy.example:3128")  # warnings are errors here


@pytest.mark.parametrize("proxy", ["proxy:3128", "ftp://proxy:21", "http://user:pa55@proxy:3128", "http://", ""])
def test_what_is_no_proxy(proxy: str) -> None:
    with pytest.raises(ModelError, match="proxy is not an address") as caught:
        open_model("toy@http://127.0.0.1:9", proxy=proxy)
    assert "pa55" not in str(caught.value)
