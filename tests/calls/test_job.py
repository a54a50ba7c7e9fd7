"""Jobs: each distinct request once, in order, within the budget, and never again."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragworth.calls import job, maintenance
from ragworth.calls.budget import NO_TOKENS, JobLimits, JobTally, Price
from ragworth.calls.executors import QueuedCall, ThreadWorkers
from ragworth.calls.job import MAX_FAILURES_IN_A_ROW, NOT_ASKED, Job, JobInterrupted, ask
from ragworth.calls.store import Store
from ragworth.core.errors import InputError, JobStopped, ModelError, RagworthError
from ragworth.llm.contract import (
    Card,
    Choose,
    Chosen,
    Failure,
    Generate,
    Generated,
    Output,
    Prompt,
    Request,
    Response,
    Score,
    Span,
    Usage,
)
from ragworth.llm.sampled import SampledModel
from ragworth.llm.scripted import Scripted
from tests.calls.samples import YES, Noted, count, filled, fresh, question, questions, share
from tests.strategies import examples


def values(outcomes: Sequence[Response | Failure]) -> list[float]:
    """The probability of yes in each."""
    found = []
    for outcome in outcomes:
        assert isinstance(outcome, Chosen), outcome
        found.append(outcome.probabilities[0])
    return found


def reasons(outcomes: Sequence[Response | Failure]) -> list[str]:
    return [outcome.reason if isinstance(outcome, Failure) else "ok" for outcome in outcomes]


@pytest.fixture(params=[1, 3, 16384], ids=["window-1", "window-3", "window-whole"])
def window(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(job, "REQUEST_WINDOW", request.param)
    return int(request.param)


@given(st.lists(st.integers(0, 9), max_size=30), st.integers(1, 5), st.integers(1, 3))
@examples(40)
def test_answers_come_in_the_order_of_the_requests(numbers: list[int], batch: int, concurrency: int) -> None:
    model, noted = fresh(batch=batch, concurrency=concurrency)
    # Prompts of different lengths, which batches sort.
    asked = [question(number, words=1 + number * 7 % 5) for number in numbers]
    assert values(list(Job(model).run(asked))) == [number / 1000 for number in numbers]
    assert len(noted.seen) == len(set(numbers))


@pytest.mark.usefixtures("window")
def test_equal_requests_are_asked_once(tmp_path: Path) -> None:
    numbers = [3, 1, 3, 2, 1, 3, 3, 0, 2]
    model, noted = fresh(batch=2)
    with Store(tmp_path / "c.sqlite") as kept:
        found = list(Job(model, kept).run(question(n) for n in numbers))
    assert values(found) == [n / 1000 for n in numbers]
    assert len(noted.seen) == 4


def test_an_answer_is_kept_before_it_is_given_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "REQUEST_WINDOW", 4)
    with Store(tmp_path / "c.sqlite") as kept, Store(tmp_path / "c.sqlite") as other:
        for number, _ in enumerate(Job(Scripted(share), kept).run(questions(10)), 1):
            assert other.query("SELECT count(*) FROM answers")[0][0] >= number


@pytest.mark.usefixtures("window")
def test_a_failure_is_given_to_all_that_ask_the_same_and_tried_again_next_time(tmp_path: Path) -> None:
    broken, noted = fresh(lambda _: Failure("server-error", "down"))
    asked = [question(1), question(2), question(1), question(1)]
    with Store(tmp_path / "c.sqlite") as kept:
        found = list(Job(broken, kept).run(asked))
        assert found == [Failure("server-error", "down")] * 4
        assert len(noted.seen) == 2
        list(Job(broken, kept).run(asked))
        assert len(noted.seen) == 4
        assert values(list(Job(Scripted(share), kept).run(asked))) == [0.001, 0.002, 0.001, 0.001]


@pytest.mark.usefixtures("window")
def test_counts_of_a_job_are_those_of_its_plan(tmp_path: Path) -> None:
    filled(tmp_path / "c.sqlite", [question(0), question(1)])
    asked = [question(n) for n in (0, 1, 2, 3, 2, 0)]
    model, noted = fresh()
    with Store(tmp_path / "c.sqlite") as kept:
        work = Job(model, kept)
        plan = work.plan(asked)
        assert noted.seen == []
        assert (plan.asked, plan.distinct, plan.cached, plan.missing) == (6, 4, 2, 2)
        list(work.run(asked))
    assert work.tally.calls == plan.missing
    assert work.tally.asked == plan.asked


def test_calls_really_run_at_the_same_time_and_still_come_in_order() -> None:
    together = threading.Barrier(4)  # opens only when four calls are under way

    def script(request: Request) -> dict[str, float]:
        together.wait(20)
        return share(request)

    found = list(Job(Scripted(script, batch=1, concurrency=4)).run(questions(16)))
    assert values(found) == [n / 1000 for n in range(16)]


def test_no_more_calls_are_under_way_than_the_model_serves() -> None:
    lock, under_way, most = threading.Lock(), [0], [0]

    def script(request: Request) -> dict[str, float]:
        with lock:
            under_way[0] += 1
            most[0] = max(most[0], under_way[0])
        threading.Event().wait(0.002)
        with lock:
            under_way[0] -= 1
        return share(request)

    list(Job(Scripted(script, batch=1, concurrency=3)).run(questions(30)))
    assert most[0] == 3


# Budgets


def spent(tally: JobTally) -> int:
    return tally.prompt_tokens + tally.new_tokens


@given(st.integers(0, 12), st.integers(1, 5), st.integers(1, 4), st.floats(0, 0.5))
@examples(40)
def test_no_more_calls_than_allowed(most: int, batch: int, concurrency: int, faults: float) -> None:
    model, _ = fresh(batch=batch, concurrency=concurrency, error=faults)
    work = Job(model, limits=JobLimits(calls=most))
    found = list(work.run(questions(10)))
    assert model.calls == work.tally.calls == min(most, 10)
    assert reasons(found).count(NOT_ASKED) == work.tally.not_asked == 10 - min(most, 10)
    assert bool(work.stopped) == (most < 10)


@given(st.integers(0, 400), st.integers(1, 6), st.integers(1, 4), st.integers(1, 40))
@examples(60)
def test_no_more_tokens_than_allowed(most: int, batch: int, concurrency: int, length: int) -> None:
    model, _ = fresh(lambda _: "a b c d e f g h i j", batch=batch, concurrency=concurrency)
    asked = [Generate(Prompt.text(f"question{i} and more"), max_tokens=length) for i in range(12)]
    work = Job(model, limits=JobLimits(tokens=most))
    found = list(work.run(asked))
    assert spent(work.tally) <= most
    assert reasons(found).count("ok") == work.tally.done == 12 - work.tally.not_asked


@given(st.floats(0, 0.002), st.integers(1, 4))
@examples(40)
def test_no_more_cost_than_allowed(most: float, batch: int) -> None:
    model, _ = fresh(lambda _: "a b c", batch=batch)
    work = Job(model, limits=JobLimits(cost=most), price=Price(2.0, 8.0))
    list(work.run([Generate(Prompt.text(f"question{i}"), max_tokens=10) for i in range(12)]))
    assert work.tally.cost is not None
    assert work.tally.cost <= most
    assert work.tally.cost == pytest.approx((2 * work.tally.prompt_tokens + 8 * work.tally.new_tokens) / 1e6)


def test_no_more_tokens_than_allowed_when_scoring() -> None:
    work = Job(Scripted(lambda _: -1.0), limits=JobLimits(tokens=100))
    list(work.run([Score(Prompt.text(f"Question {i}:"), "word " * 50) for i in range(10)]))
    assert spent(work.tally) <= 100


def test_no_more_tokens_than_allowed_when_sampling() -> None:
    sampled = SampledModel(Scripted(lambda _: "yes it is so and so on and on", batch=64), samples=16)
    work = Job(sampled, limits=JobLimits(tokens=300))
    list(work.run(questions(4)))
    assert spent(work.tally) <= 300


def test_a_budget_counts_only_what_is_asked(tmp_path: Path) -> None:
    filled(tmp_path / "c.sqlite", questions(6))
    model, noted = fresh()
    with Store(tmp_path / "c.sqlite") as kept:
        work = Job(model, kept, limits=JobLimits(calls=2))
        found = list(work.run(questions(10)))
        assert reasons(found) == ["ok"] * 8 + [NOT_ASKED] * 2
        assert "the budget of 2 calls is spent" in str(found[-1])
        # The same again goes on.
        assert reasons(list(Job(model, kept, limits=JobLimits(calls=2)).run(questions(10)))) == ["ok"] * 10
    assert len(noted.seen) == 4


def test_a_spent_budget_still_gives_what_later_windows_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(tmp_path / "c.sqlite", questions(9)[6:])
    monkeypatch.setattr(job, "REQUEST_WINDOW", 3)
    with Store(tmp_path / "c.sqlite") as kept:
        found = list(Job(Scripted(share), kept, limits=JobLimits(calls=1)).run(questions(9)))
    assert reasons(found) == ["ok", *[NOT_ASKED] * 5, *["ok"] * 3]


def endpoint() -> Scripted:
    """A scripted model that says it is somewhere else."""
    model = Scripted(share)
    model.card = replace(model.card, endpoint="http://elsewhere")
    return model


def test_a_cost_limit_needs_a_price() -> None:
    with pytest.raises(InputError, match="the endpoint's price is unknown") as caught:
        Job(endpoint(), limits=JobLimits(cost=1.0))
    assert "--price" in str(caught.value)
    assert Job(endpoint(), limits=JobLimits(cost=1.0), price=Price(0.1, 0.2)).price == Price(0.1, 0.2)


# What cannot be, and what goes wrong


LACKING: dict[str, tuple[list[str], Request]] = {
    "generate": (["choose"], Generate(Prompt.text("a"))),
    "score": (["generate"], Score(Prompt.text("a"), "b")),
    "choose": (["generate"], question(1)),
    "logprobs": (["generate"], Generate(Prompt.text("a"), detail="logprobs")),
    "entropies": (["generate", "logprobs"], Generate(Prompt.text("a"), detail="entropies")),
    "schema": (["generate"], Generate(Prompt.text("a"), schema="{}")),
}


@pytest.mark.parametrize("need", LACKING)
def test_what_a_model_cannot_do_is_refused_before_anything_is_asked(need: str) -> None:
    abilities, request = LACKING[need]
    model, noted = fresh(lambda _: "text", abilities=abilities)
    good: list[Request] = [Generate(Prompt.text("b"))] if "generate" in abilities else [question(5)]
    for way in (Job(model).plan, lambda requests: list(Job(model).run(requests))):
        with pytest.raises(ModelError, match=need) as caught:
            way([*good, request])
        assert "scripted" in str(caught.value)
    assert noted.seen == []


def test_a_job_of_failures_alone_gives_up() -> None:
    broken, noted = fresh(lambda _: Failure("server-error", "no such model"), batch=1)
    with pytest.raises(JobStopped, match=r"no such model\)\n  to do: fix the cause and run the same again") as caught:
        list(Job(broken).run(questions(500)))
    assert len(noted.seen) == MAX_FAILURES_IN_A_ROW == 25
    assert caught.value.exit_code == 4


@pytest.mark.parametrize("reason", ["unreachable", "unauthorised"])
def test_a_job_whose_endpoint_has_died_gives_up(reason: str) -> None:
    def script(request: Request) -> dict[str, float] | Failure:
        return YES if request == question(0) else Failure(reason, retry=reason != "unauthorised")

    model = Scripted(script, batch=1)
    with pytest.raises(JobStopped, match="25 calls in a row have failed"):
        list(Job(model).run(questions(5000)))
    assert model.calls == 26


def test_planning_only_does_not_ask_an_endpoint_what_it_can_do() -> None:
    class Shy(Scripted):
        partial = Card("scripted", "shy", endpoint="http://nowhere")

        @property
        def card(self) -> Card:
            raise AssertionError("asked")

        @card.setter
        def card(self, value: Card) -> None:
            pass

    plan = Job(Shy({"*": YES}), only_plan=True).plan(questions(4))
    assert (plan.missing, plan.price) == (4, None)


def test_giving_up_keeps_what_is_under_way(tmp_path: Path) -> None:
    ready = threading.Barrier(8)

    def script(request: Request) -> dict[str, float] | Failure:
        ready.wait(20)
        number = int(share(request)["yes"] * 1000)
        if number < MAX_FAILURES_IN_A_ROW + 3:
            return Failure("server-error")
        threading.Event().wait(0.3)
        return YES

    # 32 calls, eight at a time: the last batches are under way when the 25th failure comes.
    with Store(tmp_path / "c.sqlite") as kept, pytest.raises(JobStopped):
        list(Job(Scripted(script, batch=1, concurrency=8), kept).run(questions(32)))
    assert count(tmp_path / "c.sqlite", "answers") == 4


def test_a_backend_that_raises_gives_failures_and_the_job_goes_on(tmp_path: Path) -> None:
    def script(request: Request) -> dict[str, float]:
        if request == question(3):
            raise RuntimeError("boom")
        return share(request)

    with Store(tmp_path / "c.sqlite") as kept:
        found = list(Job(Scripted(script, batch=1), kept).run(questions(6)))
    assert reasons(found) == ["ok", "ok", "ok", "crashed", "ok", "ok"]
    assert found[3] == Failure("crashed", "RuntimeError: boom")


def test_an_error_of_ours_ends_the_job_and_keeps_the_rest(tmp_path: Path) -> None:
    def script(request: Request) -> dict[str, float]:
        if request == question(3):
            raise ModelError("the key is not accepted")
        return share(request)

    with Store(tmp_path / "c.sqlite") as kept, pytest.raises(ModelError, match="the key is not accepted"):
        list(Job(Scripted(script, batch=1), kept).run(questions(6)))
    assert count(tmp_path / "c.sqlite", "answers") == 3


class Wrong(Scripted):
    """A backend with a mistake in it."""

    def __init__(self, wrong: Callable[[list[Chosen | Failure]], object]) -> None:
        super().__init__(share)
        self.wrong = wrong

    def choose(self, requests: Sequence[Choose]) -> list[Chosen | Failure]:
        return self.wrong(super().choose(requests))  # type: ignore[return-value]


TEXT = Generated((Output("text", "stop"),), Usage(1, 1, 0.0))
WRONG: dict[str, tuple[Callable[[list[Chosen | Failure]], object], str]] = {
    "too few": (lambda found: found[:-1], "crashed"),
    "too many": (lambda found: [*found, found[0]], "crashed"),
    "nothing": (lambda found: [None] * len(found), "malformed"),
    "a string": (lambda found: ["yes"] * len(found), "malformed"),
    "another kind": (lambda found: [TEXT] * len(found), "malformed"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_backend_that_breaks_the_contract_gives_failures(name: str, tmp_path: Path) -> None:
    wrong, reason = WRONG[name]
    with Store(tmp_path / "c.sqlite") as kept:
        assert reasons(list(Job(Wrong(wrong), kept).run(questions(3)))) == [reason] * 3
        assert values(list(Job(Scripted(share), kept).run(questions(3)))) == [0.0, 0.001, 0.002]


def test_a_wrong_number_of_responses_names_the_backend_and_both_numbers() -> None:
    (failure, *_) = Job(Wrong(lambda found: found[:-1])).run(questions(3))
    assert failure == Failure("crashed", "ValueError: the backend 'scripted' gave 2 responses to 3 requests")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_backend_that_wants_to_exit_does_not_hang_the_job() -> None:
    def script(request: Request) -> str:
        raise SystemExit(1)

    work = ThreadWorkers(Scripted(script))
    work.submit([QueuedCall(b"", request, NO_TOKENS) for request in questions(2)])
    ended = work.wait(1.0)
    work.close()
    assert len(ended) == 1


def test_a_job_that_is_left_in_the_middle_lets_go_of_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "REQUEST_WINDOW", 2)
    with Store(tmp_path / "c.sqlite") as kept:
        running = Job(Scripted(share), kept).run(questions(10))
        assert isinstance(next(running), Chosen)
        with Store(tmp_path / "c.sqlite") as other, pytest.raises(RagworthError, match="another process"):
            list(Job(Scripted(share), other).run(questions(1)))
        running.close()  # type: ignore[attr-defined]
        with Store(tmp_path / "c.sqlite") as other:
            assert len(list(Job(Scripted(share), other).run(questions(10)))) == 10


class Cutting(Scripted):
    """A model that cuts what is too long, and says so."""

    def __init__(self) -> None:
        super().__init__(share)
        self.card = replace(self.card, cuts=True, context_length=10)

    def choose(self, requests: Sequence[Choose]) -> list[Chosen | Failure]:
        answers = [one for one in super().choose(requests) if isinstance(one, Chosen)]
        return [one._replace(usage=one.usage._replace(cut=120, limit=10)) for one in answers]


@pytest.mark.parametrize("other", [{"cuts": False}, {"cuts": True, "context_length": 4096}], ids=["none", "longer"])
def test_an_answer_to_a_cut_prompt_is_only_for_models_that_cut_it_alike(other: dict[str, Any], tmp_path: Path) -> None:
    prompt = Prompt.text("question5 and a passage")
    request = Choose(replace(prompt, passages=(Span(0, 14, 23),)), ("yes", "no"))
    with Store(tmp_path / "c.sqlite") as kept:
        short = Cutting()
        list(Job(short, kept).run([request]))
        assert Job(short, kept).plan([request]).missing == 0
        model, noted = fresh()
        model.card = replace(model.card, **other)
        list(Job(model, kept).run([request]))
    assert noted.seen == [request]


class Away(Scripted):
    """An endpoint that is away: of its card only the beginning is there."""

    partial = Card("scripted", "scripted")

    @property
    def card(self) -> Card:
        raise ModelError("nobody answers")

    @card.setter
    def card(self, card: Card) -> None:
        pass


def test_what_an_endpoint_has_answered_can_be_had_while_it_is_away(tmp_path: Path) -> None:
    first = filled(tmp_path / "c.sqlite", questions(3))
    with Store(tmp_path / "c.sqlite") as kept:
        assert list(Job(Away(share), kept).run(questions(3))) == first
        with pytest.raises(ModelError, match="nobody answers"):
            list(Job(Away(share), kept).run(questions(4)))
    with pytest.raises(ModelError, match="nobody answers"):
        Job(Away(share))


def test_ask_is_a_job_in_one_line(tmp_path: Path) -> None:
    noted = Noted()
    model = Scripted(noted)
    with Store(tmp_path / "c.sqlite") as kept:
        assert ask(model, questions(3), kept) == ask(model, questions(3), kept) == ask(model, questions(3))
    assert len(noted.seen) == 6


# Ctrl-C

INTERRUPTED = """
import os, signal, sys
from ragworth.calls.job import Job
from ragworth.calls.store import Store
from ragworth.core.errors import RagworthError
from ragworth.llm.scripted import Scripted
from tests.calls.samples import questions, share

