"""Scores beside outcomes: the rows that every question about metrics is asked of."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ragworth.comparison import direction, higher_is_better
from ragworth.conversations import cluster_labels
from ragworth.errors import InputError, format_count, format_list
from ragworth.results import Results
from ragworth.tables import OK, Outcomes

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

GRADE = "grade"
"""The outcome that studies take where there is one: correct 1, partially correct ½, abstained 0, wrong −1."""

NO_GRADES_REMEDY = "see why the answers have no grades: outcomes.parquet, column status"

DIGITS = 12
"""Sums of the same passages in another order differ by rounding; a rank correlation would see an order in that."""

HALF_SHARE = 0.1
"""Share of half grades from which a note says where they come from."""


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
    if wanted is not None and wanted not in known:
        raise InputError(f"{where}there is no outcome {wanted!r}", expected=format_list(known, 12))
    if wanted is None and GRADE not in known and len(known) > 1:
        found = f"{where}there are {len(known)} outcomes, and no grade among them"
        raise InputError(found, expected=format_list(known, 12), remedy="name one: --outcome")
    return wanted or (GRADE if GRADE in known else known[0])


def rows_of(results: Results, wanted: str | None = None, metrics: Sequence[str] = (), name: str = "") -> ScoreRows:
    """Scores beside an outcome, for all contexts that have one."""
    aspect = aspect_of(results.outcomes, wanted, name)
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


def half_grade_notes(results: Results, outcome: str | None = None) -> list[str]:
    """Note grades of a study's contexts that depend on relevance labels, which metrics of relevance read as well.

    A correct answer counts as half if no relevant passage was shown. So such metrics agree with the grades of a model
    that ignores its passages.
    """
    every = results.said_of_answers(GRADE)
    if every is None or "relevant_shown" not in every.columns or outcome not in (None, GRADE):
        return []
    graded = every.filter(pl.col("label").is_not_null())
    half = graded.filter((pl.col("label") == "partially-correct") & ~pl.col("relevant_shown")).height
    if half < HALF_SHARE * max(graded.height, 1):
        return []
    return [
        f"{half:,} of {format_count(graded.height, 'answer')} are correct although no relevant passage was shown, and "
        "count as half because of the labels. Metrics of relevance read the same labels, so this part of their "
        "correlation says nothing of the answers; with partial = false for the grader under [grades], such answers are "
        "correct"
    ]


def _numbered(names: Sequence[str]) -> npt.NDArray[np.int64]:
    """The number of each name, in ascending order."""
    return np.unique(np.array(names, dtype=object).astype(str), return_inverse=True)[1].reshape(-1)


def _lost(frame: pl.DataFrame) -> dict[str, int]:
    """Queries that contexts without an outcome are of, by reason."""
    counts = frame.group_by("status", maintain_order=True).agg(pl.len(), pl.col("query").n_unique())
    return {f"{format_count(n, 'context')} without an outcome: {status}": q for status, n, q in counts.iter_rows()}
