"""Work in several rounds: results in order, requests together, and a forecast that asks nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragworth.calls import programs
from ragworth.calls.budget import JobLimits
from ragworth.calls.job import NOT_ASKED, Job
from ragworth.calls.programs import NoValue, Program, forecast_programs, require_response, run_programs
from ragworth.calls.store import Store
from ragworth.errors import JobStopped, ModelError
from ragworth.llm.contract import Choose, Chosen, Failure, Generate, Generated, Output, Prompt, Request, Usage
from ragworth.llm.scripted import Scripted, ScriptedReply
from tests.calls.samples import filled, fresh, question, share
from tests.strategies import examples


def once(number: int) -> Program[float]:
    """One question."""
    (found,) = yield [question(number)]
    return require_response(found, Chosen).probabilities[0]


def rounds(number: int, many: int) -> Program[list[float]]:
    """As many rounds as told, each with one question more than the one before; what it asks hangs on what came."""
    values: list[float] = []
    for step in range(many):
        found = yield [question(number + 10 * step + 100 * extra) for extra in range(step + 1)]
        assert len(found) == step + 1
        values += [require_response(one, Chosen).probabilities[0] for one in found]
    return values


def expected(number: int, many: int) -> list[float]:
    return [(number + 10 * step + 100 * extra) % 1000 / 1000 for step in range(many) for extra in range(step + 1)]


@pytest.fixture(params=[1, 2, 4096], ids=["window-1", "window-2", "window-whole"])
def window(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(programs, "PROGRAM_WINDOW", request.param)
    return int(request.param)


@pytest.mark.usefixtures("window")
@pytest.mark.parametrize(("batch", "concurrency"), [(1, 1), (3, 2), (16, 1)])
def test_results_come_in_the_order_of_the_work(batch: int, concurrency: int) -> None:
    work = [(5, 2), (1, 0), (3, 3), (9, 1), (5, 2)]
    model = Scripted(share, batch=batch, concurrency=concurrency)
    found = list(run_programs(Job(model), (rounds(*one) for one in work)))
    assert found == [expected(*one) for one in work]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), max_size=12), st.integers(1, 5))
@examples(30)
def test_any_mixture_of_work(work: list[tuple[int, int]], size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(programs, "PROGRAM_WINDOW", size)
        model, noted = fresh(batch=4)
        assert list(run_programs(Job(model), (rounds(*one) for one in work))) == [expected(*one) for one in work]
    assert len(noted.seen) == len(set(noted.seen)), "nothing is asked twice"


def test_no_work() -> None:
    assert list(run_programs(Job(Scripted(share)), [])) == []


def test_work_that_asks_nothing_or_nothing_for_once() -> None:
    def idle() -> Program[str]:
        if False:
            yield []
        return "done"

    def pausing() -> Program[int]:
        assert (yield []) == []
        (found,) = yield [question(1)]
        return len(require_response(found, Chosen).probabilities)

    model = Scripted(share)
    assert list(run_programs(Job(model), [idle()])) == ["done"]
    assert list(run_programs(Job(model), [pausing()])) == [2]


def test_rounds_of_all_pieces_go_together(monkeypatch: pytest.MonkeyPatch) -> None:
    batches: list[int] = []

    class Counting(Scripted):
        def choose(self, requests: Sequence[Choose]) -> list[Chosen | Failure]:
            batches.append(len(requests))
            return super().choose(requests)

    list(run_programs(Job(Counting(share, batch=64)), (rounds(n, 2) for n in range(6))))
    assert batches == [2, 4, 8, 4]  # the first batches are small
    batches.clear()
    monkeypatch.setattr(programs, "PROGRAM_WINDOW", 4)
    list(run_programs(Job(Counting(share, batch=64)), (rounds(n, 2) for n in range(6))))
    assert batches == [2, 2, 4, 4, 2, 4]


@pytest.mark.usefixtures("window")
def test_equal_requests_of_different_pieces_are_asked_once(tmp_path: Path) -> None:
    for store in (None, tmp_path / "calls.sqlite"):
        model, noted = fresh()
        found = list(run_programs(Job(model, store), (once(number) for number in (1, 2, 1, 2, 1))))
        assert found == [0.001, 0.002, 0.001, 0.002, 0.001]
        assert len(noted.seen) == 2


def test_work_is_taken_up_only_as_its_window_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "PROGRAM_WINDOW", 3)
    begun: list[int] = []

    def work() -> Iterator[Program[float]]:
        for number in range(9):
            begun.append(number)
            yield once(number)

    found = run_programs(Job(Scripted(share)), work())
    next(found)
    assert len(begun) == 3


# Work without a result


def test_a_reason_stands_in_the_place_of_a_result() -> None:
    def work(number: int) -> Program[float]:
        if number == 0:
            raise NoValue("no-text", "there is none")
        value = yield from once(number)
        if number == 2:
            raise NoValue("odd", "it is even", raw="0.002")
        return value

    first, second, third, fourth = run_programs(Job(Scripted(share)), map(work, range(4)))
    assert isinstance(first, NoValue)
    assert (first.status, first.detail, first.raw) == ("no-text", "there is none", None)
    assert (second, fourth) == (0.001, 0.003)
    assert isinstance(third, NoValue)
    assert (third.status, third.raw) == ("odd", "0.002")


def test_a_failed_call_is_a_reason() -> None:
    def script(request: Request) -> ScriptedReply:
        return Failure("timed-out", "late") if "question1 " in request.prompt.messages[-1].content else share(request)

    first, second = run_programs(Job(Scripted(script)), [once(1), once(2)])
    assert isinstance(first, NoValue)
    assert (first.status, first.detail) == ("timed-out", "late")
    assert second == 0.002


def test_work_may_go_on_after_a_failure() -> None:
    def patient(number: int) -> Program[str]:
        (found,) = yield [Generate(Prompt.text(f"question{number}"))]
        if isinstance(found, Failure):
            (found,) = yield [Generate(Prompt.text("question9"))]
        return require_response(found, Generated).outputs[0].text

    model = Scripted({"question2": "two", "question9": "nine"})
    assert list(run_programs(Job(model), [patient(1), patient(2)])) == ["nine", "two"]


def test_other_errors_are_not_hidden() -> None:
    def broken() -> Program[float]:
        yield [question(1)]
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        list(run_programs(Job(Scripted(share)), [broken()]))
    with pytest.raises(ModelError, match="choose"):
        list(run_programs(Job(Scripted(share, abilities=["generate"])), [once(1)]))


# Early ends


def test_a_spent_budget_is_a_reason_and_the_same_again_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "calls.sqlite"
    model, noted = fresh(batch=1)
    with Job(model, path, limits=JobLimits(calls=3)) as job:
        found = list(run_programs(job, (once(number) for number in range(5))))
    assert found[:3] == [0.0, 0.001, 0.002]
    assert [one.status for one in found[3:] if isinstance(one, NoValue)] == [NOT_ASKED] * 2
    with Job(model, path) as job:
        assert list(run_programs(job, (once(number) for number in range(5)))) == [n / 1000 for n in range(5)]
    assert len(noted.seen) == 5


def test_a_budget_spent_between_rounds_is_not_broken_by_later_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "PROGRAM_WINDOW", 2)
    model, noted = fresh(batch=1)
    with Job(model, tmp_path / "calls.sqlite", limits=JobLimits(calls=3)) as job:
        found = list(run_programs(job, (rounds(number, 2) for number in range(5))))
    assert len(noted.seen) == 3
    assert all(isinstance(one, NoValue) for one in found)
    with Job(model, tmp_path / "calls.sqlite") as job:
        assert list(run_programs(job, (rounds(number, 2) for number in range(5)))) == [expected(n, 2) for n in range(5)]
    assert len(noted.seen) == len(set(noted.seen)) == 15


def test_a_job_that_gave_up_keeps_what_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragworth.calls.job.MAX_FAILURES_IN_A_ROW", 2)
    path = tmp_path / "calls.sqlite"

    def script(request: Request) -> ScriptedReply:
        good = any(f"question{n} " in request.prompt.messages[-1].content for n in range(2))
        return share(request) if good else Failure("server-error", "down")

    with Job(Scripted(script, batch=1), path) as job, pytest.raises(JobStopped, match="in a row have failed"):
        list(run_programs(job, (once(number) for number in range(9))))
    model, noted = fresh()
    with Job(model, path) as job:
        assert list(run_programs(job, (once(number) for number in range(9)))) == [n / 1000 for n in range(9)]
    assert len(noted.seen) == 7


def test_the_store_is_let_go_of_between_rounds(tmp_path: Path) -> None:
    path = tmp_path / "calls.sqlite"
    with Job(Scripted(share), path) as job:
        assert list(run_programs(job, [once(1)])) == [0.001]
        with Job(Scripted(share), path) as other:
            assert list(run_programs(other, [once(2)])) == [0.002]


# Forecasts


@pytest.mark.parametrize("kept", [0, 3])
def test_a_forecast_of_one_round_counts_what_a_run_then_asks(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "calls.sqlite"
    filled(path, [question(number) for number in range(kept)])
    numbers = [0, 1, 2, 3, 4, 3, 0]
    model, noted = fresh()
    with Store(path) as store:
        planned = forecast_programs(Job(model, store), (once(number) for number in numbers))
        assert noted.seen == []
        assert (planned.plan.asked, planned.plan.distinct, planned.plan.cached) == (7, 5, kept)
        assert planned.waiting == 0
        job = Job(model, store)
        list(run_programs(job, (once(number) for number in numbers)))
    assert len(noted.seen) == planned.plan.missing == 5 - kept
    assert job.tally.asked == planned.plan.asked


def test_a_forecast_goes_on_as_far_as_answers_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "calls.sqlite"
    filled(path, [question(1), question(2), question(11), question(111)])
    model, noted = fresh()
    with Store(path) as store:
        planned = forecast_programs(
            Job(model, store), [rounds(1, 3), rounds(2, 2), rounds(3, 2)], more=lambda round_: round_ < 2
        )
    assert noted.seen == []
    # The first is in its third round (three questions), the second in its second (two), the third in its first.
    assert planned.plan.missing == 3 + 2 + 1
    assert planned.waiting == 2
    assert "2 of these answers lead to more calls" in str(planned)


def test_a_forecast_of_work_that_ends_before_it_asks() -> None:
    def none() -> Program[float]:
        raise NoValue("no-text")
        yield []

    planned = forecast_programs(Job(Scripted(share)), [none(), once(1)], more=lambda round_: True)
    assert (planned.plan.asked, planned.waiting) == (1, 1)


def test_a_forecast_closes_what_it_leaves() -> None:
    closed: list[bool] = []

    def careful() -> Program[float]:
        try:
            yield [question(1)]
        finally:
            closed.append(True)
        return 0.0

    forecast_programs(Job(Scripted(share)), [careful()])
    assert closed == [True]


# Peeking


def test_peeking_asks_and_counts_nothing(tmp_path: Path) -> None:
    (first,) = filled(tmp_path / "calls.sqlite", [question(1)])
    model, noted = fresh()
    with Store(tmp_path / "calls.sqlite") as store:
        job = Job(model, store)
        assert job.peek([question(2), question(1), question(2), question(1)]) == [None, first, None, first]
        assert job.peek([]) == []
        assert (job.tally.asked, job.tally.distinct, job.tally.cached) == (0, 0, 0)
    assert noted.seen == []


def test_peeking_sees_what_this_job_was_told() -> None:
    job = Job(Scripted(share))
    assert job.peek([question(1)]) == [None]
    (found,) = job.run([question(1)])
    assert job.peek([question(1)]) == [found]


def test_a_text_that_was_withheld_is_no_response() -> None:
    made = Generated((Output("Yes", "stop"), Output("The", "content_filter")), Usage(1, 2, 0.0))
    with pytest.raises(NoValue) as caught:
        require_response(made, Generated)
    assert (caught.value.status, caught.value.raw) == ("refused", "Yes\nThe")
