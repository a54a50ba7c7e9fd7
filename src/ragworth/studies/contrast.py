"""Arms of an experiment: contexts of the same queries that differ in one thing, and what became of the answers.

An arm is a system of a case. Only queries with an outcome in every arm count, so that differences between arms never
come from different queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, compress
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ragworth.core.errors import InputError
from ragworth.judging.annotators.confidence import MEASURES
from ragworth.report.study.page import StudyPage, estimate_rows
from ragworth.report.wording import between, count_queries, p_words, percent_interval, signed
from ragworth.score_rows import GRADE, NO_GRADES_REMEDY, PARTIAL_GRADE, aspect_of
from ragworth.stats.bootstrap import Clusters
from ragworth.stats.estimate import Estimate, Resampling, mean_estimates
from ragworth.stats.paired import Test, correct_by_holm, difference
from ragworth.stats.range_intervals import Bounds
from ragworth.studies.cases import matrix
from ragworth.studies.contract import Case

Floats = npt.NDArray[np.float64]

KINDS = {"correct": 1.0, "abstained": 0.0, "wrong": -1.0}
"""What can become of an answer, best first, with its grade."""

SHARE: Bounds = (0.0, 1.0)
Contrasts = dict[tuple[str, str, str], Estimate]
"""By measure and the two arms: the first minus the second, query by query."""

CONTRAST_NOTE = (
    "first minus second; wins: queries in which the first is higher; detectable: the smallest true difference that "
    "this many queries show with probability 0.8"
)


class OutcomeGrid(NamedTuple):
    """Outcomes of some arms, queries × arms, for the queries that have one in every arm."""

    arms: list[str]
    queries: list[str]
    values: Floats
    aspect: str
    clusters: list[int] | None = None
    """The conversation of each query; None if queries are independent."""
    partial: Floats | None = None
    """The grades by the rule of `PARTIAL_GRADE`, if the protocol has it."""

    @property
    def graded(self) -> bool:
        """Whether the outcome is a three-way grade: by its name, and by all of its values."""
        named = self.aspect == GRADE or self.aspect.endswith(f"-{GRADE}")
        return named and bool(np.isin(self.values, list(KINDS.values())).all())

    @property
    def worth(self) -> Floats:
        """What is averaged: for grades whether the answer is correct, otherwise the outcome itself."""
        return self.share("correct") if self.graded else self.values

    @property
    def bounds(self) -> Bounds | None:
        return SHARE if self.graded else None

    @property
    def what(self) -> str:
        """What the average is called."""
        return "accuracy" if self.graded else f"mean {self.aspect}"

    @property
    def number(self) -> str:
        """How many queries, in words."""
        return count_queries(len(self.queries))

    @property
    def over(self) -> str:
        return f"over {self.number}"

    def share(self, kind: str) -> Floats:
        """1 where an answer is of a kind."""
        return np.asarray(self.values == KINDS[kind], dtype=np.float64)

    def means(self) -> list[float]:
        return [round(float(each), 12) for each in self.worth.mean(axis=0)]

    def say(self, value: float) -> str:
        """An average in words: grades in per cent."""
        return f"{100 * value:.1f} %" if self.graded else signed(value)

    def interval(self, one: Estimate) -> str:
        return percent_interval(one.interval) if self.graded else between(one.interval)

    def change(self, value: float) -> str:
        """A difference in words: grades in percentage points."""
        return f"{signed(100 * value, 1)} points" if self.graded else signed(value)

    def gap(self, value: float) -> str:
        """A difference in words, without its sign."""
        return self.change(abs(value))

    def power(self, least: float | None) -> str:
        """What this many queries can show, in words; nothing if that isn't known, or more than is possible."""
        if least is None or (self.graded and least > 1):
            return ""
        units = "queries" if self.clusters is None else "conversations"
        return f"; this many {units} show a true difference of {self.gap(least)} with probability 0.8"


def outcome_grid(case: Case, arms: Sequence[str], wanted: str | None, page: StudyPage) -> OutcomeGrid:
    """The outcomes of some systems of a case; the page counts the queries that lack one."""
    grid = read_grid(case, arms, wanted)
    asked = case.results.contexts.frame.filter(pl.col("system").is_in(list(arms)))["query"].n_unique()
    page.leave_out(case, {"no outcome in every context": asked - len(grid.queries)})
    return grid


