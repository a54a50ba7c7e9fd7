"""Systems ordered by one metric or outcome: means with intervals, pairwise comparisons, and groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ragworth.comparison import compare, higher_is_better, is_different, missing_interval, score_matrices, summarise
from ragworth.errors import format_count
from ragworth.generation.writer import ORACLE_SYSTEM
from ragworth.report.page.groups import SystemGroups, group_by_best, group_systems
from ragworth.report.wording import signed
from ragworth.stats.clustered import FEWEST_CLUSTERS
from ragworth.stats.paired import Test
from ragworth.tables import Scores

LEVEL, ALPHA = 0.95, 0.05
RESAMPLES = 2000
"""Of intervals of means."""

TEST: Test = "randomisation"

MAX_PAIRED = 60
"""Systems up to which every two are compared. More are compared with the best one and the baseline."""

DRAWN_TURNS = (
    "Intervals and tests draw whole conversations, because the turns of one aren't independent; "
    f"fewer than {FEWEST_CLUSTERS} have no interval."
)


class MetricMean(NamedTuple):
    """A metric's mean for one system, with its interval and how many queries it is from."""

    mean: float | None
    low: float | None
    high: float | None
    n: int
    total: int
    missing: str
    conversations: int | None = None
    """Conversations that these queries are turns of; None if queries are independent."""

    @property
    def ends(self) -> str:
        """The ends of the interval, or why several queries give none; empty for a single one."""
        if self.low is None or self.high is None:
            return missing_interval(self.n, self.conversations) if self.n > 1 else ""
        return f"[{signed(self.low, 3)}, {signed(self.high, 3)}]"


Means = Mapping[str, Mapping[str, MetricMean]]
"""By system and metric."""


def read_means(summary: pl.DataFrame, systems: Iterable[str] = ()) -> dict[str, dict[str, MetricMean]]:
    """The rows of a summary by system and metric; ``systems`` are there even without a value."""
    means: dict[str, dict[str, MetricMean]] = {system: {} for system in systems}
    for row in summary.iter_rows(named=True):
        facts: list[Any] = [row.get(name) for name in MetricMean._fields]
        means.setdefault(row["system"], {})[row["metric"]] = MetricMean(*facts)
    return means


class SharedMeans(NamedTuple):
    """Means over the queries for which all systems have a value, so that they can be ranked.

    Attributes
    ----------
    n: how many such queries there are, of ``total``.
    left_out: systems with a value for fewer than half of the queries; they are not ranked.
    """

    means: Mapping[str, MetricMean]
    n: int
    total: int
    left_out: frozenset[str]

    @property
    def note(self) -> str:
        """What the means of such systems are over."""
        own = "means are over each system's own queries, and differences over those that both have."
        if not self.n:
            return f"No query has a value for all of them: {own}"
        every = "all systems in the ranking" if self.left_out else "all of them"
        shared = format_count(self.n, "query", "queries")
        return f"Systems are ordered by the {shared} that {every} have (shared). Other {own}"


class Ranking(NamedTuple):
    """Systems by one metric.

    Attributes
    ----------
    order: the systems, best first; those with few values, and then those without any, last.
    versus: the comparison of every two systems, by their names; of many systems, of each with few others.
    pairs: how many pairs p-values are corrected for: all, even if not all are compared.
    shared: what systems were ordered by if they have values for different queries; None if all have the same.
    """

    metric: str
    order: list[str]
    versus: Mapping[tuple[str, str], Mapping[str, Any]]
    groups: SystemGroups
    pairs: int
    resamples: int
    shared: SharedMeans | None = None

    @property
    def shared_means(self) -> Mapping[str, MetricMean]:
        """Means over the queries that all have, if systems have values for different ones; else nothing."""
        return self.shared.means if self.shared is not None else {}

    @property
    def corrected(self) -> str:
        """What makes a p-value larger than that of a pair alone."""
        if len(self.order) <= MAX_PAIRED:
            return f"once all {len(self.versus)} pairs are compared"
        return f"once corrected for all {self.pairs:,} pairs"

    @property
    def tested(self) -> str:
        """Which pairs were compared."""
        every = f"all {self.pairs:,} pairs" if self.pairs > 1 else "the two systems"
        if len(self.order) <= MAX_PAIRED:
            return every
        others = list(dict.fromkeys(baseline for baseline, _ in self.versus))
        names = " and ".join(filter(None, (", ".join(others[:-1]), *others[-1:])))
        return f"{len(self.versus):,} of {every}, each system with {names}"

    def order_against(self, system: str, other: str) -> int:
        """1 if the system is significantly better than another one, −1 if it is worse, 0 if neither is shown."""
        row = self.difference(other, system)
        if row is None or not is_different(row, ALPHA):
            return 0
        return 1 if (row["difference"] > 0) == higher_is_better(self.metric) else -1

    def difference(self, baseline: str, system: str) -> dict[str, Any] | None:
        """The comparison of a system with another one: difference, low and high are system − baseline."""
        if (row := self.versus.get((baseline, system))) is not None:
            return dict(row)
        if (row := self.versus.get((system, baseline))) is None:
            return None
        ends = (None, None) if row["low"] is None else (-row["high"], -row["low"])
        turned = {"difference": None if row["difference"] is None else -row["difference"]}
        return {**row, **turned, "low": ends[0], "high": ends[1]}


