"""What a pattern such as ``UDCG(gamma=*)@5`` stands for: a metric with many values of one parameter."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ragworth.core.errors import InputError, MetricError, format_count, format_list, quote_short
from ragworth.metrics.declaration import Metric, Parameter
from ragworth.metrics.parsing import parse

STAR_PATTERN = re.compile(r"(\w+)\s*=\s*\*\s*(?:,\s*)?")
DEFAULT_STEPS = 21
MAX_GRID_STEPS = 1000
"""Values that a grid may have."""


class ParameterGrid(NamedTuple):
    """A parameter and the metrics with its values in ascending order, the default among them.

    ``default`` is its place; it may be none of the values asked for.
    """

    pattern: str
    parameter: str
    values: tuple[float, ...]
    metrics: tuple[Metric, ...]
    default: int


def build_grid(
    pattern: str,
    low: float | None = None,
    high: float | None = None,
    steps: int = DEFAULT_STEPS,
    *,
    values: Sequence[float] = (),
) -> ParameterGrid:
    """The metrics of a pattern: for these ``values``, or from ``low`` to ``high``, or over all that is possible."""
    stars = STAR_PATTERN.findall(pattern)
    if len(stars) != 1 or pattern.count("*") != 1 or len(re.findall(rf"\b{stars[0]}\s*=", pattern)) > 1:
        raise MetricError(
            f"{quote_short(pattern)} does not name one parameter to sweep",
            expected="one *, such as UDCG(gamma=*)@5 or T(alpha=*)@5",
        )
    metric, name = parse(re.sub(r",\s*\)", ")", STAR_PATTERN.sub("", pattern))), stars[0]
    numbers = {each.name: each for each in metric.declaration.parameters if isinstance(each.default, float)}
    if name not in numbers:
        raise MetricError(
            f"{metric.name} has no parameter {name!r} that is a number",
            expected=format_list(list(numbers), 10) if numbers else "a metric that has one",
            remedy=f"see: ragworth metrics {metric.name}",
        )
    if metric.files:
        raise MetricError(f"{metric} has learned weights", expected="a metric without a file")
    wanted = tuple(float(value) for value in values) or _grid_values(numbers[name], low, high, steps)
    default = float(numbers[name].default)
    # A value of the grid may be the default but for rounding.
    every = sorted({default, *(value for value in wanted if abs(value - default) > 1e-9)})
    others = dict(metric.parameters)
    metrics = tuple(metric.declaration.bind(metric.cutoff, **others | {name: value}) for value in every)
    return ParameterGrid(pattern, name, tuple(every), metrics, every.index(default))


def _grid_values(parameter: Parameter, low: float | None, high: float | None, steps: int) -> tuple[float, ...]:
    first, last = parameter.low if low is None else low, parameter.high if high is None else high
    if not np.isfinite([first, last]).all() or not first < last or not 2 <= steps <= MAX_GRID_STEPS:
        raise InputError(
            f"{parameter.name} from {first:g} to {last:g} in {format_count(steps, 'value')} is no grid",
            expected=f"a lowest and a highest value (--from, --to), and 2 to {MAX_GRID_STEPS:,} values",
        )
    return tuple(float(round(each, 12)) for each in np.linspace(first, last, steps))