def read_grid(case: Case, arms: Sequence[str], wanted: str | None) -> OutcomeGrid:
    """The outcomes of some systems of a case."""
    aspect = aspect_of(case.results.outcomes, wanted, case.name)
    asked = case.results.contexts.frame.filter(pl.col("system").is_in(list(arms)))["query"].unique(maintain_order=True)
    values = matrix(case.results.outcomes_of(aspect), arms, asked.to_list())
    there = np.asarray(~np.isnan(values).any(axis=1))
    if not there.any():
        found = f"{case.name}: none of {len(asked):,} queries has an outcome {aspect!r} in every context"
        raise InputError(found, remedy=NO_GRADES_REMEDY)
    queries = list(compress(asked, there))
    partial = matrix(case.results.outcomes_of(PARTIAL_GRADE), arms, queries) if aspect == GRADE else None
    if partial is not None and np.isnan(partial).all():
        partial = None
    return OutcomeGrid(list(arms), queries, values[there], aspect, case.clusters(queries), partial)


def arm_rows(
    grid: OutcomeGrid, label: str, plan: Resampling, shown: Sequence[object] | None = None
) -> list[dict[str, object]]:
    """A row for each arm: for grades the share of each kind, otherwise the mean, with its interval.

    If the protocol has `PARTIAL_GRADE`, its mean stands beside that of the grade, over the queries that have both.

    ``shown`` is what stands for the arms in the column ``label``; by default their names.
    """
    rows, means = [], mean_estimates(grid.worth, plan, grid.bounds, grid.clusters)
    for at, (name, mean) in enumerate(zip(shown or grid.arms, means, strict=True)):
        shares = {kind: float(grid.share(kind)[:, at].mean()) for kind in KINDS} if grid.graded else {}
        row: dict[str, object] = {label: name, **(shares or {"mean": mean.value})}
        turns = {"conversations": mean.clusters} if mean.clusters is not None else {}
        row |= {"low": mean.low, "high": mean.high, "queries": mean.n, **turns}
        if grid.partial is not None:
            partial = grid.partial[:, at]
            row |= {GRADE: float(grid.values[~np.isnan(partial), at].mean()), PARTIAL_GRADE: float(np.nanmean(partial))}
        rows.append(row)
    return rows


def compare_arms(
    measures: Mapping[str, tuple[Floats, Bounds | None]],
    arms: Sequence[str],
    plan: Resampling,
    test: Test = "wilcoxon",
    pairs: Iterable[tuple[int, int]] | None = None,
    *,
    clusters: Clusters,
) -> Contrasts:
    """Pairs of arms (all by default, the later against the earlier) by each measure; Holm within a measure.

    ``clusters`` has the conversation of each query; None if queries are independent.
    """
    chosen = list(pairs) if pairs is not None else [(b, a) for a, b in combinations(range(len(arms)), 2)]
    found: Contrasts = {}
    for measure, (values, bounds) in measures.items():
        gaps = {(a, b): difference(values[:, a], values[:, b], test, plan, bounds, clusters) for a, b in chosen}
        found |= {(measure, arms[a], arms[b]): one for (a, b), one in correct_by_holm(gaps).items()}
    return found


def contrast_rows(found: Contrasts, *keys: str) -> list[dict[str, object]]:
    """A row for each contrast, whose columns are named in ``keys``: by default those of `compare_arms`."""
    more = "p", "p_holm", "counts", "detectable"
    return estimate_rows(keys or ("measure", "first", "second"), found, "difference", *more)


def contrast_words(grid: OutcomeGrid, measure: str, one: Estimate, alpha: float) -> str:
    """A contrast in a few words."""
    if not one.counts["wins"] and not one.counts["losses"]:
        return f"{measure} the same for every query"
    value = one.value or 0.0
    sign = "−" if value < 0 else "+" if value > 0 else ""
    sure = "" if one.is_significant(alpha) else ", which may be chance"
    return f"{measure} {sign}{grid.gap(value)} {grid.interval(one)}, Wilcoxon {p_words(one.p_holm)} after Holm{sure}"


def metric_grids(case: Case, grid: OutcomeGrid) -> dict[str, Floats]:
    """The scores of each metric for the same queries and arms."""
    return {metric: matrix(part, grid.arms, grid.queries) for metric, part in case.results.scores_by_metric().items()}


def confidence_grids(case: Case, grid: OutcomeGrid) -> dict[str, Floats]:
    """The model's confidence in each context by each measure, queries × arms; empty if it was not asked for."""
    known = {name: case.results.outcomes_of(name).drop_nulls("value") for name in MEASURES}
    return {name: matrix(part, grid.arms, grid.queries) for name, part in known.items() if part.height}
