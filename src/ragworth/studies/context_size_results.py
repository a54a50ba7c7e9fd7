"""Contexts of several sizes of one case: what metrics predict at each, and how far that strays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ragworth.collection import WORD_UNIT
from ragworth.errors import InputError, RagworthError, format_list
from ragworth.metrics.declaration import Metric
from ragworth.metrics.engine import Tokens
from ragworth.metrics.parsing import parse
from ragworth.results import Results
from ragworth.scoring import score
from ragworth.stats.bootstrap import bootstrap_means
from ragworth.stats.correlation import Measure
from ragworth.stats.paired import PairedComparison, compare_paired, holm
from ragworth.stats.resampling import ConfidenceInterval, expanded_interval
from ragworth.stats.within_query import query_correlations, within_query_correlations
from ragworth.studies.arms import KINDS, is_grade
from ragworth.studies.contract import Case
from ragworth.studies.score_rows import ScoreRows, aspect_of, rows_of
from ragworth.studies.system_correlation import SystemCorrelation, correlate_systems
from ragworth.studies.system_order import FEWEST
from ragworth.tables import OK, Contexts, Outcomes, Scores

if TYPE_CHECKING:
    from ragworth.studies.context_size import ContextSize

Floats = npt.NDArray[np.float64]


class SizeCorrelation(NamedTuple):
    """What one metric predicts at one size."""

    over: str
    metric: str
    k: int
    value: float | None
    span: ConfidenceInterval | None
    deviation: float | None
    n: int
    left_out: dict[str, int]
    reason: str


def family(name: str) -> Metric | None:
    """A metric without its cutoff; None where it cannot be cut elsewhere: of another tool, or with learned weights."""
    try:
        metric = parse(name)
    except RagworthError:
        return None
    return None if metric.files else replace(metric, cutoff=None)


def scored(results: Results, contexts: Contexts, families: Sequence[Metric], k: int) -> Scores:
    """Scores of contexts by metrics that are cut at k."""
    tokens = Tokens.of(results.collection.tokens(), WORD_UNIT) if results.collection.passages.height else None
    cut = [str(replace(metric, cutoff=k)) for metric in families]
    return score(contexts, results.judgments, cut, ratings=results.ratings, tokens=tokens, complete=False)


class SizedCase:
    """One case, by context size."""

    def __init__(self, study: ContextSize, case: Case) -> None:
        self.study, self.case = study, case
        self.measure: Measure = study.measure  # type: ignore[assignment]
        self.made = case.design.width > 1
        self.notes: list[str] = []
        self.against = parse(study.against) if study.against is not None else None
        self.families = self._families()
        self.contexts = self.parts(case, study.cuts)
        self._check()
        if self.against is not None:
            self.aspect = str(self.against)
        else:
            self.aspect = aspect_of(case.results.outcomes, study.outcome, case.name)
        self.moves = self.made or (self.against is not None and self.against.cutoff is None)
        """Whether the outcome is another one at each size."""
        self.ways = ["queries"] if self.made or len(case.results.contexts.systems) < FEWEST else ["queries", "systems"]

    @cached_property
    def rows(self) -> dict[int, ScoreRows]:
        """Scores beside outcomes, by size."""
        return {size: self._rows(size) for size in self.contexts}

    @cached_property
    def graded(self) -> bool:
        """Whether the outcome is a grade, of which shares can be given."""
        values = np.concatenate([rows.outcome for rows in self.rows.values()])
        return self.against is None and is_grade(self.aspect, values)

    @cached_property
    def found(self) -> list[SizeCorrelation]:
        """What each metric predicts at each size."""
        each = {"queries": self._over_queries, "systems": self._over_systems}
        return [one for size in self.contexts for over in self.ways for one in each[over](size)]

    @staticmethod
    def parts(case: Case, cuts: Sequence[int]) -> dict[int, Contexts]:
        """The contexts of each size: those made of that size, or all, which metrics cut there."""
        contexts = case.results.contexts
        if case.design.width < 2:
            deepest = int(contexts.frame["rank"].max() or 0) if contexts.frame.height else 0  # type: ignore[arg-type]
            return {k: contexts for k in cuts if k <= deepest}
        sizes = {k: case.design.filter(pl.col("size") == k)["system"].to_list() for k in cuts}
        return {
            k: Contexts.trusted(contexts.frame.filter(pl.col("system").is_in(systems)))
            for k, systems in sizes.items()
            if systems
        }

    def _families(self) -> list[Metric]:
        """The metrics of the case's scores, without their cutoffs."""
        names = self.case.results.scores.frame["metric"].unique(maintain_order=True).to_list()
        found = {name: family(name) for name in names}
        fixed = [name for name, metric in found.items() if metric is None]
        if fixed:
            self.notes.append(f"{self.case.name}: {format_list(fixed, 12)} cannot be cut at other sizes, and left out")
        own = replace(self.against, cutoff=None) if self.against is not None else None
        return list(dict.fromkeys(metric for metric in found.values() if metric is not None and metric != own))

    def _check(self) -> None:
        name = self.case.name
        if not self.families:
            raise InputError(
                f"{name}: there are no scores of a metric that can be cut", remedy="name metrics: -m nDCG@5"
            )
        if not self.contexts:
            raise InputError(
                f"{name}: no context has one of the sizes {self.study.sizes}", remedy="name others: --sizes"
            )
        lost = [k for k in self.study.cuts if k not in self.contexts]
        if lost:
            self.notes.append(f"{name}: no context has {format_list([str(k) for k in lost], 20)} passages")

    def _rows(self, size: int) -> ScoreRows:
        """Scores cut at a size beside the outcome."""
        results, contexts = self.case.results, self.contexts[size]
        scores = scored(results, contexts, self.families, size)
        outcome = self.study.outcome
        if self.against is not None:
            target = scored(results, contexts, [self.against], self.against.cutoff or size)
            outcome = self.aspect
            results = replace(results, outcomes=_as_outcomes(target, outcome))
        names = [str(replace(metric, cutoff=size)) for metric in self.families]
        rows = rows_of(replace(results, scores=scores), outcome, names, self.case.name)
        if not rows.queries:
            raise InputError(f"{self.case.name}: no context of {size} passages has both an outcome and scores")
        return rows._replace(metrics=[str(metric) for metric in self.families])

    def _over_queries(self, size: int) -> list[SizeCorrelation]:
        rows, study = self.rows[size], self.study
        each = query_correlations(rows.values, rows.outcome, rows.units, measure=self.measure).values
        found = within_query_correlations(
            rows.values,
            rows.outcome,
            rows.units,
            measure=self.measure,
            level=study.level,
            resamples=study.resamples,
            seed=study.seed,
        )
        made = []
        for metric, one, column in zip(rows.metrics, found, each.T, strict=True):
            known = column[~np.isnan(column)]
            deviation = float(known.std(ddof=1)) if len(known) > 1 else None
            made.append(
                SizeCorrelation(
                    "queries", metric, size, one.value, one.interval, deviation, one.queries, one.left_out, one.reason
                )
            )
        return made

    def _over_systems(self, size: int) -> list[SizeCorrelation]:
        """Correlations of the systems' means, over the queries for which all systems have both values."""
        made = []
        for metric in self.rows[size].metrics:
            one = self._went(metric, [size])
            left = {"a system has no value": one.left_out} if one.left_out else {}
            made.append(
                SizeCorrelation("systems", metric, size, one.value, one.span, None, one.systems, left, one.reason)
            )
        return made

    def _went(self, metric: str, sizes: Sequence[int]) -> SystemCorrelation:
        """The correlation of systems' means by a metric with those of the outcome, averaged over sizes."""
        study = self.study
        return correlate_systems(
            [self._sides(metric, size) for size in sizes],
            measure=self.measure,
            level=study.level,
            resamples=study.resamples,
            seed=study.seed,
        )

    def _sides(self, metric: str, size: int) -> tuple[Floats, Floats]:
        """A metric and the outcome as queries × systems."""
        rows = self.rows[size]
        systems = list(dict.fromkeys(rows.systems))
        at, column = places(rows.queries, self._queries), places(rows.systems, systems)
        values, outcome = (np.full((len(self._queries), len(systems)), np.nan) for _ in range(2))
        values[at, column] = rows.values[:, rows.metrics.index(metric)]
        outcome[at, column] = rows.outcome
        return values, outcome

    @cached_property
    def _queries(self) -> list[str]:
        """All queries of the case, in one order for every size."""
        return sorted({query for rows in self.rows.values() for query in rows.queries})

    def mean(self, over: str, metric: str) -> tuple[float, ConfidenceInterval | None, int]:
        """A metric's correlation averaged over the sizes at which it has one, its interval over queries, and n."""
        line = self.line(over, metric)
        value = float(np.mean(list(line.values())))
        if over == "systems":
            one = self._went(metric, list(line))
            return value, one.span, one.systems
        at = [str(each) for each in self.families].index(metric)
        each = np.stack([self._by_query(size)[:, at] for size in line], axis=1)
        each = each[~np.isnan(each).all(axis=1)]
        # A size at which no query that is drawn has a correlation gives none for the resample.
        draws = bootstrap_means(each, self.study.resamples, self.study.seed).mean(axis=1)
        return value, expanded_interval(draws, len(each), self.study.level), len(each)

    def line(self, over: str, metric: str) -> dict[int, float]:
        """The correlations of a metric by size, where it has one."""
        mine = (one for one in self.found if one.over == over and one.metric == metric)
        return {one.k: one.value for one in mine if one.value is not None}

    def ranked(self, over: str) -> list[str]:
        """Metrics that have a correlation, the highest mean over the sizes first; those that lack sizes last."""
        lines = {str(metric): self.line(over, str(metric)) for metric in self.families}
        known = [name for name, line in lines.items() if line]
        return sorted(
            known, key=lambda name: (-len(lines[name]), -round(float(np.mean(list(lines[name].values()))), 12))
        )

    def changes(self) -> list[tuple[str, PairedComparison, float | None]]:
        """By metric, the correlation within queries at the largest size less that at the smallest; and Holm's p."""
        sizes = list(self.rows)
        if len(sizes) < 2:
            return []
        columns = [self._by_query(size) for size in (sizes[0], sizes[-1])]
        study = self.study
        found = [
            compare_paired(
                a, b, "bootstrap", bounds=(-1.0, 1.0), level=study.level, resamples=study.resamples, seed=study.seed
            )
            for a, b in zip(*(column.T for column in columns), strict=True)
        ]
        p = holm(np.array([one.p if one.n > 1 else np.nan for one in found]))
        corrected = [None if np.isnan(each) else float(each) for each in p]
        return list(zip(map(str, self.families), found, corrected, strict=True))

    def _by_query(self, size: int) -> Floats:
        """Correlations within all queries of the case (queries × metrics), in one order for every size."""
        rows = self.rows[size]
        made = np.full((len(self._queries), len(rows.metrics)), np.nan)
        mine = sorted(set(rows.queries))
        made[places(mine, self._queries)] = query_correlations(
            rows.values, rows.outcome, rows.units, measure=self.measure
        ).values
        return made

    def worth(self, size: int) -> tuple[list[str], Floats]:
        """By query the share of correct answers, or the mean outcome."""
        rows = self.rows[size]
        value = (rows.outcome == KINDS["correct"]).astype(float) if self.graded else rows.outcome
        names, unit = sorted(set(rows.queries)), rows.units
        return names, np.bincount(unit, value) / np.bincount(unit)

    def left_out(self) -> list[tuple[str, str, int]]:
        """Queries left out before anything was asked; then those that have no correlation with the best metric."""
        rows = [(self.case.name, reason, number) for reason, number in self.case.left_out.items()]
        ranked = self.ranked("queries") or [str(self.families[0])]
        for one in self.found:
            if one.over == "queries" and one.metric == ranked[0]:
                rows += [(self.case.name, f"{why} ({one.metric}, k = {one.k})", n) for why, n in one.left_out.items()]
        return rows


def places(names: Sequence[str], known: Sequence[str]) -> list[int]:
    """Where each name stands among those that are known."""
    at = {name: place for place, name in enumerate(known)}
    return [at[name] for name in names]


def _as_outcomes(scores: Scores, aspect: str) -> Outcomes:
    """The scores of a metric, as the outcome to predict."""
    frame = scores.frame.filter(pl.col("status") == OK).with_columns(
        pl.lit(aspect).alias("aspect"), pl.lit("score").alias("source")
    )
    return Outcomes.trusted(frame.select(list(Outcomes.schema)))
