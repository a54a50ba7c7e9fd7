"""Which queries the explorer holds where there are more than a page can carry."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from ragworth.comparison import higher_is_better, score_matrices
from ragworth.diagnosis import FINDINGS
from ragworth.metrics.ground_truth import query_numbers
from ragworth.report.page.survey import Survey
from ragworth.tables import Scores

MAX_QUERIES = 5000
"""Queries that the explorer holds at most, unless another number is asked for."""

MIN_QUERIES = 1000
"""Queries that it holds however many systems there are."""

MAX_CONTEXTS = 20_000
"""Contexts that it holds between these two limits: one for each query and system."""

QUIET_FINDINGS = ("fine",)
"""Findings that are no problem."""

Ints = npt.NDArray[np.int64]


def most_queries(systems: int) -> int:
    """How many queries the explorer holds of so many systems, unless another number is asked for."""
    return min(MAX_QUERIES, max(MIN_QUERIES, MAX_CONTEXTS // max(systems, 1)))


def chosen_queries(known: Survey, scores: Scores, main: str, most: int, seed: int) -> pl.Series:
    """All queries where they are at most ``most``. Otherwise ``most`` of them, in the order given:

    - a third: those on which systems differ most by the main metric (with one system, those with the worst scores);
    - up to a third: those with problems, drawn at random from each finding in turn;
    - the rest: drawn at random from all others.
    """
    total = len(known.queries)
    if total <= most:
        return known.queries
    rng = np.random.default_rng(seed)
    chosen = np.zeros(total, dtype=bool)
    chosen[_most_different(known.queries, scores, main, most // 3)] = True
    _add_problems(chosen, known.found, most // 3, rng)
    others = np.flatnonzero(~chosen)
    chosen[rng.choice(others, most - int(chosen.sum()), replace=False)] = True
    return known.queries.filter(pl.Series(chosen))


def _most_different(queries: pl.Series, scores: Scores, main: str, most: int) -> Ints:
    """The queries on which systems differ most; with one system, those with the worst scores."""
    spread = np.full(len(queries), -np.inf)
    for matrix in score_matrices(scores.having("metric", [main])):
        values = matrix.values
        low, high = np.fmin.reduce(values, axis=1), np.fmax.reduce(values, axis=1)
        worst = -low if higher_is_better(main) else high
        found = high - low if values.shape[1] > 1 else worst
        at = query_numbers(matrix.queries, queries)
        spread[at[at >= 0]] = np.nan_to_num(found[at >= 0], nan=-np.inf)
    return np.argsort(-spread, kind="stable")[:most]


def _add_problems(
    chosen: npt.NDArray[np.bool_], found: npt.NDArray[np.uint8], most: int, rng: np.random.Generator
) -> None:
    """Add ``most`` queries with findings: of each finding an equal share of those still to add, or all there are."""
    bits = np.bitwise_or.reduce(found, axis=0)
    problems = [1 << i for i, finding in enumerate(FINDINGS) if finding not in QUIET_FINDINGS]
    counts = {bit: int(np.count_nonzero((bits & bit > 0) & ~chosen)) for bit in problems}
    left = most
    for place, bit in enumerate(sorted(problems, key=lambda bit: counts[bit])):  # the rarest first
        those = np.flatnonzero((bits & bit > 0) & ~chosen)
        some = min(len(those), left // (len(problems) - place))
        chosen[rng.choice(those, some, replace=False)] = True
        left -= some
