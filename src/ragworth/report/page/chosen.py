"""Which queries the explorer holds where there are more than a page can carry."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from ragworth.comparison import higher_is_better, score_matrices
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
    problems = _with_findings(known, chosen, most // 3, rng)
    chosen[query_numbers(pl.Series(problems, dtype=pl.String), known.queries)] = True
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


def _with_findings(known: Survey, chosen: npt.NDArray[np.bool_], most: int, rng: np.random.Generator) -> list[str]:
    """``most`` other queries with findings: of each an equal share of those still to add, or all that were examined."""
    known_before = known.queries.filter(pl.Series(chosen)).implode()
    problems = known.diagnosis.frame.filter(
        ~pl.col("finding").is_in(QUIET_FINDINGS), ~pl.col("query").is_in(known_before)
    )
    queries = problems.group_by("finding").agg(pl.col("query").unique(maintain_order=True))
    queries = queries.sort(pl.col("query").list.len(), "finding")  # the rarest first
    added: dict[str, None] = {}
    for place, found in enumerate(queries["query"].to_list()):
        those = [query for query in found if query not in added]
        some = min(len(those), (most - len(added)) // (queries.height - place))
        added |= dict.fromkeys(those[i] for i in rng.choice(len(those), some, replace=False))
    return list(added)
