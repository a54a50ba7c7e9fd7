"""Scores beside outcomes: the rows that every question about metrics is asked of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import compress
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ragworth.comparison import direction, higher_is_better
from ragworth.core.errors import InputError, format_count, format_list
from ragworth.data import OK, Outcomes
from ragworth.data.conversations import cluster_labels
from ragworth.results import Results

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

GRADE = "grade"
"""The outcome that studies take where there is one: correct 1, abstained 0, wrong −1, by the answer alone."""

PARTIAL_GRADE = "grade(partial)"
"""The grade of Trappolini et al., in which a correct answer from a context without a relevant passage counts half.

It contains the labels that metrics of relevance are made of: they go with it also if the model ignores its passages. So
it is shown beside the grade under the protocol of that paper, and no sentence rests on it.
"""

NO_GRADES_REMEDY = "see why the answers have no grades: outcomes.parquet, column status"

DIGITS = 12
"""Sums of the same passages in another order differ by rounding; a rank correlation would see an order in that."""


class ScoreRows(NamedTuple):
    """One row for each context that has an outcome.

    ``values`` (rows × metrics) and ``outcome``: higher is better, whatever the direction of the metric or the outcome;
    NaN where there is no value.
    """

    metrics: list[str]
    values: Floats
    outcome: Floats
    queries: list[str]
    systems: list[str]
    aspect: str
    lost: dict[str, int] = {}  # noqa: RUF012 (never changed)
    """Queries that have contexts without an outcome, by what is the matter with those."""
    clusters: Ints | None = None
    """The conversation of each row's query; None if queries are independent."""

    @property
    def outcome_as_given(self) -> Floats:
        """The outcome itself, also if lower is better."""
        return self.outcome if higher_is_better(self.aspect) else 0 - self.outcome

    @property
    def units(self) -> npt.NDArray[np.int64]:
        """The number of each row's query."""
        return _numbered(self.queries)

    @property
    def query_clusters(self) -> Ints | None:
        """The conversation of each query, in the order of `units` and of `grid`."""
        return None if self.clusters is None else self.clusters[np.unique(self.units, return_index=True)[1]]

    def grid(self, values: Floats) -> Floats:
        """A value for each row, as queries × systems; NaN where there is no row."""
        units, systems = self.units, _numbered(self.systems)
        made = np.full((units.max(initial=-1) + 1, systems.max(initial=-1) + 1), np.nan)
        made[units, systems] = values
        return made

    def of_systems(self, names: Sequence[str]) -> ScoreRows:
        """The rows of some systems."""
        return self.only(np.array([system in names for system in self.systems], dtype=bool))

    def only(self, keep: npt.NDArray[np.bool_]) -> ScoreRows:
        """Some of the rows."""
        queries, systems = (list(compress(names, keep)) for names in (self.queries, self.systems))
        made = self._replace(values=self.values[keep], outcome=self.outcome[keep], queries=queries, systems=systems)
        return made if self.clusters is None else made._replace(clusters=self.clusters[keep])


def outcome_name(aspect: str) -> str:
    """The outcome in quotes, and its direction unless higher is better."""
    words = {1: "", 0: " (neither better nor worse)", -1: " (lower is better)"}
    return f"{aspect!r}{words[direction(aspect)]}"


def aspect_of(outcomes: Outcomes | None, wanted: str | None, name: str = "") -> str:
    """The outcome to take: the one that is wanted, else the grade, else the only one."""
    known = outcomes.frame["aspect"].unique(maintain_order=True).to_list() if outcomes is not None else []
    where = f"{name}: " if name else ""
    if not known:
        remedy = "have answers graded: [answers] and [grades] in the workspace"
        raise InputError(f"{where}there are no outcomes", remedy=remedy)
    if wanted == PARTIAL_GRADE:
        found = f"{where}{PARTIAL_GRADE} contains the labels that metrics read, so they go with it by construction"
        raise InputError(found, expected=format_list([name for name in known if name != PARTIAL_GRADE], 12))
    if wanted is not None and wanted not in known:
        raise InputError(f"{where}there is no outcome {wanted!r}", expected=format_list(known, 12))
    if wanted is None and GRADE not in known and len(known) > 1:
        found = f"{where}there are {len(known)} outcomes, and no grade among them"
        raise InputError(found, expected=format_list(known, 12), remedy="name one: --outcome")
    return wanted or (GRADE if GRADE in known else known[0])


