"""How well metrics predict the outcome of contexts of several sizes, and how that varies with the size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
import polars as pl

from ragworth.data.conversations import cluster_labels
from ragworth.prediction.correlations import Prediction
from ragworth.score_rows import Floats, ScoreRows
from ragworth.stats.correlation import Measure
from ragworth.stats.estimate import Estimate, Resampling, mean_of_columns
from ragworth.stats.paired import correct_alike
from ragworth.stats.systems import correlate_systems


@dataclass(frozen=True, eq=False)
class SizedPredictions:
    """How well metrics predict the outcome of contexts of several sizes, over queries and maybe over systems.

    ``rows``: by size, of metrics without their cutoffs. ``ways``: ``queries``, or also ``systems``. ``conversations``:
    the conversation of each query that is a turn.
    """

    rows: Mapping[int, ScoreRows]
    measure: str
    plan: Resampling
    ways: Sequence[str]
    conversations: Mapping[str, str]

    @cached_property
    def queries(self) -> list[str]:
        """All queries, in one order for every size."""
        return sorted({query for rows in self.rows.values() for query in rows.queries})

    @cached_property
    def clusters(self) -> list[int] | None:
        """The conversation of each query; None if queries are independent."""
        return cluster_labels(self.queries, self.conversations)

    def aligned(self, size: int, values: Floats) -> Floats:
        """Values of the queries that a size has, for all queries; NaN for those that it lacks."""
        whole = np.full((len(self.queries), *values.shape[1:]), np.nan)
        whole[np.isin(self.queries, self.rows[size].queries)] = values
        return whole

    @cached_property
    def sizes(self) -> dict[int, Prediction]:
        return {size: Prediction(rows, self.measure, self.plan) for size, rows in self.rows.items()}

    @cached_property
    def by_query(self) -> dict[tuple[str, int], Floats]:
        """The correlation within each query, by metric and size; NaN where there is none."""
        every = {size: self.aligned(size, one.by_query) for size, one in self.sizes.items()}
        return {(m, size): part[:, at] for size, part in every.items() for at, m in enumerate(self.rows[size].metrics)}

    @cached_property
    def found(self) -> dict[tuple[str, str, int], Estimate]:
        """What each metric predicts, over queries or systems, at each size."""
        made: dict[tuple[str, str, int], Estimate] = {}
        for size, one in self.sizes.items():
            made |= {("queries", m, size): each for m, each in zip(one.rows.metrics, one.within, strict=True)}
            if "systems" in self.ways:
                made |= {("systems", m, size): self._over_systems(m, [size]) for m in one.rows.metrics}
        return made

    def _over_systems(self, metric: str, sizes: Iterable[int]) -> Estimate:
        """The correlation of systems' means by a metric with those of the outcome, averaged over sizes."""
        sides = []
        for size in sizes:
            rows = self.rows[size]
            score, outcome = rows.grid(rows.values[:, rows.metrics.index(metric)]), rows.grid(rows.outcome)
            sides.append((self.aligned(size, score), self.aligned(size, outcome)))
        one = correlate_systems(sides, cast(Measure, self.measure), self.plan, self.clusters)
        return one._replace(reason=one.reason or ("a system has no value" if one.n_left_out else ""))

    @cached_property
    def means(self) -> dict[tuple[str, str], Estimate]:
        """Each metric's correlation averaged over the sizes at which it has one; p corrected for all of them."""
        keys = list(dict.fromkeys((over, m) for (over, m, _), one in self.found.items() if one.value is not None))
        return dict(zip(keys, correct_alike([self._mean(*key) for key in keys]), strict=True))

    def _mean(self, over: str, metric: str) -> Estimate:
        known = [k for (*of, k), one in self.found.items() if of == [over, metric] and one.value is not None]
        if over == "systems":
            return self._over_systems(metric, known)
        values = np.stack([self.by_query[metric, size] for size in known], axis=1)
        return mean_of_columns(values, self.plan, self.clusters)

    def deviation(self, over: str, metric: str, size: int) -> float | None:
        """The standard deviation of the correlations within queries."""
        known = self.by_query[metric, size][~np.isnan(self.by_query[metric, size])]
        return float(known.std(ddof=1)) if over == "queries" and len(known) > 1 else None


def spread_over_sizes(correlations: pl.DataFrame) -> pl.DataFrame:
    """How each correlation varies over the sizes, the highest mean first; metrics that lack sizes last."""
    value, k = pl.col("correlation"), pl.col("k")
    found = correlations.drop_nulls("correlation").group_by("over", "metric", maintain_order=True)
    spread = found.agg(
        value.mean().alias("mean"),
        value.std().alias("deviation"),
        value.min().alias("lowest"),
        k.get(value.arg_min()).alias("lowest at k"),
        value.max().alias("highest"),
        k.get(value.arg_max()).alias("highest at k"),
        pl.len().alias("sizes"),
    )
    order = ["over", pl.col("sizes"), pl.col("mean").round(12)]
    return spread.sort(order, descending=[False, True, True], maintain_order=True)
