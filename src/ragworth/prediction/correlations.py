"""Do metrics predict an outcome? Correlations within queries and over all contexts, and which metric is best."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from ragworth.comparison import direction
from ragworth.core.errors import format_list
from ragworth.report.study.page import StudiedCase, StudyPage, columns
from ragworth.report.study.table_charts import mirrored_heat
from ragworth.report.wording import MEASURE_NAMES, count_queries, few_queries_hint, with_interval
from ragworth.score_rows import Floats, ScoreRows
from ragworth.stats.correlation import Measure, correlation
from ragworth.stats.estimate import Estimate, Resampling, mean_of_groups
from ragworth.stats.paired import correct_alike, is_reliable
from ragworth.stats.pooled import pooled_correlations, pooled_gaps
from ragworth.stats.within_query import query_correlations, within_query_correlations, within_query_gaps

MAIN = "UDCG"
"""Of metrics that predict equally well, it comes first; and it is always compared with nDCG."""

MIN_SHARE_OF_QUERIES = 0.8
"""The best metric has a correlation in at least this share of the queries in which any metric has one: where it is the
same for all contexts, it predicts nothing."""


@dataclass(frozen=True, eq=False)
class Prediction:
    """How the metrics of some contexts go with their outcome."""

    rows: ScoreRows
    measure: str
    plan: Resampling

    @property
    def _data(self) -> tuple[Floats, Floats, npt.NDArray[np.int64]]:
        return self.rows.values, self.rows.outcome, self.rows.units

    @property
    def _how(self) -> dict[str, Any]:
        return {"measure": self.measure, **self.plan.options, "clusters": self.rows.clusters}

    @cached_property
    def within(self) -> list[Estimate]:
        """The mean over queries of each metric's correlation within a query; p corrected for all metrics."""
        return correct_alike(within_query_correlations(*self._data, **self._how))

    @cached_property
    def by_query(self) -> Floats:
        """The correlation within each query, queries × metrics; NaN where there is none."""
        return query_correlations(*self._data, measure=self._how["measure"]).values

    @cached_property
    def pooled(self) -> list[Estimate]:
        """Each metric's correlation over all contexts: what makes one query easier than another counts too."""
        return correct_alike(pooled_correlations(*self._data, **self._how))

    def gaps(self, pairs: list[tuple[int, int]], *, pooled: bool = False) -> list[Estimate]:
        """The correlation of one metric minus that of another, by a paired bootstrap over queries."""
        compare = pooled_gaps if pooled else within_query_gaps
        return compare(*self._data, pairs=pairs, **self._how) if pairs else []

    @cached_property
    def order(self) -> list[int]:
        """Metrics by their correlation within queries, the highest first.

        Those without one come last, and before them those that have one for few queries: what a metric says of some
        queries is no reason to prefer it.
        """
        names, values = self.rows.metrics, [one.value if one.value is not None else -2.0 for one in self.within]

        def place(at: int) -> tuple[bool, float, bool, int]:
            return not self.has_enough(at), -round(values[at], 12), not names[at].startswith(MAIN), at

        return sorted(range(len(names)), key=place)

    def has_enough(self, at: int) -> bool:
        """Whether a metric has a correlation for enough of the queries to be preferred."""
        return self.within[at].n >= MIN_SHARE_OF_QUERIES * max(one.n for one in self.within)

    def is_reliable(self, at: int) -> bool:
        """Return whether a metric predicts the outcome, by the test that is corrected for all metrics."""
        return is_reliable(self.within[at], self.plan.alpha)

    @property
    def best(self) -> int:
        return self.order[0]

    @cached_property
    def compared(self) -> list[tuple[int, int, Estimate]]:
        """The best metric minus each other one, corrected by Holm; and UDCG minus nDCG if neither is the best."""
        pairs = [(self.best, at) for at in self.order[1:]]
        differences = correct_alike(self.gaps(pairs))
        if (main := _main_pair(self.rows.metrics)) is not None and self.best not in main:
            pairs, differences = [*pairs, main], [*differences, *self.gaps([main])]
        return [(*pair, one) for pair, one in zip(pairs, differences, strict=True)]

    def within_rows(self) -> Iterator[dict[str, object]]:
        for at in self.order:
            yield {"metric": self.rows.metrics[at]} | columns(self.within[at], "correlation", "p", "p_holm", "left out")

    def pooled_rows(self) -> Iterator[dict[str, object]]:
        for at in self.order:
            yield {"metric": self.rows.metrics[at]} | columns(
                self.pooled[at], "correlation", "p", "p_holm", unit="contexts"
            )

    def gap_rows(self) -> Iterator[dict[str, object]]:
        names = self.rows.metrics
        for a, b, one in self.compared:
            yield {"first": names[a], "second": names[b]} | columns(one, "difference", "p", "p_holm")

    def sentence(self) -> str:
        """Which metric to use, how sure that is, and which others differ from it."""
        best, name, measure = self.within[self.best], self.rows.metrics[self.best], MEASURE_NAMES[self.measure]
        if best.value is None:
            return f"no metric has a correlation with the outcome: {best.reason}."
        total = count_queries(best.n + best.n_left_out)
        figures = f"{measure} {with_interval(best)} over {best.n:,} of {total}."
        reliable = [at for at in self.order if self.is_reliable(at) and self.has_enough(at)]
        if best.value < 0 and best.is_significant(self.plan.alpha):
            words = "the metrics go against the outcome: contexts that they rate higher lead to worse answers"
            return f"{words}; least so {name}, {figures}{self._reliable_in_few_queries()}"
        if self.best not in reliable:
            if not reliable:
                words = f"no metric reliably predicts the outcome; {name} comes closest, {figures}"
                return words + self._reliable_in_few_queries()
            other = self.within[reliable[0]]
            surest = f"{self.rows.metrics[reliable[0]]} predicts the outcome best of those that reliably do"
            return (
                f"{surest}: {measure} {with_interval(other)} over {other.n:,} of {total}; {name} is higher, {figures}"
                f"{few_queries_hint(other.n)}"
            )
        told: dict[str, list[str]] = {"worse": [], "same": [], "better": []}
        for a, b, one in self.compared:
            if a == self.best and one.value is not None:
                sure = one.is_significant(self.plan.alpha)
                told[("worse" if one.value > 0 else "better") if sure else "same"].append(self.rows.metrics[b])
        advised = (told["worse"] or not told["same"]) and direction(self.rows.aspect)
        words = f"use {name}: {figures}" if advised else f"{name} is highest: {figures}"
        words += f" It is significantly better than {format_list(told['worse'], 20)}." if told["worse"] else ""
        if told["same"]:
            none = "" if told["worse"] else ", so there is no reason to prefer one of them"
            words += f" It can't be told apart from {format_list(told['same'], 20)}{none}."
        if told["better"]:
            words += f" On the queries that both have, it is behind {format_list(told['better'], 20)}."
        return words + few_queries_hint(best.n)

    def _reliable_in_few_queries(self) -> str:
        """The highest metric that reliably predicts the outcome where it has a correlation, which is in few queries."""
        for at in self.order:
            one = self.within[at]
            if not self.has_enough(at) and self.is_reliable(at):
                words = f" {self.rows.metrics[at]} predicts it, {with_interval(one)}, in the {count_queries(one.n)}"
                why = "in the others, its value or the outcome is the same for all contexts"
                return f"{words} in which it has a correlation; {why}."
        return ""