def rows_of(results: Results, wanted: str | None = None, metrics: Sequence[str] = (), name: str = "") -> ScoreRows:
    """Scores beside an outcome, for all contexts that have one."""
    return rows_of_aspect(results, aspect_of(results.outcomes, wanted, name), metrics, name)


def rows_of_aspect(results: Results, aspect: str, metrics: Sequence[str] = (), name: str = "") -> ScoreRows:
    """Scores beside an outcome that is there."""
    assert results.outcomes is not None
    every = results.outcomes.frame.filter(pl.col("aspect") == aspect)
    outcome = every.filter(pl.col("status") == OK).select("system", "query", pl.col("value").alias("outcome"))
    known = results.scores.frame["metric"].unique(maintain_order=True).to_list()
    lacking = [metric for metric in metrics if metric not in known]
    if lacking or not known:
        found = f"{name + ': ' if name else ''}there are no scores of {format_list(lacking) or 'any metric'}"
        raise InputError(found, expected=format_list(known, 20) or "scores")
    chosen = list(metrics) or known
    wide = results.scores.frame.filter(pl.col("metric").is_in(chosen))
    wide = wide.pivot("metric", index=["system", "query"], values="value", maintain_order=True)
    both = outcome.join(wide, on=["system", "query"], how="inner", maintain_order="left")
    signs = np.array([1.0 if higher_is_better(metric) else -1.0 for metric in chosen])
    values = both.select(chosen).cast(pl.Float64).fill_null(float("nan")).to_numpy().reshape(both.height, len(chosen))
    labels = cluster_labels(both["query"], results.conversations)
    return ScoreRows(
        chosen,
        np.round(values * signs, DIGITS),
        both["outcome"].to_numpy().astype(np.float64) * (1 if higher_is_better(aspect) else -1),
        both["query"].to_list(),
        both["system"].to_list(),
        aspect,
        _lost(every.filter(pl.col("status") != OK)),
        None if labels is None else np.array(labels, dtype=np.int64),
    )


def with_partial_grades(results: Results) -> Results:
    """The same results with `PARTIAL_GRADE` as another outcome, for contexts with one answer.

    A query without a relevance label has no such grade: whether its contexts have a relevant passage isn't known.
    """
    if results.outcomes is None or results.judgments is None:
        return results
    labels = results.judgments.of("relevance").filter(pl.col("value").is_not_null())
    graded = results.outcomes_of(GRADE).filter(pl.col("value").is_in([1.0, 0.0, -1.0]))
    graded = graded.join(labels, on="query", how="semi", maintain_order="left")
    if not graded.height:
        return results
    relevant = labels.filter(pl.col("value") >= 1).select("query", "passage")
    shown = results.contexts.frame.join(relevant, on=["query", "passage"], how="semi")
    hits = shown.select("system", "query", pl.lit(True).alias("hit")).unique()
    half = (pl.col("value") == 1.0) & pl.col("hit").is_null()
    partial = graded.join(hits, on=["system", "query"], how="left", maintain_order="left").with_columns(
        aspect=pl.lit(PARTIAL_GRADE), value=pl.when(half).then(0.5).otherwise("value")
    )
    frame = pl.concat([results.outcomes.frame, partial.select(results.outcomes.frame.columns)])
    return replace(results, outcomes=Outcomes.trusted(frame))


def _numbered(names: Sequence[str]) -> npt.NDArray[np.int64]:
    """The number of each name, in ascending order."""
    return np.unique(np.array(names, dtype=object).astype(str), return_inverse=True)[1].reshape(-1)


def _lost(frame: pl.DataFrame) -> dict[str, int]:
    """Queries that contexts without an outcome are of, by reason."""
    counts = frame.group_by("status", maintain_order=True).agg(pl.len(), pl.col("query").n_unique())
    return {f"{format_count(n, 'context')} without an outcome: {status}": q for status, n, q in counts.iter_rows()}
