"""Declarations of metrics, and their written form ``UDCG(gamma=0.33)@5``.

A declaration states once a metric's name, parameters, inputs and properties, and how it is computed. A
:class:`Metric` is a declaration with parameters and cutoff. Its written form is its identity: it parses, prints,
hashes and labels columns.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from ragworth.core.errors import MetricError, format_list
from ragworth.metrics.blocks import Block, Bools, Floats

ParameterValue = float | bool | str
ParameterInput = ParameterValue | Mapping[Any, float]
"""Accepted values of a parameter; some take a dict, which is converted to its written form."""
Need = Literal["relevance", "abstention", "downstream", "likelihood", "ratings", "tokens", "runs"]
Universe = Literal["relevance", "ratings", "abstention", "downstream", "likelihood"]
UNIVERSES: tuple[Universe, ...] = ("relevance", "ratings", "abstention", "downstream", "likelihood")
"""Judgments that can determine which queries are evaluated: the first that a metric needs."""


class MetricResult(NamedTuple):
    """A metric's values for the contexts of a block, and why some are missing.

    ``missing`` holds (which contexts, reason); their values are ignored.
    """

    values: Floats
    missing: tuple[tuple[Bools, str], ...] = ()


Compute = Callable[..., Floats | MetricResult]
BoundsFunction = Callable[[Mapping[str, Any], float], tuple[float, float]]


@dataclass(frozen=True)
class Parameter:
    """A parameter: its default, meaning and accepted values."""

    name: str
    default: ParameterValue
    doc: str
    choices: tuple[str, ...] = ()
    low: float = -np.inf
    high: float = np.inf

    @property
    def takes(self) -> str:
        """The accepted values, in words."""
        if self.choices:
            return " or ".join(self.choices)
        if isinstance(self.default, bool):
            return "true or false"
        if np.isinf(self.low) and np.isinf(self.high):
            return "a number"
        if np.isinf(self.high):
            return f"a number from {format_number(self.low)}"
        return f"a number from {format_number(self.low)} to {format_number(self.high)}"

    @property
    def example(self) -> str:
        """A value in its written form."""
        return format_parameter(self.default)

    def parse(self, text: str) -> ParameterValue:
        """Parse a value from its written form, or raise ValueError."""
        if isinstance(self.default, bool):
            return {"true": True, "false": False}[text.lower()] if text.lower() in ("true", "false") else _refuse()
        if isinstance(self.default, str):
            return self.check(text.strip("'\""))
        return self.check(float(Fraction(text)) if "/" in text else float(text))

    def check(self, value: ParameterInput) -> ParameterValue:
        """Convert ``value`` to the type of the default, or raise ValueError if it isn't accepted."""
        if isinstance(self.default, bool):
            return value if isinstance(value, bool) else _refuse()
        if isinstance(self.default, str):
            return value if isinstance(value, str) and value in self.choices else _refuse()
        if isinstance(value, (str, bool, Mapping)) or not self.low <= value <= self.high or not np.isfinite(value):
            return _refuse()
        return float(value)


def _refuse() -> ParameterValue:
    raise ValueError


@dataclass(frozen=True)
class FileParameter(Parameter):
    """An optional parameter that names a file. Metrics don't read files: see :meth:`Metric.given`."""

    default: ParameterValue = ""
    doc: str = ""

    @property
    def takes(self) -> str:
        return "the path of a file"

    @property
    def example(self) -> str:
        return "FILE"

    def parse(self, text: str) -> ParameterValue:
        quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
        return self.check(text[1:-1] if quoted else text)

    def check(self, value: ParameterInput) -> ParameterValue:
        if isinstance(value, str) and value.strip() and value.isprintable() and '"' not in value:
            return value
        return _refuse()


