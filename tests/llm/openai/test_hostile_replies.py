"""Replies that are meant to do harm: too large, compressed many times over, with wrong lengths and endless heads."""

from __future__ import annotations

import json
import threading
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ragworth.llm.contract import MAX_CHARACTERS, Failure, Generate, Generated, Prompt
from ragworth.llm.openai import call, client, rate_limit, replies
from ragworth.llm.openai.call import EndpointCall
from ragworth.llm.openai.client import EndpointClient
from ragworth.llm.openai.model import OpenAIModel, open_model
from ragworth.llm.openai.options import EndpointOptions
from ragworth.llm.openai.replies import EndpointError
from tests.llm.openai.endpoint import DRIP, Act, Endpoint

ASK = Generate(Prompt.chat("hello"), max_tokens=2)
GOOD_BODY = json.dumps({"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}).encode()


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limit, "FIRST_WAIT", 0.005)


@pytest.fixture
def server() -> Iterator[Endpoint]:
    with Endpoint() as server:
        yield server


@pytest.fixture
def model(server: Endpoint) -> Iterator[OpenAIModel]:
    model = open_model(f"toy@{server.url}", retries=3, deadline=20)
    assert model.card
    server.seen.clear()
    yield model
    model.close()


def ask(server: Endpoint, model: OpenAIModel, act: Act) -> Generated | Failure:
    server.script(*[act] * 4)
    return model.generate([ASK])[0]


def zeros(mebibytes: int, form: int = 31) -> bytes:
    maker = zlib.compressobj(9, zlib.DEFLATED, form)
    return b"".join(maker.compress(bytes(1 << 20)) for _ in range(mebibytes)) + maker.flush()


def packed(data: bytes, form: int = 31) -> bytes:
    maker = zlib.compressobj(9, zlib.DEFLATED, form)
    return maker.compress(data) + maker.flush()


@pytest.mark.parametrize(
    ("body", "encoding", "detail"),
    [
        (lambda: packed(zeros(48)), "gzip, gzip", "one layer"),
        (lambda: zeros(48), "gzip", "more than 4 MiB"),
    ],
)
def test_a_small_reply_that_stands_for_a_large_one(
    server: Endpoint,
    model: OpenAIModel,
    monkeypatch: pytest.MonkeyPatch,
    body: Callable[[], bytes],
    encoding: str,
    detail: str,
) -> None:
    monkeypatch.setattr(client, "MAX_REPLY", 4 << 20)
    act = Act(body=body(), headers={"Content-Encoding": encoding})
    tracemalloc.start()
    try:
        found = ask(server, model, act)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(found, Failure)
    assert found.reason == "malformed"
    assert detail in found.detail
    assert peak < 24 << 20, "of 48 MiB"


@pytest.mark.parametrize("encoding", ["gzip", "x-gzip"])
def test_an_honest_reply_may_be_compressed(server: Endpoint, model: OpenAIModel, encoding: str) -> None:
    found = ask(server, model, Act(body=packed(GOOD_BODY), headers={"Content-Encoding": encoding}))
    assert isinstance(found, Generated)
    assert found.outputs[0].text == "Hi"


def test_an_answer_much_longer_than_asked_for_is_cut(server: Endpoint, model: OpenAIModel) -> None:
    choice = {"message": {"content": "Hi " * 3_500_000}, "finish_reason": "stop"}
    found = ask(server, model, Act(body=json.dumps({"choices": [choice]}).encode()))
    assert isinstance(found, Generated)
    (output,) = found.outputs
    assert output.finish == "length"
    assert len(output.text) == ASK.max_tokens * MAX_CHARACTERS


def raw(*headers: bytes, body: bytes = GOOD_BODY, start: bytes = b"HTTP/1.1 200 OK") -> Act:
    return Act(raw=b"\r\n".join([start, *headers, b"", body]))


@pytest.mark.parametrize(
    "act",
    [
        raw(b"X: " + b"x" * 300_000, b"Content-Length: 9"),
        raw(*[b"X: y"] * 60_000, b"Content-Length: 9"),
        raw(b"Content-Length: 99999"),
        raw(b"Content-Length: -1"),
        raw(b"Content-Length: " + b"9" * 5000),
        raw(b"Content-Length: 5", b"Content-Length: 6"),
        raw(b"Transfer-Encoding: chunked"),
        raw(b"Transfer-Encoding: chunked", body=b"f" * 5000 + b"\r\n"),
        raw(b"Transfer-Encoding: chunked", body=b"5\r\nhello\r\n0\r\n" + b"T: x\r\n" * 60_000),
        raw(b"Content-Length: 3", start=b"HTTP/1.1 99999999999999999999 OK"),
        raw(b"Upgrade: x", start=b"HTTP/1.1 101 Switching", body=b""),
        raw(b"Content-Encoding: gzip", b"Content-Length: 0", body=b""),
        Act(body=packed(GOOD_BODY)[:-20], headers={"Content-Encoding": "gzip"}),
        Act(raw=b"\x00\xff" * 1000),
        Act(raw=b"HTTP/1.1 100 Continue\r\n\r\n" * 1000),
    ],
)
def test_heads_and_lengths_that_are_wrong(server: Endpoint, model: OpenAIModel, act: Act) -> None:
    found = ask(server, model, act)
    assert isinstance(found, Failure)
    assert found.reason in ("malformed", "unreachable")
    assert found.detail.isprintable()
    server.script()
    assert isinstance(model.generate([ASK])[0], Generated), "and nothing of it is left for the next request"


@pytest.mark.parametrize("headers", [{"X": "x" * 90_000}, {f"X-{i}": "x" * 200 for i in range(400)}])
def test_a_large_head(server: Endpoint, model: OpenAIModel, headers: dict[str, str]) -> None:
    assert isinstance(ask(server, model, Act(body=GOOD_BODY, headers=headers)), Generated)


def test_a_second_reply_is_not_taken_for_that_to_the_next_request(server: Endpoint, model: OpenAIModel) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(GOOD_BODY)
    server.script(Act(raw=(head + GOOD_BODY) * 2, keep=True))
    found = [model.generate([ASK])[0] for _ in range(2)]
    assert all(isinstance(one, Generated) for one in found)
    texts = [one.outputs[0].text for one in found if isinstance(one, Generated)]
    assert texts[0] == "Hi"
    assert texts[1] != "Hi"


def test_a_drip_that_is_compressed_ends_with_the_deadline(server: Endpoint) -> None:
    model = open_model(f"toy@{server.url}", deadline=0.7)
    assert model.card
    begun = time.monotonic()
    server.script(Act(manner="drip", body=zeros(1), headers={"Content-Encoding": "gzip"}), DRIP)
    found = model.generate([ASK])[0]
    model.close()
    assert isinstance(found, Failure)
    assert found.reason == "timed-out"
    assert time.monotonic() - begun < 5


def test_more_values_than_are_worth_reading(
    server: Endpoint, model: OpenAIModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replies, "MAX_VALUES", 1000)
    found = ask(server, model, Act(body=b'{"choices": [' + b"{}," * 1000 + b"{}]}"))
    assert isinstance(found, Failure)
    assert (found.reason, found.detail) == ("malformed", "the reply has more than 1,000 values")


def test_the_deadline_holds_while_a_large_reply_is_read(server: Endpoint) -> None:
    server.behaviour = lambda seen: Act(body=b'{"x": "' + b"x" * call.THREADED_REPLY + b'"}')
    asking = EndpointClient(f"{server.url}/v1", EndpointOptions(deadline=0.5), None)
    ready = threading.Event()

    def read(value: Any) -> bool:
        return ready.wait(10)

    begun = time.monotonic()
    try:
        with pytest.raises(EndpointError) as caught:
            asking.run(EndpointCall(asking).send("chat/completions", {}, read))
        assert caught.value.failure.reason == "timed-out"
        assert time.monotonic() - begun < 8, "the loop was not held up by the reader"
    finally:
        ready.set()
        asking.close()
