"""The contract of everything that asks a model about passages or answers: items → requests → findings → a table.

Each item becomes a program that asks the model (`ragworth.calls.programs`) and returns a finding; the findings of all
items become a result with a table. The writer of answers, the rewriter of questions and judges (`judge.py`) are tasks.
`plan_task` and `run_task` take any task, so what is planned is what runs.

Settings are dataclass fields with a description and constraints. The command line makes its options from them.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import Field, field, fields
from itertools import chain
from typing import Any, Generic, Protocol, TypeVar

import polars as pl

from ragworth.calls.job import Job
from ragworth.calls.programs import Forecast, NoValue, Program, forecast_programs, run_programs
from ragworth.core.errors import (
    InputError,
    ModelError,
    format_list,
    quote_short,
)
from ragworth.llm.contract import Model
from ragworth.llm.prompts.template import Template


def resolve_model(model: Model | str | None) -> Model:
    """Return the model itself, open one by its written form such as ``hf:NAME``, or the embedded one for None."""
    if model is None or isinstance(model, str):
        from ragworth.llm import llm

        return llm() if model is None else llm(model)
    if not hasattr(model, "card"):
        raise ModelError(
            f"the model is {quote_short(model)}", expected="a model from ragworth.llm, its written form, or None"
        )
    return model


T = TypeVar("T")


def option(
    default: T, help: str, *, choices: tuple[str, ...] = (), low: float | None = None, high: float | None = None
) -> T:
    """Declare a setting, its description and constraints. A trailing ``_`` of the name is dropped outside Python."""
    about = {"help": help, "choices": choices, "low": low, "high": high}
    made: Any = field(default=default, kw_only=True, metadata=about)
    return made  # type: ignore[no-any-return]


def prompt_option(name: str) -> str:
    """The setting for another prompt than the one of this name."""
    return option("", f"another prompt than {name}: a name, such as papers/{name}, or a file")


def options_of(kind: type) -> list[Field[Any]]:
    """The settings of a class."""
    return [each for each in fields(kind) if "help" in each.metadata]


def validate_options(settings: Any, kind: str) -> None:
    """Reject invalid values, all at once."""
    wrong = []
    for each in options_of(type(settings)):
        value = getattr(settings, each.name)
        expected = _expected(each, value)
        if expected:
            wrong.append(f"{each.name} is {value!r}; it may be {expected}")
    if wrong:
        raise InputError(f"{kind}: {wrong[0]}", more=tuple(wrong[1:]))


def _expected(each: Field[Any], value: Any) -> str:
    """Say what the value of a setting may be; empty if this one is valid."""
    low, high, choices = (each.metadata[name] for name in ("low", "high", "choices"))
    if value is None and each.default is None:
        return ""
    if choices:
        return "" if value in choices else format_list(list(choices), 12)
    if isinstance(each.default, bool | str):
        words = "true or false" if isinstance(each.default, bool) else "a text"
        return "" if isinstance(value, type(each.default)) else words
    if each.default is None and low is None and high is None:
        return ""  # nothing says of what kind it is
    bounds = _bounds(low, high)
    exact = isinstance(each.default, int)
    kinds = (int,) if exact else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds) or not math.isfinite(value):
        return f"{'a whole number' if exact else 'a number'} {bounds}".strip()
    inside = (low is None or value >= low) and (high is None or value <= high)
    return "" if inside else bounds


def _bounds(low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f"from {low:g} to {high:g}"
    return f"{low:g} or more" if low is not None else f"{high:g} or less" if high is not None else ""


def options_by_name(kind: type, settings: dict[str, Any], name: str) -> dict[str, Any]:
    """Look up settings by name; unknown names are an error."""
    known = [each.name for each in options_of(kind)]
    strange = [each for each in settings if each not in known]
    if strange:
        near = [close[0] for each in strange if (close := difflib.get_close_matches(each, known, n=1))]
        raise InputError(
            f"{name} has no setting {format_list(strange)}",
            expected=format_list(known, 20) or "no settings",
            remedy=f"did you mean {format_list(near)}?" if near else "",
        )
    return settings


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
    findings: Iterator[FindingT | NoValue] = run_programs(job, programs)
    known = [next(findings) for _ in controls]
    return task.collect(items, findings, known)
