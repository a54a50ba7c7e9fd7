"""Which value of a metric's parameter goes best with the outcome: a grid of values, and what choosing is worth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ragworth.core.errors import InputError, format_count
from ragworth.data import Contexts, Judgments, Outcomes
from ragworth.fitting.grids import ParameterGrid, build_grid
from ragworth.fitting.parameter_choice import (
    CorrelationKind,
    CorrelationOptions,
    ParameterChoice,
    choose_pooled,
    choose_within,
)
from ragworth.fitting.rows import FittingRows, FittingTables, build_fitting_rows
from ragworth.fitting.sentences import choice_sentence
from ragworth.stats.correlation import Measure
from ragworth.stats.estimate import Estimate
from ragworth.stats.pooled import pooled_correlations
from ragworth.stats.within_query import within_query_correlations


class SweepResult(NamedTuple):
    """A sweep: its table, the choices by each kind of correlation that there is, and what they say.

    ``table`` has value, metric and default, and for ``within`` (queries) and ``pooled`` (over all contexts) the
    correlation, its interval and the queries that it is from.
    """

    name: str
    pattern: str
    parameter: str
    table: pl.DataFrame
    choices: tuple[ParameterChoice, ...]
    sentences: tuple[str, ...]
    queries: int
    contexts: int
    left_out: dict[str, int]


def sweep(
    pattern: str,
    contexts: Contexts,
    judgments: Judgments,
    outcomes: Outcomes,
    *,
    outcome: str = "grade",
    **settings: Any,
) -> SweepResult:
    """Sweep the parameter of a pattern such as ``UDCG(gamma=*)@5`` over all its values; see :func:`sweep_tables`."""
    return sweep_tables(build_grid(pattern), FittingTables(contexts, judgments, outcomes), outcome=outcome, **settings)


def sweep_tables(
    grid: ParameterGrid,
    tables: FittingTables,
    *,
    outcome: str = "grade",
    measure: Measure = "spearman",
    folds: int = 5,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> SweepResult:
    """The correlation with the outcome for every value of a parameter: within queries, and over all contexts.

    A metric of which lower is better goes with the outcome when its correlation is negative: the lowest is the best.
    Where too few queries have contexts whose outcomes differ, there is no choice by correlations within queries.
    """
    rows = build_fitting_rows(tables, grid.metrics, outcome)
    _check_rows(rows, folds)
    facts: dict[str, Any] = {"measure": measure, "level": level, "resamples": resamples, "seed": seed}
    columns: dict[str, list[Any]] = {
        "value": list(grid.values),
        "metric": [str(metric) for metric in grid.metrics],
        "default": [place == grid.default for place in range(len(grid.values))],
    }
    columns |= _columns("within", within_query_correlations(rows.values, rows.outcome, rows.query, **facts))
    columns |= _columns("pooled", pooled_correlations(rows.values, rows.outcome, rows.query, **facts))
    up = 1 if grid.metrics[0].declaration.higher_is_better else -1
    settings = CorrelationOptions(measure, folds, level, resamples, seed, up)
    made = (choose_within(grid, rows, settings), choose_pooled(grid, rows, settings))
    choices = tuple(each for each in made if each is not None)
    kinds = {name: pl.Float64 for name in columns if name.endswith(("within", "pooled", "_low", "_high"))}
    return SweepResult(
        tables.name,
        grid.pattern,
        grid.parameter,
        pl.DataFrame(columns, schema_overrides=kinds),
        choices,
        tuple(choice_sentence(grid.parameter, choice, up) for choice in choices),
        rows.queries,
        len(rows.outcome),
        dict(rows.left_out),
    )


def _columns(kind: CorrelationKind, found: Sequence[Estimate]) -> dict[str, list[Any]]:
    return {
        kind: [each.value for each in found],
        f"{kind}_low": [each.low for each in found],
        f"{kind}_high": [each.high for each in found],
        f"{kind}_queries": [each.counts.get("queries", each.n) for each in found],
    }


def _check_rows(rows: FittingRows, folds: int) -> None:
    """Refuse rows that nothing can be learned from."""
    if folds < 2:
        raise InputError(f"there cannot be {format_count(folds, 'part')}", expected="2 or more")
    if not len(rows.outcome):
        said = tuple(f"{reason}: {format_count(n, 'context')}" for reason, n in rows.left_out.items())
        raise InputError("no context has both a score and an outcome", more=said)
    if np.ptp(rows.outcome) == 0:
        raise InputError(
            f"all {format_count(len(rows.outcome), 'outcome')} are {rows.outcome[0]:g}: nothing goes with them",
            remedy="take contexts of which some lead to correct answers and some do not",
        )
    if rows.queries < 2 * folds:
        raise InputError(
            f"there are {format_count(rows.queries, 'query', 'queries')} with a score and an outcome",
            expected=f"at least {2 * folds}, for {folds} parts",
        )