def script(request):
    if share(request)["yes"] == 0.021:
        os.kill(os.getpid(), signal.SIGINT)
    return share(request)

store = Store(sys.argv[1]) if len(sys.argv) > 1 else None
try:
    list(Job(Scripted(script, batch=4, concurrency=2, seconds=0.005), store).run(questions(2000)))
except RagworthError as error:
    print(error)
    sys.exit(error.exit_code)
"""

ROOT = Path(__file__).parents[2]


def interrupted(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", INTERRUPTED, *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=60, cwd=ROOT)


@pytest.mark.slow
def test_an_interrupt_keeps_what_is_under_way_and_says_how_to_go_on(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    done = interrupted(str(path))
    assert done.returncode == JobInterrupted.exit_code == 130, done.stderr
    kept = count(path, "answers")
    assert 22 <= kept < 200  # the call that the interrupt came in, and nothing much after it
    assert done.stdout == f"interrupted after {kept} calls; what was done is kept: run the same again to go on\n"
    with Store(path) as store:
        assert maintenance.verify(store).problems == []
        model, noted = fresh()
        assert len(list(Job(model, store).run(questions(2000)))) == 2000
    assert len(noted.seen) == 2000 - kept


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


@pytest.mark.slow
def test_an_interrupt_while_answers_are_written_loses_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    really, commits = Store.commit, [0]

    def commit(self: Store, card: Card, done: list[tuple[bytes, Request, Response]]) -> None:
        commits[0] += 1
        if commits[0] == 3:
            signal.raise_signal(signal.SIGINT)
        really(self, card, done)

    monkeypatch.setattr(Store, "commit", commit)
    model, noted = fresh(batch=4)
    with Store(tmp_path / "c.sqlite") as kept:
        try:
            list(Job(model, kept).run(questions(4000)))
        except JobInterrupted:
            pass
        except KeyboardInterrupt:  # it would end all the tests
            pytest.fail("the interrupt came through")
    assert commits[0] >= 3
    assert count(tmp_path / "c.sqlite", "answers") == len(noted.seen)
