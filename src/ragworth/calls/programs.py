"""Run many small programs that each call a model one or more times.

A program is a generator: it yields requests, is sent their outcomes, and finally returns its result. It reads as if it
were the only one to call the model::

    def judge(pair: Pair) -> Program[Finding]:
        (answer,) = yield [Generate(prompt)]
        text = require_response(answer, Generated).outputs[0].text
        (grade,) = yield [Choose(...)]
        return Finding(...)

`run_programs` runs thousands of them, sending the requests of each round to a job together.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, TypeAlias, TypeVar

from ragworth.calls.budget import CallPlan
from ragworth.calls.job import Job
from ragworth.core.errors import format_count
from ragworth.llm.contract import WITHHELD, Failure, Generated, Request, Response

T = TypeVar("T")
R = TypeVar("R")

Program: TypeAlias = Generator[Sequence[Request], Sequence[Response | Failure], T]
"""A program whose result is a ``T``."""

PROGRAM_WINDOW = 4096
"""Programs running at once. This bounds memory, whatever their number."""


class NoValue(Exception):  # noqa: N818 (it is a result)
    """Why a program has no value: the status of its row, details, and the model's output."""

    def __init__(self, status: str, detail: str = "", raw: str | None = None) -> None:
        super().__init__(status, detail)
        self.status = status
        self.detail = detail
        self.raw = raw


def require_response(outcome: Response | Failure, kind: type[R]) -> R:
    """Return the response if it has this type, otherwise raise `NoValue`. A text that was withheld is none."""
    if isinstance(outcome, Failure):
        raise NoValue(outcome.reason, outcome.detail)
    assert isinstance(outcome, kind)
    if isinstance(outcome, Generated) and outcome.is_withheld:
        raise NoValue("refused", WITHHELD, "\n".join(output.text for output in outcome.outputs))
    return outcome


@dataclass
class _RunningProgram:
    """A running program: the requests it waits for, or its result."""

    steps: Program[Any]
    requests: Sequence[Request] = ()
    result: Any = None
    ended: bool = False

    def go(self, outcomes: Sequence[Response | Failure] | None) -> None:
        try:
            self.requests = next(self.steps) if outcomes is None else self.steps.send(outcomes)
        except StopIteration as stop:
            self.requests, self.result, self.ended = (), stop.value, True
        except NoValue as none:
            self.requests, self.result, self.ended = (), none, True


def run_programs(job: Job, work: Iterable[Program[T]]) -> Iterator[T | NoValue]:
    """Yield the result of each program in order, or `NoValue`."""
    waiting = iter(work)
    while window := [_RunningProgram(steps) for steps in islice(waiting, PROGRAM_WINDOW)]:
        for one in window:
            one.go(None)
        while alive := [one for one in window if not one.ended]:
            outcomes = job.run(request for one in alive for request in one.requests)
            answers = [list(islice(outcomes, len(one.requests))) for one in alive]
            for _ in outcomes:  # exhaust it, so that the store is released
                raise AssertionError("more outcomes than requests")
            for one, found in zip(alive, answers, strict=True):
                one.go(found)
        yield from (one.result for one in window)


def run_program(program: Program[T]) -> T | NoValue:
    """Run a program that asks nobody."""
    try:
        next(program)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    except NoValue as none:
        return none
    raise AssertionError("a program that needs no model asks one")


def combine_programs(work: Sequence[Program[T]]) -> Program[list[T | NoValue]]:
    """Combine programs into one that sends their requests of each round together."""
    parts = [_RunningProgram(steps) for steps in work]
    for one in parts:
        one.go(None)
    while alive := [one for one in parts if not one.ended]:
        outcomes = iter((yield [request for one in alive for request in one.requests]))
        for one in alive:
            one.go(list(islice(outcomes, len(one.requests))))
    return [one.result for one in parts]


class Forecast(NamedTuple):
    """Calls that programs would make, as far as known without calling the model."""

    plan: CallPlan
    waiting: int
    """Programs that may make more calls once they have these answers."""

    def __str__(self) -> str:
        more = f"; {format_count(self.waiting, 'of these answers leads', 'of these answers lead')} to more calls"
        return f"{self.plan}{more if self.waiting else ''}"


def forecast_programs(
    job: Job, work: Iterable[Program[T]], *, more: Callable[[int], bool] = lambda round_: False
) -> Forecast:
    """Plan what `run_programs` would do, following each program as far as the store has answers.

    ``more`` tells whether a program waiting in a round (from 0) has further rounds.
    """
    waiting = 0

    def asked() -> Iterator[Request]:
        nonlocal waiting
        programs = iter(work)
        while window := [_RunningProgram(steps) for steps in islice(programs, PROGRAM_WINDOW)]:
            for one in window:
                one.go(None)
            round_ = 0
            while alive := [one for one in window if not one.ended]:
                requests = [request for one in alive for request in one.requests]
                yield from requests
                known = iter(job.peek(requests))
                for one in alive:
                    outcomes = list(islice(known, len(one.requests)))
                    found = [outcome for outcome in outcomes if outcome is not None]
                    if len(found) < len(outcomes):
                        waiting += more(round_)
                        one.ended = True
                        one.steps.close()
                    else:
                        one.go(found)
                round_ += 1

    return Forecast(job.plan(asked()), waiting)
