"""Jobs against an endpoint on this machine: faults over HTTP, an endpoint that is away, and keys that stay secret."""

from __future__ import annotations

import logging
import traceback
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

pytest.importorskip("aiohttp")

from ragworth.calls.job import Job
from ragworth.calls.store import Store
from ragworth.cli import main
from ragworth.core.errors import ModelError
from ragworth.llm import llm
from ragworth.llm.contract import Choose, Generate, Generated, Prompt, Request
from ragworth.llm.openai import rate_limit
from tests.llm.openai.endpoint import (
    GOOD,
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
