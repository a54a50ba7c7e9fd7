"""Work in several rounds: results in order, requests together, and a forecast that asks nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragworth.calls import programs
from ragworth.calls.budget import JobLimits
from ragworth.calls.job import NOT_ASKED, Job
from ragworth.calls.programs import NoValue, Program, forecast_programs, require_response, run_programs
from ragworth.calls.store import Store
from ragworth.core.errors import ModelError
from ragworth.llm.contract import Chosen, Failure, Generated, Output, Request, Usage
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


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), max_size=12), st.integers(1, 5))
@examples(30)
def test_any_mixture_of_work(work: list[tuple[int, int]], size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(programs, "PROGRAM_WINDOW", size)
        model, noted = fresh(batch=4)
        assert list(run_programs(Job(model), (rounds(*one) for one in work))) == [expected(*one) for one in work]
    assert len(noted.seen) == len(set(noted.seen)), "nothing is asked twice"


@pytest.mark.parametrize("has_store", [False, True])
def test_equal_requests_of_different_windows_are_asked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_store: bool
) -> None:
    monkeypatch.setattr(programs, "PROGRAM_WINDOW", 2)
    model, noted = fresh()
    with Job(model, tmp_path / "calls.sqlite" if has_store else None) as job:
        found = list(run_programs(job, (once(number) for number in (1, 2, 1, 2, 1))))
    assert found == [0.001, 0.002, 0.001, 0.002, 0.001]
    assert len(noted.seen) == 2


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


def test_a_text_that_was_withheld_is_no_response() -> None:
    made = Generated((Output("Yes", "stop"), Output("The", "content_filter")), Usage(1, 2, 0.0))
    with pytest.raises(NoValue) as caught:
        require_response(made, Generated)
    assert (caught.value.status, caught.value.raw) == ("refused", "Yes\nThe")
