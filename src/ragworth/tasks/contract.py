"""What a task is: the one way in which ragworth asks a model.

Each item becomes a program that asks the model (`ragworth.calls.programs`) and returns a finding; the findings of all
items become a result with a table. Annotators, the writer of answers and graders are tasks. `plan_task` and `run_task`
take any of them, so what is planned is what runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Generic, Protocol, TypeVar

import polars as pl

from ragworth.calls.job import Job
from ragworth.calls.programs import Forecast, NoValue, Program, forecast_programs, run_program, run_programs
from ragworth.prompts.template import Template


class TaskResult(Protocol):
    """What every task gives: a row for each finding, with its value or the reason why there is none."""

    @property
    def frame(self) -> pl.DataFrame: ...

    @property
    def notes(self) -> tuple[str, ...]: ...


ItemT = TypeVar("ItemT")
FindingT = TypeVar("FindingT")
ResultT = TypeVar("ResultT", bound=TaskResult)


class Task(Generic[ItemT, FindingT, ResultT]):
    """One kind of question to a model."""

    @property
    def turns(self) -> int:
        """How often the model is asked about one item at most, each time by what came before."""
        return 1

    @property
    def templates(self) -> Mapping[str, Template]:
        """The prompts it asks with, by name."""
        return {}

    def program(self, item: ItemT) -> Program[FindingT]:
        """Ask the model about one item. `NoValue`, raised anywhere in it, becomes the status of the item's rows."""
        raise NotImplementedError

    def controls(self) -> Sequence[Program[FindingT]]:
        """Programs to run besides, of which it is known what a fit model makes of them."""
        return ()

    def prepare(self, items: Sequence[ItemT]) -> None:
        """Compute together what is slow one by one."""

    def collect(
        self,
        items: Sequence[ItemT],
        findings: Iterable[FindingT | NoValue],
        controls: Sequence[FindingT | NoValue],
    ) -> ResultT:
        """Make the result of all findings, which come in the order of the items."""
        raise NotImplementedError


def plan_task(task: Task[ItemT, FindingT, ResultT], items: Sequence[ItemT], job: Job) -> Forecast:
    """Count the calls that `run_task` would make, without making any."""
    programs = chain(map(task.program, items), task.controls())
    return forecast_programs(job, programs, more=lambda turn: turn + 1 < task.turns)


def run_task(task: Task[ItemT, FindingT, ResultT], items: Sequence[ItemT], job: Job | None) -> ResultT:
    """Ask about all items. Without a job, the task must be one that asks nobody."""
    controls = list(task.controls())
    task.prepare(items)
    programs = chain(controls, map(task.program, items))
    findings: Iterator[FindingT | NoValue] = iter(run_programs(job, programs) if job else map(run_program, programs))
    known = [next(findings) for _ in controls]
    return task.collect(items, findings, known)