def average_rows(every: Sequence[Prediction]) -> Iterator[dict[str, object]]:
    """The correlation within queries of each metric that all cases have, averaged over the cases; and UDCG − nDCG."""
    shared = [name for name in every[0].rows.metrics if all(name in each.rows.metrics for each in every)]
    grids = {name: [each.by_query[:, each.rows.metrics.index(name)] for each in every] for name in shared}
    if (main := _main_pair(shared)) is not None:
        first, second = (shared[at] for at in main)
        grids[f"{first} − {second}"] = [a - b for a, b in zip(grids[first], grids[second], strict=True)]
    for name, parts in grids.items():
        one = mean_of_groups(parts, every[0].plan, [each.rows.query_clusters for each in every])
        one = one if one.value is not None else one._replace(reason="some case has no correlation")
        yield {"metric": name} | columns(one, "correlation", "p", "left out")


def _main_pair(metrics: Sequence[str]) -> tuple[int, int] | None:
    """Where the first UDCG and the first nDCG are, if there are both."""
    families = [name.partition("@")[0].partition("(")[0] for name in metrics]
    return (families.index(MAIN), families.index("nDCG")) if {MAIN, "nDCG"} <= set(families) else None


def draw_agreement(page: StudyPage, case: StudiedCase, rows: ScoreRows, measure: Measure, also: str = "") -> None:
    """A matrix of how far the metrics (and ``also`` the outcome) agree over all contexts, and its table."""
    names = [*rows.metrics, also] if also else rows.metrics
    values = np.column_stack([rows.values, rows.outcome])
    pairs = [
        {"first": names[a], "second": names[b], "value": correlation(values[:, a], values[:, b], measure).value}
        for a, b in combinations(range(len(names)), 2)
    ]
    table = page.add("agreement", case, pairs)
    if table.height:
        words = MEASURE_NAMES[measure]
        spec = mirrored_heat(table, names, "value", words, same=1.0)
        page.draw("agreement", "How far the metrics agree", f"{words} over all contexts.", spec, case)