@dataclass(frozen=True, eq=False)
class Declaration:
    """The declaration of a metric.

    Attributes
    ----------
    name: as it is written.
    title: what it measures, in half a line.
    formula: in plain text.
    needs: the judgments it reads.
    bounds: lowest and highest value for given parameters and number of passages shown.
    range: the same in words.
    paper: where it comes from.
    higher_is_better: its direction.
    order_free: the order of the passages within the cutoff doesn't matter.
    irrelevant_never_raises: adding an irrelevant passage at the end of a context never raises it.
    whole_query: it depends on judgments of passages outside the context.
    reach: how far down the ranking it looks, in multiples of the cutoff.
    takes_cutoff: ``@k`` is allowed.
    minds_failures: a failed relevance judgment makes its value missing.
    reader_may_judge: it means something even if the reader judged relevance itself.
    files: parameters that name files, which the caller reads.
    default: its place among the metrics that are computed if the user names none; 0 if it isn't one of them.
    """

    name: str
    title: str
    formula: str
    needs: tuple[Need, ...]
    range: str
    bounds: BoundsFunction
    paper: str
    compute: Compute
    parameters: tuple[Parameter, ...] = ()
    higher_is_better: bool = True
    order_free: bool = False
    irrelevant_never_raises: bool = True
    whole_query: bool = True
    reach: int = 1
    takes_cutoff: bool = True
    minds_failures: bool = True
    reader_may_judge: bool = True
    files: tuple[FileParameter, ...] = ()
    default: int = 0

    @property
    def doc(self) -> str:
        """The docstring of the function: definition, ties, empty contexts and missing judgments."""
        return inspect.getdoc(self.compute) or ""

    @property
    def universe(self) -> Universe:
        """The judgments that determine which queries are evaluated: the first of :data:`UNIVERSES` that it needs."""
        return next((universe for universe in UNIVERSES if universe in self.needs), "ratings")

    def bind(self, cutoff: int | None = None, **values: ParameterInput) -> Metric:
        """Set parameters and cutoff; invalid ones raise :class:`MetricError`."""
        known = {parameter.name: parameter for parameter in (*self.parameters, *self.files)}
        bound: list[tuple[str, ParameterValue]] = []
        for name, value in values.items():
            if name not in known:
                raise self._unknown_parameter(name)
            try:
                bound.append((name, known[name].check(value)))
            except (ValueError, TypeError) as error:
                raise self._wrong_value(known[name], value) from error
        if cutoff is not None and (not self.takes_cutoff or cutoff < 1):
            raise MetricError(
                f"{self.name}@{cutoff}: "
                + ("the cutoff must be 1 or more" if self.takes_cutoff else "takes no cutoff"),
                remedy=f"write {self.name}@10" if self.takes_cutoff else f"write {self.name}",
            )
        chosen = dict(bound)
        every = (*self.parameters, *self.files)
        kept = tuple((p.name, chosen[p.name]) for p in every if chosen.get(p.name, p.default) != p.default)
        return Metric(self.name, kept, cutoff, declaration=self)

    def parse_values(self, pairs: list[tuple[str, str]]) -> dict[str, ParameterValue]:
        """Parse parameter values from their written forms."""
        known = {parameter.name: parameter for parameter in (*self.parameters, *self.files)}
        values: dict[str, ParameterValue] = {}
        for name, text in pairs:
            if name not in known:
                raise self._unknown_parameter(name)
            try:
                values[name] = known[name].parse(text)
            except (ValueError, ZeroDivisionError) as error:
                raise self._wrong_value(known[name], text) from error
        return values

    def _unknown_parameter(self, name: str) -> MetricError:
        takes = [p.name for p in (*self.parameters, *self.files)]
        return MetricError(
            f"{self.name} has no parameter {name!r}",
            expected=format_list(takes, 10) if takes else "no parameters",
            remedy=f"see: ragworth metrics {self.name}",
        )

    def _wrong_value(self, parameter: Parameter, value: ParameterInput) -> MetricError:
        return MetricError(
            f"{self.name}: {parameter.name}={value} is invalid",
            expected=f"{parameter.takes}, such as {self.name}({parameter.name}={parameter.example})",
        )


def declare(**facts: Any) -> Callable[[Compute], Declaration]:
    """Turn a function over a block into the declaration of a metric."""

    def wrap(compute: Compute) -> Declaration:
        return Declaration(compute=compute, **facts)

    return wrap


@dataclass(frozen=True)
class Metric:
    """A declared metric with its parameters and cutoff. ``str()`` is its written form.

    ``parameters`` lists only those that differ from their defaults, in the order of declaration. ``held`` is the
    content of the files that some of them name; it isn't part of the metric's identity.
    """

    name: str
    parameters: tuple[tuple[str, ParameterValue], ...] = ()
    cutoff: int | None = None
    held: tuple[tuple[str, Any], ...] = field(default=(), compare=False, repr=False)
    declaration: Declaration = field(kw_only=True, compare=False, repr=False)

    def __str__(self) -> str:
        inside = ", ".join(f"{name}={format_parameter(value)}" for name, value in self.parameters)
        return self.name + (f"({inside})" if inside else "") + (f"@{self.cutoff}" if self.cutoff else "")

    @cached_property
    def values(self) -> dict[str, Any]:
        """All parameters, including defaults."""
        return {p.name: p.default for p in self.declaration.parameters} | dict(self.parameters)

    @property
    def files(self) -> dict[str, str]:
        """Files named by parameters, by parameter."""
        names = {parameter.name for parameter in self.declaration.files}
        return {name: str(value) for name, value in self.parameters if name in names}

    def given(self, **held: Any) -> Metric:
        """Return the metric with the content of its files, by parameter."""
        return replace(self, held=tuple(held.items()))

    @property
    def needs(self) -> set[Need]:
        """The judgments it reads."""
        needs = set(self.declaration.needs)
        if self.values.get("estimate") in ("pool", "chapman"):
            needs.add("runs")
        return needs

    @property
    def whole_query(self) -> bool:
        """Whether it depends on judgments of passages outside the context."""
        own_ideal = self.values.get("ideal") == "retrieved"
        return (self.declaration.whole_query and not own_ideal) or "runs" in self.needs

    def bounds(self, shown: float) -> tuple[float, float]:
        """Lowest and highest value if at most ``shown`` passages are shown."""
        return self.declaration.bounds(self.values, min(shown, self.cutoff) if self.cutoff else shown)

    def compute(self, block: Block) -> MetricResult:
        """Compute the values for the contexts of a block."""
        if unread := set(self.files) - dict(self.held).keys():
            raise MetricError(
                f"{self}: the content of the file was not passed ({format_list(sorted(unread))})",
                remedy="use ragworth.score, which reads the file",
            )
        k = np.inf if self.cutoff is None else float(self.cutoff)
        with np.errstate(over="ignore", invalid="ignore"):  # values that aren't finite get a status, not a warning
            result = self.declaration.compute(block, k, **self.values | dict(self.held))
        return result if isinstance(result, MetricResult) else MetricResult(result)


def format_number(number: float) -> str:
    """Format a number as short as possible."""
    return str(int(number)) if float(number).is_integer() and abs(number) < 1e15 else repr(float(number))


def format_parameter(value: ParameterValue) -> str:
    """Format a parameter's value in its written form."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value if re.fullmatch(r"[^\s,()'\"]+", value) else f'"{value}"'
    return format_number(value)
