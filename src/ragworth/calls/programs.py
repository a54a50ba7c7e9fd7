"""Many small pieces of work that each ask a model one or more times, run together.

A piece of work is a generator: it yields requests, is sent what came of them, and in the end returns its
result. It reads like a program that talks to the model alone::

    def judge(pair: Pair) -> Steps[Finding]:
        (answer,) = yield [Generate(prompt)]
        text = wanted(answer, Generated).outputs[0].text
        (grade,) = yield [Choose(...)]
        return Finding(...)

`run` takes thousands of them and puts the requests of each round to a job together.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, TypeAlias, TypeVar

from ragworth.calls.budget import CallPlan
from ragworth.calls.job import Job
from ragworth.errors import format_count
from ragworth.llm.contract import Failure, Request, Response

T = TypeVar("T")
R = TypeVar("R")

Program: TypeAlias = Generator[Sequence[Request], Sequence[Response | Failure], T]
"""A piece of work whose result is a ``T``."""

PROGRAM_WINDOW = 4096
"""Pieces of work under way together. Memory is bounded by this, not by their number."""


class NoValue(Exception):  # noqa: N818 (it is a result)
    """Why a piece of work has no value: the status of its row, more about it, and what the model wrote."""

    def __init__(self, status: str, detail: str = "", raw: str | None = None) -> None:
        super().__init__(status, detail)
        self.status = status
        self.detail = detail
        self.raw = raw


def require_response(outcome: Response | Failure, kind: type[R]) -> R:
    """The response, which is of the kind that was asked for; `NoValue` where there is none."""
    if isinstance(outcome, Failure):
        raise NoValue(outcome.reason, outcome.detail)
    assert isinstance(outcome, kind)
    return outcome


@dataclass
class _RunningProgram:
    """A piece of work under way: what it waits for, or what has come of it."""

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
    """What comes of each piece of work, in their order; `NoValue` where it ended with that."""
    waiting = iter(work)
    while window := [_RunningProgram(steps) for steps in islice(waiting, PROGRAM_WINDOW)]:
        for one in window:
            one.go(None)
        while alive := [one for one in window if not one.ended]:
            outcomes = job.run(request for one in alive for request in one.requests)
            answers = [list(islice(outcomes, len(one.requests))) for one in alive]
            for _ in outcomes:  # to its end, so that the store is let go of
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
    """Several pieces of work as one: the requests of each round are asked together."""
    parts = [_RunningProgram(steps) for steps in work]
    for one in parts:
        one.go(None)
    while alive := [one for one in parts if not one.ended]:
        outcomes = iter((yield [request for one in alive for request in one.requests]))
        for one in alive:
            one.go(list(islice(outcomes, len(one.requests))))
    return [one.result for one in parts]


class Forecast(NamedTuple):
    """What running some work would take, as far as that can be known without asking."""

    plan: CallPlan
    waiting: int
    """Pieces of work that may ask more once they have these answers."""

    def __str__(self) -> str:
        more = f"; {format_count(self.waiting, 'of these answers leads', 'of these answers lead')} to more calls"
        return f"{self.plan}{more if self.waiting else ''}"


def forecast_programs(
    job: Job, work: Iterable[Program[T]], *, more: Callable[[int], bool] = lambda round_: False
) -> Forecast:
    """What `run` would do: nothing is asked, and work goes on as far as the store has answers.

    ``more`` says whether a piece of work that waits in its round (from 0) has further ones.
    """
    asked: list[Request] = []
    waiting = 0
    for steps in work:
        one, round_ = _RunningProgram(steps), 0
        one.go(None)
        while not one.ended:
            asked.extend(one.requests)
            known = job.peek(one.requests)
            found = [outcome for outcome in known if outcome is not None]
            if len(found) < len(known):
                waiting += more(round_)
                break
            one.go(found)
            round_ += 1
        one.steps.close()
    return Forecast(job.plan(asked), waiting)