def rank_systems(
    scores: Scores, means: Means, metric: str, seed: int, *, baseline: object = None, **testing: Any
) -> Ranking:
    """Order systems by the mean of a metric, and group those that are not significantly different.

    More than :data:`MAX_PAIRED` are only compared with the best one, the best apart from the oracle, and ``baseline``.
    ``testing`` are arguments of `compare`.
    """
    up = 1 if higher_is_better(metric) else -1
    known = {system: mine[metric].mean for system, mine in means.items() if metric in mine}
    one = scores.having("metric", [metric])
    shared = _shared_means(one, metric, seed, testing.get("conversations"))
    values = {**known, **{system: mean.mean for system, mean in (shared.means if shared is not None else {}).items()}}
    few = shared.left_out if shared is not None else frozenset()
    order = sorted(
        means, key=lambda system: (known.get(system) is None, system in few, -up * (values.get(system) or 0.0))
    )
    pairs = len(order) * (len(order) - 1) // 2
    # Enough resamples for a small p-value to survive the correction over all pairs.
    given: dict[str, Any] = {"level": LEVEL, "resamples": max(10_000, 40 * pairs), "test": TEST} | testing
    alpha, valued = 1 - given["level"], [system for system in order if known.get(system) is not None]
    versus: dict[tuple[str, str], Mapping[str, Any]] = {}
    if len(one.distinct("system")) > 1:
        if len(order) <= MAX_PAIRED:
            found = compare(one, all_pairs=True, seed=seed, changes=0, **given).differences
        else:
            chosen = _pairs_with_best(order, baseline)
            # The best is chosen by the same values, so p is corrected as if every two had been compared.
            found = compare(one, pairs=chosen, corrected_for=pairs, seed=seed, changes=0, **given).differences
        versus = {(row["baseline"], row["system"]): row for row in found.iter_rows(named=True)}
    different = {pair for pair, row in versus.items() if is_different(row, alpha)}
    groups = group_systems(valued, different) if len(order) <= MAX_PAIRED else group_by_best(valued, different)
    return Ranking(metric, order, versus, groups, pairs, given["resamples"], shared)


def _pairs_with_best(order: Sequence[str], baseline: object) -> list[tuple[str, str]]:
    """Each system with the best one, the best apart from the oracle, and the baseline if it is one of them."""
    rival = next((system for system in order if system != ORACLE_SYSTEM), order[0])
    others = dict.fromkeys([order[0], rival, *(system for system in order if system == baseline)])
    found = [(other, system) for other in others for system in order if system != other]
    return list({frozenset(pair): pair for pair in reversed(found)}.values())[::-1]


def _shared_means(
    scores: Scores, metric: str, seed: int, conversations: Mapping[str, str] | None
) -> SharedMeans | None:
    """Means over the queries that all systems have a value for; None if all have values for the same queries."""
    found = score_matrices(scores)
    if not found:
        return None
    (matrix,) = found
    there = ~np.isnan(matrix.values)
    total = len(there)
    some = [i for i in range(len(matrix.systems)) if there[:, i].any()]
    if len(some) < 2 or (there[:, some] == there[:, some[:1]]).all():
        return None
    most = max(int(there[:, i].sum()) for i in some)
    ranked = [i for i in some if 2 * there[:, i].sum() >= min(total, 2 * most)]
    rows = there[:, ranked].all(axis=1)
    left = frozenset(matrix.systems[i] for i in some if i not in ranked)
    means: dict[str, MetricMean] = {}
    if rows.any():
        names = [matrix.systems[i] for i in ranked]
        queries = matrix.queries.filter(pl.Series(rows)).to_list()
        chosen = scores.having("system", names).having("query", queries)
        summary = summarise(chosen, level=LEVEL, resamples=RESAMPLES, seed=seed, conversations=conversations)
        means = {system: mine[metric]._replace(total=total) for system, mine in read_means(summary).items()}
    return SharedMeans(means, int(rows.sum()), total, left)


def larger_detectable(row: Mapping[str, Any]) -> float | None:
    """The smallest detectable difference of a comparison that isn't significant; None if the difference is as large."""
    least: float | None = row["detectable"]
    return least if least is not None and least > abs(row["difference"]) else None


def evaluation_settings(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """The settings of the evaluation."""
    found = manifest.get("settings")
    return found if isinstance(found, Mapping) else {}


def wanted_baseline(manifest: Mapping[str, Any]) -> object:
    """The system that the settings name as the baseline."""
    return evaluation_settings(manifest).get("baseline")


def chosen_baseline(manifest: Mapping[str, Any], order: Sequence[str]) -> str:
    """The system that others are compared with: that of the settings, else the best."""
    wanted = wanted_baseline(manifest)
    return wanted if isinstance(wanted, str) and wanted in order else order[0]
