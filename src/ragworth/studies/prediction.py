"""Do metrics predict an outcome? Correlations within queries and over all contexts, and which metric is best."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
import polars as pl

from ragworth.errors import format_count, format_list
from ragworth.report.study.charts import dot_chart, heat_chart
from ragworth.stats.bootstrap import bootstrap_means
from ragworth.stats.correlation import Measure, correlation
from ragworth.stats.estimate import Estimate, Resampling, correct_by_holm
from ragworth.stats.pooled import pooled_correlations, pooled_gaps
from ragworth.stats.resampling import expanded_interval, expanded_p
from ragworth.stats.within_query import query_correlations, within_query_correlations, within_query_gaps
from ragworth.studies.contract import Case
from ragworth.studies.page import StudyPage, columns
from ragworth.studies.score_rows import Floats, ScoreRows
from ragworth.studies.wording import MEASURE_NAMES, between, signed

MAIN = "UDCG"
"""Of metrics that predict equally well, it comes first; and it is always compared with nDCG."""

FEWEST = 20
"""Queries below which no decision should rest on the result."""

FEW = 0.5
"""A metric isn't the best if fewer than this share of the queries have a correlation with it."""


@dataclass(frozen=True, eq=False)
class Prediction:
    """How the metrics of some contexts go with their outcome."""

    rows: ScoreRows
    measure: Measure
    plan: Resampling

    @cached_property
    def within(self) -> list[Estimate]:
        """The mean over queries of each metric's correlation within a query."""
        rows = self.rows
        found = within_query_correlations(
            rows.values, rows.outcome, rows.units, measure=self.measure, **self.plan.options
        )
        return [Estimate.of(one) for one in found]

    @cached_property
    def by_query(self) -> Floats:
        """The correlation within each query, queries × metrics; NaN where there is none."""
        rows = self.rows
        return query_correlations(rows.values, rows.outcome, rows.units, measure=self.measure).values

    @cached_property
    def pooled(self) -> list[Estimate]:
        """Each metric's correlation over all contexts: what makes one query easier than another counts too."""
        rows = self.rows
        found = pooled_correlations(rows.values, rows.outcome, rows.units, measure=self.measure, **self.plan.options)
        return [Estimate.of(one, unit="n") for one in found]

    def gaps(self, pairs: list[tuple[int, int]], *, pooled: bool = False) -> list[Estimate]:
        """The correlation of one metric minus that of another, by a paired bootstrap over queries."""
        if not pairs:
            return []
        rows, compare = self.rows, pooled_gaps if pooled else within_query_gaps
        found = compare(rows.values, rows.outcome, rows.units, pairs=pairs, measure=self.measure, **self.plan.options)
        return [Estimate.of(one, unit="n" if pooled else "queries") for one in found]

    @cached_property
    def order(self) -> list[int]:
        """Metrics by their correlation within queries, the highest first.

        Those without one come last, and before them those that have one for few queries: what a metric says of some
        queries is no reason to prefer it.
        """
        names, values = self.rows.metrics, [one.value if one.value is not None else -2.0 for one in self.within]
        enough = FEW * max((one.n for one in self.within), default=0)

        def place(at: int) -> tuple[bool, float, bool, int]:
            return self.within[at].n < enough, -round(values[at], 12), not names[at].startswith(MAIN), at

        return sorted(range(len(names)), key=place)

    @property
    def best(self) -> int:
        return self.order[0]

    @cached_property
    def compared(self) -> list[tuple[int, int, Estimate]]:
        """The best metric minus each other one, corrected by Holm; and UDCG minus nDCG if neither is the best."""
        pairs = [(self.best, at) for at in self.order[1:]]
        found = self.gaps(pairs)
        # Metrics that rank all contexts of every query alike are one comparison, not several.
        alike = [(one.p, one.value, one.n) for one in found]
        kinds = list(dict.fromkeys(alike))
        p = dict(zip(kinds, correct_by_holm([Estimate(p=kind[0]) for kind in kinds]), strict=True))
        made = [
            (*pair, one._replace(p_holm=p[kind].p_holm)) for pair, one, kind in zip(pairs, found, alike, strict=True)
        ]
        mine = self._first(MAIN), self._first("nDCG")
        if mine[0] is not None and mine[1] is not None and self.best not in mine:
            pair = (mine[0], mine[1])
            made += [(*pair, self.gaps([pair])[0])]
        return made

    def _first(self, name: str) -> int | None:
        """The first metric of a family."""
        names = self.rows.metrics
        return next((at for at, each in enumerate(names) if _family(each) == name), None)

    def within_rows(self) -> Iterator[dict[str, object]]:
        for at in self.order:
            yield {"metric": self.rows.metrics[at]} | columns(self.within[at], "correlation", "left out")

    def pooled_rows(self) -> Iterator[dict[str, object]]:
        for at in self.order:
            yield {"metric": self.rows.metrics[at]} | columns(self.pooled[at], "correlation", unit="contexts")

    def gap_rows(self) -> Iterator[dict[str, object]]:
        names = self.rows.metrics
        for a, b, one in self.compared:
            yield {"first": names[a], "second": names[b]} | columns(one, "difference", "p", "p_holm")

    def sentence(self) -> str:
        """Which metric to use, how sure that is, and which others differ from it."""
        best, name, measure = self.within[self.best], self.rows.metrics[self.best], MEASURE_NAMES[self.measure]
        if best.value is None:
            return f"no metric has a correlation with the outcome: {best.reason}."
        total = format_count(best.n + best.n_left_out, "query", "queries")
        figures = f"{measure} {signed(best.value)} {between(best.interval)} over {best.n:,} of {total}."
        if best.high is not None and best.high < 0:
            return (
                "the metrics go against the outcome: contexts that they rate higher lead to worse answers; least so "
                f"{name}, {figures}"
            )
        if best.low is None or best.low <= 0:
            return f"no metric reliably predicts the outcome; {name} comes closest, {figures}"
        told: dict[str, list[str]] = {"worse": [], "same": [], "better": []}
        for a, b, one in self.compared:
            if a == self.best and one.value is not None:
                sure = one.is_significant(self.plan.alpha)
                told[("worse" if one.value > 0 else "better") if sure else "same"].append(self.rows.metrics[b])
        words = f"use {name}: {figures}" if told["worse"] or not told["same"] else f"{name} is highest: {figures}"
        words += f" It is significantly better than {format_list(told['worse'], 20)}." if told["worse"] else ""
        if told["same"]:
            none = "" if told["worse"] else ", so there is no reason to prefer one of them"
            words += f" It can't be told apart from {format_list(told['same'], 20)}{none}."
        if told["better"]:
            words += f" On the queries that both have, it is behind {format_list(told['better'], 20)}."
        return words + (f" With {best.n} queries this is only a hint." if best.n < FEWEST else "")


