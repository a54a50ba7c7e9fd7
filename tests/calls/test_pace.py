"""How long calls will take, when progress first shows, and whether Ctrl-C waits."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from ragworth.calls.job import Job, JobInterrupted
from ragworth.calls.store import Store
from ragworth.llm.contract import Choose, Chosen, Failure, Generate, Prompt, Request
from ragworth.llm.scripted import Scripted
from tests.calls.samples import question, questions, share


class Slow(Scripted):
    """Says that every call took two seconds."""

    def choose(self, requests: Sequence[Choose]) -> list[Chosen | Failure]:
        found = super().choose(requests)
        return [
            one if isinstance(one, Failure) else one._replace(usage=one.usage._replace(seconds=2.0)) for one in found
        ]


def test_a_plan_takes_the_duration_from_the_store(tmp_path: Path) -> None:
    with Job(Slow(share), tmp_path / "calls.sqlite") as job:
        assert job.plan(questions(10)).seconds is None
        list(job.run(questions(10)))
        planned = job.plan(questions(40))
    assert planned.missing == 30
    # The prompts are as long as those in the store, by the words that this model counts and a rule of thumb.
    with Store(tmp_path / "calls.sqlite") as store:
        ((seconds, tokens),) = store.query("SELECT avg(seconds), avg(prompt_tokens) FROM answers")
    assert seconds == 2.0
    estimated = len(question(20).prompt.messages[-1].content) // 4 + 8
    assert planned.seconds == pytest.approx(30 * 2.0 * estimated / tokens, rel=0.05)
    assert " s" in str(planned).rsplit("about", 1)[1] or "min" in str(planned).rsplit("about", 1)[1]


def test_a_plan_of_calls_of_another_kind_has_no_duration(tmp_path: Path) -> None:
    with Job(Slow(share), tmp_path / "calls.sqlite") as job:
        list(job.run(questions(3)))
        assert job.plan([Generate(Prompt.text("Why?"))]).seconds is None


def test_longer_prompts_take_longer_and_endpoints_work_side_by_side(tmp_path: Path) -> None:
    with Job(Slow(share), tmp_path / "calls.sqlite") as job:
        list(job.run(questions(10)))
        short, long = job.plan(questions(20, words=4)).seconds, job.plan(questions(20, words=400)).seconds
    with Job(Slow(share, concurrency=4), tmp_path / "calls.sqlite") as job:
        beside = job.plan(questions(20, words=400)).seconds
    assert short is not None and long is not None and long > 10 * short
    assert beside == pytest.approx(long / 4)


def test_ctrl_c_does_not_wait_for_free_calls(tmp_path: Path) -> None:
    class Local(Scripted):
        abandons_calls = True

    started = threading.Event()

    def script(request: Request) -> dict[str, float]:
        if "question9" in request.prompt.messages[-1].content:
            started.set()
            time.sleep(30)
        return share(request)

    def interrupt() -> None:
        started.wait()
        signal.raise_signal(signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    begun = time.monotonic()
    with Job(Local(script, batch=1), tmp_path / "calls.sqlite") as job, pytest.raises(JobInterrupted) as caught:
        list(job.run(questions(20)))
    assert time.monotonic() - begun < 20
    assert caught.value.hurried
    with Job(Scripted(share), tmp_path / "calls.sqlite") as again:
        assert again.plan(questions(20)).cached == 9
