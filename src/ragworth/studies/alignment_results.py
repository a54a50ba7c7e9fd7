"""The metrics of one case beside its outcome: which predicts it best, how surely, and how far they agree."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

import numpy as np
import polars as pl

from ragworth.errors import format_count, format_list
from ragworth.stats.correlation import Measure, spearman
from ragworth.stats.paired import holm
from ragworth.stats.pooled import CorrelationGap, PooledCorrelation, pooled_correlations
from ragworth.stats.within_query import MeanCorrelation, within_query_correlations, within_query_gaps
from ragworth.studies.score_rows import ScoreRows
from ragworth.studies.sentences import between, measure_words, signed

MAIN = "UDCG"
"""The metric that the paper is about: of equals, it stands first."""

FEWEST = 20
"""Queries below which no recommendation should be built upon."""

FEW = 0.5
"""Share of the queries that the most defined metric has a correlation in, below which a metric is not the best."""

CORRELATED: dict[str, type[pl.DataType]] = {
    "case": pl.String,
    "metric": pl.String,
    "correlation": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "queries": pl.Int64,
    "left out": pl.Int64,
    "why": pl.String,
}
POOLED: dict[str, type[pl.DataType]] = {
    "case": pl.String,
    "metric": pl.String,
    "correlation": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "contexts": pl.Int64,
}
GAPS: dict[str, type[pl.DataType]] = {
    "case": pl.String,
    "best": pl.String,
    "metric": pl.String,
    "difference": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "p": pl.Float64,
    "p_holm": pl.Float64,
    "queries": pl.Int64,
}
PAIRS = {"case": pl.String, "first": pl.String, "second": pl.String, "value": pl.Float64}


@dataclass(frozen=True)
class Resampling:
    """How correlations are taken and resampled."""

    measure: Measure = "spearman"
    level: float = 0.95
    resamples: int = 2000
    seed: int = 0


@dataclass(frozen=True, eq=False)
class CaseAlignment:
    """How the metrics of one case go with its outcome, within queries."""

    name: str
    rows: ScoreRows
    how: Resampling = field(default_factory=Resampling)

    @cached_property
    def found(self) -> list[MeanCorrelation]:
        """Each metric's mean correlation."""
        how = self.how
        return within_query_correlations(
            self.rows.values,
            self.rows.outcome,
            self.rows.units,
            measure=how.measure,
            level=how.level,
            resamples=how.resamples,
            seed=how.seed,
        )

    @cached_property
    def order(self) -> list[int]:
        """Metrics by their correlation, the highest first.

        Those without one stand last, and before them those that have one in few of the queries that others have one
        in: what a metric says of some queries alone is no reason to prefer it.
        """
        names, values = self.rows.metrics, [one.value if one.value is not None else -2.0 for one in self.found]
        enough = FEW * max((one.queries for one in self.found), default=0)

        def place(at: int) -> tuple[bool, float, bool, int]:
            few = self.found[at].queries < enough
            return few, -round(values[at], 12), not names[at].startswith(MAIN), at

        return sorted(range(len(names)), key=place)

    @property
    def best(self) -> int:
        return self.order[0]

    @property
    def reasons(self) -> dict[str, int]:
        """Queries without a correlation of the best metric, by reason."""
        return self.found[self.best].left_out

    @cached_property
    def compared(self) -> list[tuple[int, CorrelationGap, float]]:
        """The best metric less each other: which, the difference, and p after Holm (NaN where there is none)."""
        others, how = self.order[1:], self.how
        if not others:
            return []
        found = within_query_gaps(
            self.rows.values,
            self.rows.outcome,
            self.rows.units,
            pairs=[(self.best, at) for at in others],
            measure=how.measure,
            level=how.level,
            resamples=how.resamples,
            seed=how.seed,
        )
        # Metrics that rank all contexts of every query alike are one comparison, not several.
        alike = [(one.p, one.value, one.queries) for one in found]
        kinds = list(dict.fromkeys(alike))
        p = dict(zip(kinds, holm(np.array([np.nan if one is None else one for one, _, _ in kinds])), strict=True))
        return [(at, one, float(p[kind])) for at, one, kind in zip(others, found, alike, strict=True)]

    @property
    def lead(self) -> str:
        """What there was, in one sentence."""
        rows = self.rows
        return (
            f"{self.name}: {format_count(len(rows.queries), 'context')} of "
            f"{format_count(len(set(rows.queries)), 'query', 'queries')} with the outcome {rows.aspect!r}, "
            f"{format_count(len(rows.metrics), 'metric')}."
        )

    def table(self) -> pl.DataFrame:
        """A row for each metric, the best first."""
        made = []
        for at in self.order:
            one = self.found[at]
            why = one.reason or ", ".join(f"{why}: {count:,}" for why, count in one.left_out.items())
            made.append(
                (self.name, self.rows.metrics[at], one.value, *_ends(one), one.queries, sum(one.left_out.values()), why)
            )
        return pl.DataFrame(made, schema=CORRELATED, orient="row")

    def together(self) -> pl.DataFrame:
        """Each metric over all contexts at once: what makes one query easier than another counts here too."""
        how = self.how
        found = pooled_correlations(
            self.rows.values,
            self.rows.outcome,
            self.rows.units,
            measure=how.measure,
            level=how.level,
            resamples=how.resamples,
            seed=how.seed,
        )
        made = [
            (self.name, self.rows.metrics[at], found[at].value, *_ends(found[at]), found[at].n) for at in self.order
        ]
        return pl.DataFrame(made, schema=POOLED, orient="row")

    def gaps(self) -> pl.DataFrame:
        """The best metric against each other one."""
        best = self.rows.metrics[self.best]
        made = [
            (self.name, best, self.rows.metrics[at], one.value, *_ends(one), one.p, _known(p), one.queries)
            for at, one, p in self.compared
        ]
        return pl.DataFrame(made, schema=GAPS, orient="row")

    def pairs(self) -> pl.DataFrame:
        """How every two metrics agree over all contexts: Spearman's ρ."""
        made = []
        for a, b in combinations(range(len(self.rows.metrics)), 2):
            x, y = self.rows.values[:, a], self.rows.values[:, b]
            both = ~(np.isnan(x) | np.isnan(y))
            value = spearman(x[both], y[both]) if both.any() else float("nan")
            made.append((self.name, self.rows.metrics[a], self.rows.metrics[b], _known(float(value))))
        return pl.DataFrame(made, schema=PAIRS, orient="row")

    def sentence(self) -> str:
        """Which metric to use, how sure that is, and which differ from it."""
        best, name, measure = self.found[self.best], self.rows.metrics[self.best], measure_words(self.how.measure)
        if best.value is None:
            return f"{self.name}: no metric has a correlation with the outcome: {best.reason}."
        total = best.queries + sum(best.left_out.values())
        figures = f"{measure} {signed(best.value)} {between(best.interval)} over {best.queries:,} of "
        figures += f"{format_count(total, 'query', 'queries')}."
        if best.interval is not None and best.interval.high < 0:
            words = (
                f"{self.name}: the metrics go against the outcome: contexts that they call better lead to worse answers"
            )
            return f"{words}; least so {name}, {figures}"
        if best.interval is None or best.interval.low <= 0:
            return f"{self.name}: no metric surely predicts the outcome; {name} comes nearest, {figures}"
        told: dict[str, list[str]] = {"worse": [], "same": [], "better": []}
        for at, one, p in self.compared:
            if one.value is not None:
                sure = p < 1 - self.how.level
                told[("worse" if one.value > 0 else "better") if sure else "same"].append(self.rows.metrics[at])
        use = f"use {name}: {figures}" if told["worse"] or not told["same"] else f"{name} is highest: {figures}"
        words = f"{self.name}: {use}"
        words += f" It is significantly better than {format_list(told['worse'], 20)}." if told["worse"] else ""
        if told["same"]:
            none = "" if told["worse"] else ", so that nothing speaks for one of them"
            words += f" It cannot be told apart from {format_list(told['same'], 20)}{none}."
        if told["better"]:
            words += f" In the queries that both have, it is behind {format_list(told['better'], 20)}."
        return words + (f" With {best.queries} queries that is no more than a hint." if best.queries < FEWEST else "")


def _ends(one: MeanCorrelation | PooledCorrelation | CorrelationGap) -> tuple[float | None, float | None]:
    return (one.interval.low, one.interval.high) if one.interval is not None else (None, None)


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value
