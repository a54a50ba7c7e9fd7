"""Jobs against an endpoint on this machine: faults over HTTP, an endpoint that is away, and keys that stay secret."""

from __future__ import annotations

import logging
import random
import time
import traceback
from pathlib import Path

import pytest
from click.testing import CliRunner

pytest.importorskip("httpx")

from ragworth.calls.job import Job
from ragworth.calls.store import Store
from ragworth.cli import main
from ragworth.errors import ModelError
from ragworth.llm import llm
from ragworth.llm.contract import Choose, Chosen, Failure, Generate, Generated, Prompt, Request
from ragworth.llm.openai import pace
from tests.llm.openai.endpoint import (
    DRIP,
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
    status,
)

SECRET = "sk-test-5ecr3t-0123456789abcdef"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "FIRST_WAIT", 0.005)


def requests(number: int) -> list[Request]:
    made: list[Request] = []
    for i in range(number):
        prompt = Prompt.chat(f"hello {i}")
        made.append(Choose(prompt, ("yes", "no")) if i % 3 else Generate(prompt, max_tokens=2))
    return made


def test_a_soak_over_http_ends_with_a_value_or_a_reason_for_every_request(tmp_path: Path) -> None:
    rng = random.Random(0)
    empty = edited(lambda value: value | {"choices": []})
    faults = [status(500), status(429, retry_after="0"), status(503), HANG, DRIP, RESET, SILENT, TRUNCATED, HTML, empty]

    def behaviour(seen: Seen) -> Act:
        return rng.choice(faults) if rng.random() < 0.2 else GOOD

    asked = requests(400)
    with Endpoint() as server:
        model = llm(f"openai:toy@{server.url}", deadline=1.0, concurrency=16)
        assert model.card.abilities
        server.behaviour = behaviour
        start = time.monotonic()
        with Store(tmp_path / "calls.sqlite") as store:
            first = list(Job(model, store).run(asked))
            assert len(first) == len(asked)
            assert all(one.reason if isinstance(one, Failure) else isinstance(one, Chosen | Generated) for one in first)
            assert sum(isinstance(one, Failure) for one in first) < 100
            paid = len(server.asked())
            server.behaviour = None
            job = Job(model, store)
            second = list(job.run(asked))
        assert not any(isinstance(one, Failure) for one in second)
        assert job.tally.calls == sum(isinstance(one, Failure) for one in first)
        assert len(server.asked()) - paid <= job.tally.calls
        for before, after in zip(first, second, strict=True):
            assert isinstance(before, Failure) or before == after
        assert time.monotonic() - start < 60
        model.close()


def test_what_an_endpoint_has_answered_is_there_when_it_is_away(tmp_path: Path) -> None:
    asked = requests(12)
    with Endpoint() as server:
        model = llm(f"openai:toy@{server.url}")
        with Store(tmp_path / "calls.sqlite") as store:
            first = list(Job(model, store).run(asked))
        model.close()
        url = server.url
    later = llm(f"openai:toy@{url}", deadline=1.0)
    with Store(tmp_path / "calls.sqlite") as store:
        job = Job(later, store)
        assert job.plan(asked).missing == 0
        assert list(job.run(asked)) == first
        with pytest.raises(ModelError, match="unreachable"):
            list(Job(later, store).run([*asked, Generate(Prompt.chat("new"))]))
        with pytest.raises(ModelError, match="unreachable"):
            Job(llm(f"openai:other@{url}", deadline=1.0), store)
    later.close()


def test_the_key_is_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("RAGWORTH_API_KEY", SECRET)
    monkeypatch.chdir(tmp_path)
    caplog.set_level(logging.DEBUG)
    (tmp_path / "rows.jsonl").write_text("".join(f'{{"query": "q{i}", "passage": "p{i}"}}\n' for i in range(6)))
    shown: list[str] = []

    def behaviour(seen: Seen) -> Act:
        if seen.number % 2:
            return status(400, f"Incorrect API key provided: {SECRET}")
        return GOOD

    with Endpoint() as server:
        model = f"openai:toy@{server.url}"
        opened = llm(model)
        assert opened.card.abilities
        shown += [repr(opened), repr(opened.card), str(vars(opened))]
        opened.close()
        for line in (
            f"models {model}",
            f"ask abstention rows.jsonl --model {model} --choose NO-RESPONSE,YES -o out.jsonl",
            f"ask abstention rows.jsonl --model {model} --length 3 -O deadline=2",
            "calls show calls.sqlite",
            "calls export calls.sqlite -o all.jsonl",
        ):
            server.behaviour = None if line.startswith("models") else behaviour
            result = CliRunner().invoke(main, line.split())
            shown += [result.stdout, result.stderr]
            if result.exception is not None:
                shown += traceback.format_exception(result.exception)
        assert any(seen.headers.get("authorization") == f"Bearer {SECRET}" for seen in server.seen)
    assert "toy" in "".join(shown)
    assert SECRET not in "".join(shown)
    assert SECRET not in caplog.text
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {"calls.sqlite", "out.jsonl", "all.jsonl"} <= {path.name for path in files}
    for path in files:
        assert SECRET.encode() not in path.read_bytes(), path
