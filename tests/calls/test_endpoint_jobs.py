"""Jobs against an endpoint on this machine: faults over HTTP, an endpoint that is away, and keys that stay secret."""

from __future__ import annotations

import logging
import random
import time
import traceback
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

pytest.importorskip("h11")

from ragworth.calls.job import Job
from ragworth.calls.store import Store
from ragworth.cli import main
from ragworth.errors import ModelError
from ragworth.llm import llm
from ragworth.llm.contract import Choose, Chosen, Failure, Generate, Generated, Prompt, Request
from ragworth.llm.openai import rate_limit
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
    monkeypatch.setattr(rate_limit, "FIRST_WAIT", 0.005)


def requests(number: int) -> list[Request]:
    made: list[Request] = []
    for i in range(number):
        prompt = Prompt.chat(f"hello {i}")
        made.append(Choose(prompt, ("yes", "no")) if i % 3 else Generate(prompt, max_tokens=2))
    return made


@pytest.mark.slow
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


def echo(value: Any) -> Any:
    """The reply with the key as the model's answer."""
    choice = value["choices"][0]
    return value | {"choices": [choice | {"message": {"content": f"The key is {SECRET}"}}]}


def test_answers_are_kept_whatever_an_endpoint_says_that_they_cost(tmp_path: Path) -> None:
    huge = edited(lambda value: value | {"usage": {"prompt_tokens": 10**30, "completion_tokens": 2**63 - 1}})
    asked = [Generate(Prompt.chat(f"hello {i}"), max_tokens=2) for i in range(20)]
    with Endpoint() as server:
        model = llm(f"openai:toy@{server.url}")
        assert model.card.abilities
        server.behaviour = lambda seen: huge
        server.seen.clear()
        for _ in range(2):
            with Store(tmp_path / "calls.sqlite") as store:
                job = Job(model, store)
                assert all(isinstance(one, Generated) for one in job.run(asked))
                assert job.tally.estimated == job.tally.calls
                assert job.tally.prompt_tokens < 10_000
        assert len(server.asked()) == 20, "and no answer is paid for twice"
        model.close()
    assert CliRunner().invoke(main, ["calls", "show", str(tmp_path / "calls.sqlite")]).exit_code == 0


@pytest.mark.parametrize(
    ("act", "reason"),
    [
        (status(429, retry_after="Wed, 21 Oct 20150000000000000000 07:28:10 GMT"), "rate-limited"),
        (edited(lambda value: _with_logprob(value, -(10**400))), "malformed"),
        (edited(lambda value: _with_logprob(value, 0)), "malformed"),
        (edited(lambda value: _with_logprob(value, float("-inf"))), "malformed"),
    ],
)
def test_what_cannot_be_true_is_no_crash(act: Act, reason: str) -> None:
    with Endpoint() as server:
        model = llm(f"openai:toy@{server.url}", retries=1)
        assert model.card.abilities
        server.script(act, act, act)
        [found] = Job(model).run([Choose(Prompt.chat("hello"), ("yes", "no"))])
        model.close()
    assert isinstance(found, Failure)
    assert found.reason == reason


def _with_logprob(value: Any, number: float) -> Any:
    top = [{"token": f"t{i}", "logprob": number} for i in range(5)]
    content = [{"token": "t0", "logprob": -1.0, "top_logprobs": top}]
    return value | {"choices": [value["choices"][0] | {"logprobs": {"content": content}}]}


def test_the_key_is_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("RAGWORTH_API_KEY", SECRET)
    monkeypatch.chdir(tmp_path)
    caplog.set_level(logging.DEBUG)
    (tmp_path / "rows.jsonl").write_text("".join(f'{{"query": "q{i}", "passage": "p{i}"}}\n' for i in range(6)))
    shown: list[str] = []

    def behaviour(seen: Seen) -> Act:
        if seen.number % 3 == 1:
            return status(400, f"Incorrect API key provided: {SECRET}")
        return edited(echo) if seen.number % 3 == 2 else GOOD

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


def _answer_as(name: str, seen: Seen) -> Act:
    return edited(lambda value: value | {"model": name})


def test_the_name_that_answered_is_kept_and_noted_where_it_is_another(tmp_path: Path) -> None:
    asked, store = [Generate(Prompt.chat(f"hello {i}"), max_tokens=2) for i in range(4)], tmp_path / "calls.sqlite"
    with Endpoint() as server:
        model = llm(f"openai:toy@{server.url}")
        for name, number, ending in (
            ("toy", 1, None),
            ("toy-2026-01-01", 2, "answered as 'toy', 'toy-2026-01-01': these may be different models"),
            ("other", 4, "answered as 'other', 'toy', 'toy-2026-01-01': these may be different models"),
        ):
            server.behaviour = partial(_answer_as, name)
            with Job(model, store) as job:
                found = list(job.run(asked[:number]))
                assert all(isinstance(each, Generated) for each in found)
                assert [note.partition(", and the endpoint ")[2] for note in job.notes] == [ending] * bool(ending)
    with Job(model, store) as later:
        names = [each.usage.model for each in later.run(asked)]
    assert later.tally.calls == 0
    assert names == ["toy", "toy-2026-01-01", "other", "other"]
    assert "'toy' was asked for" in later.notes[0]
