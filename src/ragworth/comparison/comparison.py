"""The result of comparing systems: which differences are significant, and whether any could be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import polars as pl

from ragworth.comparison.score_matrix import direction, is_metric, value_bounds
from ragworth.core.errors import InputError, MetricError, format_list
from ragworth.data.tables import html_table
from ragworth.stats.power import smallest_p


def is_different(row: Mapping[str, Any], alpha: float = 0.05) -> bool:
    """Whether two systems differ significantly: by the test, and by the interval where there is one.

    The interval allows for values that no query has shown yet and the test does not, so where few queries differ the
    interval may hold 0 although p is small.
    """
    holds_zero = row["low"] is not None and row["low"] <= 0 <= row["high"]
    return row["p_holm"] is not None and row["p_holm"] < alpha and not holds_zero


def families_of(differences: pl.DataFrame, family: str) -> list[pl.DataFrame]:
    """The comparisons that are corrected together."""
    return [differences] if family == "all" else differences.partition_by("metric", maintain_order=True)


def out_of_reach(rows: pl.DataFrame, test: str, resamples: int, alpha: float, corrected_for: int = 1) -> bool:
    """Whether no p of these comparisons can be below ``alpha`` once Holm's correction has gone over all of them."""
    tested = rows.filter(pl.col("p").is_not_null())
    return tested.height > 0 and least_holm_p(tested, test, resamples, corrected_for) >= alpha


def least_holm_p(tested: pl.DataFrame, test: str, resamples: int, corrected_for: int = 1) -> float:
    """The smallest p that one of the comparisons can have after Holm's correction for all, or for even more."""
    units = tested["conversations"].fill_null(tested["n"]) if "conversations" in tested.columns else tested["n"]
    return smallest_p(test, int(units.max()), resamples) * max(tested.height, corrected_for)  # type: ignore[arg-type]


Pair = tuple[str, str, str]
"""A comparison: metric, baseline, system."""

LEAST_SHARE = 0.9
"""Values that a system needs, as a share of its baseline's, to pass a gate."""

DECIDE_MORE = (
    "let a model judge the answers against accepted ones (judge = true under [grades] of a ragworth.toml), or let "
    "people grade them: "
    "ragworth label new RESULTS --task answer-grade"
)
"""What helps where too few answers have a grade. RESULTS is the folder that an evaluation wrote."""


class Comparison(NamedTuple):
    """Differences between systems.

    Attributes
    ----------
    differences: metric, baseline, system, their means, difference, low, high, p, p_holm, wins, ties, losses,
        n (queries with a value for both), total, detectable. Wins are queries on which ``system`` is better; they and
        losses are null for outcomes that are neither better nor worse, such as abstained. Where queries share
        conversations also conversations: how many the n queries are from. low, high, p, p_holm and detectable are
        null where a system has values for fewer than half of its queries.
    changes: the queries that changed most: metric, baseline, system, query, before, after, difference.
    test: the test behind the p-values.
    family: what Holm's correction goes over: metric or all.
    opposed: (metric, baseline, system) for which a test of signs or ranks points the other way than the mean.
    """

    differences: pl.DataFrame
    changes: pl.DataFrame
    test: str
    level: float
    resamples: int
    seed: int
    family: Literal["metric", "all"] = "metric"
    opposed: frozenset[Pair] = frozenset()

    @property
    def families(self) -> list[pl.DataFrame]:
        """The comparisons that are corrected together."""
        return families_of(self.differences, self.family)

    def lacking(self, metric: str) -> pl.DataFrame:
        """Rows in which a system may be worse for all we know.

        It has far fewer values than its baseline, or both have a value for less than half of the baseline's queries.
        If both have no value for any query, :meth:`worse` raises an error.
        """
        few = (pl.col("n_system") < LEAST_SHARE * pl.col("n_baseline")) | (2 * pl.col("n") < pl.col("n_baseline"))
        return self.differences.filter((pl.col("metric") == metric) & few & (pl.col("n") > 0))

    def worse(self, metric: str, alpha: float = 0.05) -> pl.DataFrame:
        """Rows in which a system is significantly worse than its baseline by this metric.

        A test of signs or ranks that finds the system better doesn't show that its mean is lower.
        """
        rows = self.differences.filter(pl.col("metric") == metric)
        if not rows.height:
            known = self.differences["metric"].unique(maintain_order=True).to_list()
            raise MetricError(
                f"{metric} was not compared", expected=format_list(known, 12), remedy=f"add it: -m '{metric}'"
            )
        void = rows.filter(pl.col("p_holm").is_null())
        if void.height:
            row = void.row(0, named=True)
            few = "fewer than half of the queries of one of them" if row["n"] else f"0 of {row['total']} queries"
            raise InputError(
                f"{row['system']} can't be compared with {row['baseline']} by {metric}: {few} have a value"
                f"{'' if row['n'] else ' for both'}",
                remedy=DECIDE_MORE if row["n"] else "see why the values are missing: ragworth score",
            )
        up = direction(metric)
        if up == 0:
            raise MetricError(
                f"{metric} is neither better nor worse if it changes, so it can't be a gate",
                expected="an outcome or a metric with a direction, such as correct or wrong",
                remedy=f"if it is better in one direction, call it higher_{metric} or lower_{metric}",
            )
        nothing = rows.filter((pl.col("mean_baseline") == 0) & (pl.col("mean_system") == 0))
        all_zero = 0 < nothing.height == rows.height  # if another system has more, the labels fit the runs
        if all_zero and up > 0 and is_metric(metric) and value_bounds(metric) == (0.0, 1.0):
            row = nothing.row(0, named=True)
            raise InputError(
                f"{metric} can't decide: it is 0 for {row['baseline']} and {row['system']} on all {row['n']:,} queries",
                remedy="check that some passages are labelled relevant, and that ids are the same in runs and labels",
            )
        found = rows.filter((up * pl.col("difference") < 0) & (pl.col("p_holm") < alpha))
        names = zip(found["metric"], found["baseline"], found["system"], strict=True)
        return found.filter(pl.Series([name not in self.opposed for name in names], dtype=pl.Boolean))

    def _repr_html_(self) -> str:
        """The differences as a small table, for notebooks."""
        rows = [
            {
                "metric": row["metric"],
                "system": f"{row['system']} − {row['baseline']}",
                "difference": row["difference"],
                "low": row["low"],
                "high": row["high"],
                "p (Holm)": row["p_holm"],
                "n of N": f"{row['n']:,} of {row['total']:,}",
                "detectable": row["detectable"],
            }
            for row in self.differences.iter_rows(named=True)
        ]
        caption = f"Differences, with {100 * self.level:g} % intervals ({self.test} test, Holm's correction)"
        return html_table(pl.DataFrame(rows), caption)