def average_rows(every: Sequence[Prediction]) -> Iterator[dict[str, object]]:
    """The correlation within queries of each metric that all cases have, averaged over the cases; and UDCG − nDCG.

    Queries are resampled in each case, and every case counts the same.
    """
    shared = [name for name in every[0].rows.metrics if all(name in each.rows.metrics for each in every)]
    grids = {name: [each.by_query[:, [each.rows.metrics.index(name)]] for each in every] for name in shared}
    main = {kind: next((n for n in shared if _family(n) == kind), None) for kind in (MAIN, "nDCG")}
    if (first := main[MAIN]) is not None and (second := main["nDCG"]) is not None:
        pairs = zip(grids[first], grids[second], strict=True)
        grids[f"{first} − {second}"] = [a - b for a, b in pairs]
    for name, parts in grids.items():
        known = [part[~np.isnan(part).any(axis=1)] for part in parts]
        if not all(len(part) for part in known):
            continue
        plan, n = every[0].plan, sum(len(part) for part in known)
        draws = np.mean(
            [bootstrap_means(part, plan.resamples, plan.seed + at)[:, 0] for at, part in enumerate(known)], axis=0
        )
        low, high = expanded_interval(draws, n, plan.level) or (None, None)
        value = float(np.mean([part.mean() for part in known]))
        yield {"metric": name} | columns(Estimate(value, low, high, expanded_p(draws, n), n=n), "correlation", "p")


def _family(name: str) -> str:
    return name.partition("@")[0].partition("(")[0]


def draw_correlations(page: StudyPage, table: pl.DataFrame, measure: str) -> None:
    """A dot for each metric, with its interval."""
    shown = table.drop_nulls("correlation").select(
        pl.col("metric").alias("label"),
        pl.col("correlation").alias("value"),
        "low",
        "high",
        pl.col("queries").alias("n"),
        *page.group,
    )
    caption = f"Mean {measure} within queries, with {page.study.level:.0%} intervals over queries."
    page.draw("alignment", "How well each metric predicts the answers", caption, dot_chart(shown, measure, zero=True))


def draw_agreement(page: StudyPage, case: Case, rows: ScoreRows, measure: Measure, also: str = "") -> None:
    """A matrix of how far the metrics (and ``also`` the outcome) agree over all contexts, and its table."""
    names = [*rows.metrics, *([also] if also else [])]
    values = np.column_stack([rows.values, rows.outcome]) if also else rows.values
    pairs = [
        {"first": names[a], "second": names[b], "value": correlation(values[:, a], values[:, b], measure).value}
        for a, b in combinations(range(len(names)), 2)
    ]
    mine = page.add("agreement", case, pairs)
    if not pairs:
        return
    other = mine.select(pl.col("second").alias("first"), pl.col("first").alias("second"), "value")
    same = pl.DataFrame({"first": names, "second": names, "value": [1.0] * len(names)})
    both = pl.concat([mine.select("first", "second", "value"), other, same]).drop_nulls("value")
    words = MEASURE_NAMES[measure]
    spec = heat_chart(both, names, names, words)
    page.draw("agreement", "How far the metrics agree", f"{words} over all contexts.", spec, case)
