"""Servers that fail, stall, lie or are overloaded: a failure with its reason, in time, and nothing left behind."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import threading
import time
import warnings
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from ragworth.calls import job
from ragworth.core.errors import JobStopped
from ragworth.llm.contract import Failure, Generate, Generated, Prompt
from ragworth.llm.openai import client, rate_limit
from ragworth.llm.openai.model import OpenAIModel, open_model
from tests.llm.openai import endpoint_toy as toy
from tests.llm.openai.endpoint import (
    DRIP,
    ENDLESS,
    GOOD,
    HANG,
    HTML,
    RESET,
    SILENT,
    TRUNCATED,
    Act,
    Endpoint,
    Seen,
    edited,
    slow,
    status,
)

ASK = Generate(Prompt.chat("hello"), max_tokens=2)
EMPTY = edited(lambda value: value | {"choices": []})
NULL = edited(lambda value: value | {"choices": [{"message": {"content": None}}]})

ABANDONED = edited(lambda value: value | {"choices": [one | {"finish_reason": "error"} for one in value["choices"]]})


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limit, "FIRST_WAIT", 0.005)


@pytest.fixture
def server() -> Iterator[Endpoint]:
    with Endpoint() as server:
        yield server


def probed(server: Endpoint, **options: Any) -> OpenAIModel:
    """A model that has asked already what it needs to know, so that a script meets what comes after."""
    model = open_model(f"toy@{server.url}", **options)
    assert model.card
    server.seen.clear()
    return model


def ask(server: Endpoint, *acts: Act, **options: Any) -> Generated | Failure:
    model = probed(server, **options)
    server.script(*acts)
    try:
        return model.generate([ASK])[0]
    finally:
        model.close()


@pytest.mark.parametrize(
    "acts",
    [
        [status(500), status(502), status(503)],
        [status(429), status(429, retry_after="0.01")],
        [SILENT, RESET, SILENT],
        [TRUNCATED, HTML],
        [EMPTY, NULL],
        [Act(body=b'{"error": {"message": "busy", "code": 503}}')],
        [ABANDONED],
        [Act(body=b"\xff\xfe"), Act(200, b"gzip?", {"Content-Encoding": "gzip"})],
    ],
)
def test_what_passes_is_waited_for(server: Endpoint, acts: list[Act]) -> None:
    found = ask(server, *acts)
    assert isinstance(found, Generated), found
    assert len(server.asked()) == len(acts) + 1


@pytest.mark.parametrize(
    ("act", "reason", "asked"),
    [
        (status(400, "bad \x1b[31m request"), "refused", 1),
        (status(404), "refused", 1),
        (status(401), "unauthorised", 1),
        (Act(302, b"", {"Location": "http://127.0.0.1:9/"}), "refused", 1),
        (status(500), "server-error", 5),
        (status(429), "rate-limited", 5),
        (status(429, "insufficient_quota"), "rate-limited", 1),
        (SILENT, "unreachable", 5),
        (RESET, "unreachable", 5),
        (TRUNCATED, "malformed", 3),
        (NULL, "malformed", 3),
        (ABANDONED, "server-error", 3),
        (edited(lambda value: [value]), "malformed", 3),
    ],
)
def test_what_does_not_pass_is_given_up(server: Endpoint, act: Act, reason: str, asked: int) -> None:
    found = ask(server, *[act] * 9, retries=4)
    assert isinstance(found, Failure)
    assert found.reason == reason
    assert found.retry == (reason not in ("refused", "unauthorised"))
    assert found.detail.isprintable()
    assert len(server.asked()) == asked


@pytest.mark.parametrize("act", [HANG, DRIP, slow(5)])
def test_nothing_holds_a_call_beyond_its_deadline(server: Endpoint, act: Act) -> None:
    begun = time.monotonic()
    found = ask(server, act, deadline=0.7)
    assert time.monotonic() - begun < 3
    assert found == Failure("timed-out", "no complete reply within 0.7 s")


def questions(number: int) -> list[Generate]:
    return [Generate(Prompt.chat(f"hello {each}"), max_tokens=2) for each in range(number)]


def test_a_server_that_never_answers_is_given_up_after_three_deadlines(server: Endpoint) -> None:
    model = probed(server, deadline=0.7, concurrency=16)
    server.script(*[HANG] * 100)
    begun = time.monotonic()
    with pytest.raises(JobStopped, match=rf"{urlsplit(server.url).netloc} has completed no reply .* 0.7 s\n.*deadline"):
        job.ask(model, questions(40))
    assert 3 * 0.7 <= time.monotonic() - begun < 5 * 0.7
    assert len(server.asked()) == 16 + 1 + 1, "after the first round, one request at a time"
    model.close()


def test_a_reply_without_end(server: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MAX_REPLY", 4 << 20)
    found = ask(server, ENDLESS)
    assert isinstance(found, Failure)
    assert (found.reason, found.detail) == ("malformed", "the reply has more than 4 MiB")


def test_twenty_per_cent_faults() -> None:
    """A miniature of the long run: every kind of fault, and every answer that comes is the right one."""
    chance = random.Random(5)
    kinds = [status(429, retry_after="0.01"), status(429), status(500), status(503), RESET, SILENT, TRUNCATED, HTML]
    kinds += [EMPTY, NULL, edited(lambda value: 7), HANG, DRIP, slow(0.05)]

    def behaviour(seen: Seen) -> Act:
        return chance.choice(kinds) if seen.number > 2 and chance.random() < 0.2 else GOOD

    with Endpoint(behaviour) as server:
        model = probed(server, deadline=2.0)
        prompts = [f"question {i}" for i in range(200)]
        found = model.generate([Generate(Prompt.chat(prompt), max_tokens=1) for prompt in prompts])
        model.close()
    for prompt, one in zip(prompts, found, strict=True):
        if isinstance(one, Generated):
            ids = toy.encode(toy.template([{"role": "user", "content": prompt}]), bos=True)
            assert one.outputs[0].text == toy.decode(toy.generate(ids, 1).ids)
    failures = [one for one in found if isinstance(one, Failure)]
    assert all(one.retry for one in failures)
    assert len(failures) < 30


def test_inside_a_running_loop_as_in_jupyter(server: Endpoint) -> None:
    async def cell() -> Generated | Failure:
        model = open_model(f"toy@{server.url}")
        try:
            return model.generate([ASK])[0]
        finally:
            model.close()

    assert isinstance(asyncio.run(cell()), Generated)


def threads() -> int:
    return sum(thread.name == "ragworth-endpoint" for thread in threading.enumerate())


def test_closing_gives_up_what_is_under_way(server: Endpoint) -> None:
    model = probed(server)
    server.script(HANG, HANG)
    found: list[Generated | Failure] = []
    asking = threading.Thread(target=lambda: found.extend(model.generate([ASK] * 2)))
    asking.start()
    while len(server.asked()) < 2:
        time.sleep(0.01)
    model.close()
    asking.join(5)
    assert [one.reason for one in found if isinstance(one, Failure)] == ["stopped", "stopped"]
    assert threads() == 0
    model.close()
    assert isinstance(model.generate([ASK])[0], Generated), "it opens again"
    model.close()


def test_a_request_that_begins_while_the_model_closes_is_stopped(
    server: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, submit = probed(server), asyncio.run_coroutine_threadsafe
    closing = threading.Thread(target=model.close)

    def late(work: Any, loop: asyncio.AbstractEventLoop) -> Any:
        monkeypatch.setattr(asyncio, "run_coroutine_threadsafe", submit)
        closing.start()
        closing.join(0.3)
        return submit(work, loop)

    monkeypatch.setattr(asyncio, "run_coroutine_threadsafe", late)
    server.script(HANG)
    found = model.generate([ASK])[0]
    closing.join(5)
    assert isinstance(found, Failure)
    assert found.reason == "stopped"


def test_the_parents_connections_are_not_hurried_by_a_forked_process(
    server: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, calls = probed(server), list[str]()
    client = model._client
    assert client is not None
    monkeypatch.setattr(client.pace, "give_up", lambda: calls.append("give up"))
    model.hurry()
    client.run(asyncio.sleep(0))
    assert calls == ["give up"]
    with monkeypatch.context() as child:
        child.setattr(os, "getpid", lambda: client.process + 1)
        model.hurry()
    client.run(asyncio.sleep(0))
    model.close()
    assert calls == ["give up"]


def test_replies_that_cannot_be_used_are_counted(server: Endpoint) -> None:
    whole = ask(server)
    assert isinstance(whole, Generated)
    read = whole.usage.prompt_tokens
    found = ask(server, NULL, NULL)
    assert isinstance(found, Generated)
    assert found.usage[:2] == (3 * read, 6)
    failed = ask(server, *[NULL] * 3)
    assert isinstance(failed, Failure)
    assert failed.usage[:2] == (3 * read, 6)
    refused = ask(server, status(400))
    assert isinstance(refused, Failure)
    assert refused.usage[:2] == (0, 0)


def test_the_queue_is_not_held_against_a_request(server: Endpoint) -> None:
    server.behaviour = lambda seen: slow(0.1)
    model = probed(server, concurrency=1, deadline=1.0)
    found = model.generate([ASK] * 15)  # 1.5 s altogether
    model.close()
    assert all(isinstance(one, Generated) for one in found)


def test_a_large_request_is_sent_whole(server: Endpoint) -> None:
    model = probed(server)
    server.script(Act(body=b'{"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}'))
    text = "word " * 300_000
    found = model.generate([Generate(Prompt.chat(text), max_tokens=2)])[0]
    model.close()
    assert isinstance(found, Generated)
    assert server.asked()[-1].body["messages"][0]["content"] == text


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_opens_its_own_connections(server: Endpoint) -> None:
    model = probed(server)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Python 3.12: other threads run
        child = os.fork()
    if child == 0:
        signal.alarm(20)
        found = model.generate([ASK])[0]
        model.close()
        os._exit(0 if isinstance(found, Generated) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert isinstance(model.generate([ASK])[0], Generated)
    model.close()
    assert server.connections >= 2
