"""The interface of a task, which is the only way ragworth asks a model.

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
    """The result of a task: a row for each finding, with its value or the reason why it has none."""

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
    def max_rounds(self) -> int:
        """Maximum number of rounds per item; each round depends on the responses to the one before."""
        return 1

    @property
    def templates(self) -> Mapping[str, Template]:
        """The prompts, by name."""
        return {}

    def program(self, item: ItemT) -> Program[FindingT]:
        """Ask the model about one item. `NoValue`, raised anywhere in it, becomes the status of the item's rows."""
        raise NotImplementedError

    def controls(self) -> Sequence[Program[FindingT]]:
        """Extra programs whose expected result is known, to check that the model is fit for the task."""
        return ()

    def prepare(self, items: Sequence[ItemT]) -> None:
        """Compute in one batch what is slow item by item."""

    def collect(
        self,
        items: Sequence[ItemT],
        findings: Iterable[FindingT | NoValue],
        controls: Sequence[FindingT | NoValue],
    ) -> ResultT:
        """Build the result from the findings, which are in the order of the items."""
        raise NotImplementedError


def plan_task(task: Task[ItemT, FindingT, ResultT], items: Sequence[ItemT], job: Job) -> Forecast:
    """Count the calls that `run_task` would make, without making any."""
    programs = chain(map(task.program, items), task.controls())
    return forecast_programs(job, programs, more=lambda number: number + 1 < task.max_rounds)


def run_task(task: Task[ItemT, FindingT, ResultT], items: Sequence[ItemT], job: Job | None) -> ResultT:
    """Run the task on all items. Without a job, the task must not ask a model."""
    controls = list(task.controls())
    task.prepare(items)
    programs = chain(controls, map(task.program, items))
    findings: Iterator[FindingT | NoValue] = iter(run_programs(job, programs) if job else map(run_program, programs))
    known = [next(findings) for _ in controls]
    return task.collect(items, findings, known)
