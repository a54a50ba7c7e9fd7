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


class _RunningProgram:
    """A program: the requests it waits for, or its result once it has ended."""

    def __init__(self, steps: Program[Any]) -> None:
        self.steps = steps
        self.requests: Sequence[Request] = ()
        self.result: Any = None
        self.ended = False
        self.resume(None)

    def resume(self, outcomes: Any) -> None:
        try:
            self.requests = self.steps.send(outcomes)
        except StopIteration as stop:
            self.requests, self.result, self.ended = (), stop.value, True
        except NoValue as reason:
            self.requests, self.result, self.ended = (), reason, True


def combine_programs(work: Iterable[Program[T]]) -> Program[list[T | NoValue]]:
    """Combine programs into one that sends their requests of each round together."""
    programs = [_RunningProgram(steps) for steps in work]
    while running := [program for program in programs if not program.ended]:
        outcomes = iter((yield [request for program in running for request in program.requests]))
        for program in running:
            program.resume(list(islice(outcomes, len(program.requests))))
    return [program.result for program in programs]


def run_programs(job: Job | None, work: Iterable[Program[T]]) -> Iterator[T | NoValue]:
    """Yield the result of each program in order, or `NoValue`. Without a job, no program may ask."""
    waiting = iter(work)
    while window := list(islice(waiting, PROGRAM_WINDOW)):
        combined = _RunningProgram(combine_programs(window))
        while not combined.ended:
            if job is None:
                raise AssertionError("a program that needs no model asks one")
            combined.resume(list(job.run(combined.requests)))
        yield from combined.result


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
    """Plan the calls of `run_programs`, following each program as far as the store has answers.

    ``more`` tells whether a program waiting in a round (from 0) has further rounds.
    """
    waiting = 0

    def requests_of_all() -> Iterator[Request]:
        nonlocal waiting
        programs = iter(work)
        while running := [_RunningProgram(steps) for steps in islice(programs, PROGRAM_WINDOW)]:
            round_ = 0
            while running := [program for program in running if not program.ended]:
                requests = [request for program in running for request in program.requests]
                yield from requests
                stored = iter(job.peek(requests))
                for program in running:
                    outcomes = list(islice(stored, len(program.requests)))
                    if None in outcomes:
                        waiting += more(round_)
                        program.ended = True
                        program.steps.close()
                    else:
                        program.resume(outcomes)
                round_ += 1

    return Forecast(job.plan(requests_of_all()), waiting)
