"""Systems ordered by one metric or outcome: means with intervals, pairwise comparisons, and groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import polars as pl

from ragworth.comparison import (
    RankedSystems,
    compare,
    higher_is_better,
    is_different,
    missing_interval,
    rank,
    summarise,
)
from ragworth.core.errors import format_count, format_list
from ragworth.data import Scores
from ragworth.judging.answers import ORACLE_SYSTEM
from ragworth.report.wording import signed
from ragworth.stats.bootstrap import FEWEST_CLUSTERS
from ragworth.stats.paired import Test

MAX_LETTERED = 9
"""Letters that a person still reads; with more, systems are only marked as different from the best or not."""

ALONE = "≠"
"""What stands beside a system that differs from the best, where there are no letters."""


class SystemGroups(NamedTuple):
    """What stands beside each system."""

    of: dict[str, str]
    best: str = ""
    """The system that the others are marked by, where there are no letters."""

    @property
    def words(self) -> str:
        """How to read it."""
        if self.best:
            return f"≈: not significantly different from {self.best}, the best; {ALONE}: significantly different"
        return "Systems that share a letter are not significantly different"


def group_systems(order: Sequence[str], different: set[tuple[str, str]]) -> SystemGroups:
    """Groups of systems in their order, best first; ``different`` has the pairs that differ significantly."""
    alike = {
        system: {other for other in order if other != system and not {(system, other), (other, system)} & different}
        for system in order
    }
    parts = list(islice(_largest_groups(alike, frozenset(), list(order), []), MAX_LETTERED + 1))
    if len(parts) > MAX_LETTERED:
        return group_by_best(order, different)
    place = {system: i for i, system in enumerate(order)}
    parts.sort(key=lambda group: sorted(place[system] for system in group))
    letters = {system: "".join(chr(ord("a") + i) for i, part in enumerate(parts) if system in part) for system in order}
    return SystemGroups(letters)


def group_by_best(order: Sequence[str], different: set[tuple[str, str]]) -> SystemGroups:
    """Which of many systems are not significantly different from the best, the first."""
    best = order[0] if order else ""
    apart = {system for pair in different if best in pair for system in pair} - {best}
    return SystemGroups({each: ALONE if each in apart else "≈" for each in order}, best)


def _largest_groups(
    alike: Mapping[str, set[str]], group: frozenset[str], candidates: list[str], excluded: list[str]
) -> Iterator[frozenset[str]]:
    """Groups of systems that are all alike and can't be extended (maximal cliques, by Bron and Kerbosch).

    There may be exponentially many: take as many as are needed.
    """
    if not candidates and not excluded:
        yield group
        return
    pivot = max([*candidates, *excluded], key=lambda system: sum(other in alike[system] for other in candidates))
    for system in [each for each in candidates if each not in alike[pivot]]:
        near = alike[system]
        yield from _largest_groups(
            alike, group | {system}, [c for c in candidates if c in near], [e for e in excluded if e in near]
        )
        candidates = [each for each in candidates if each != system]
        excluded = [*excluded, system]


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


class Ranking(NamedTuple):
    """Systems by one metric.

    Attributes
    ----------
    order: all systems: those that are ranked, best first, then the others, and then those without any value.
    ranked: which of them are ranked, and why.
    versus: the comparison of every two ranked systems, by their names; of many systems, of each with few others.
    groups: of ranked systems.
    pairs: how many pairs p-values are corrected for: all, even if not all are compared.
    shared_means: means over the queries that all ranked systems have, if they have values for different ones.
    """

    metric: str
    order: list[str]
    ranked: RankedSystems
    versus: Mapping[tuple[str, str], Mapping[str, Any]]
    groups: SystemGroups
    pairs: int
    resamples: int
    shared_means: Mapping[str, MetricMean]

    @property
    def note(self) -> str:
        """Describe the queries that systems are ordered by, unless it is all of them."""
        if len(self.order) > 1 and not self.ranked.order:
            return f"Systems are not ranked: {self.unranked}."
        if not self.shared_means:
            return ""
        every = "all of them" if len(self.ranked.order) == len(self.order) else "all systems in the ranking"
        shared = format_count(len(self.ranked.shared), "query", "queries")
        own = "means are over each system's own queries, and differences over those that both have."
        return f"Systems are ordered by the {shared} that {every} have (shared). Other {own}"

    def place(self, system: str) -> str:
        """The place of a system in the ranking."""
        best = self.ranked.order or self.order[: len(self.order) == 1]
        return str(best.index(system) + 1) if system in best else "–"

    def ordered_by(self, name: str) -> str:
        """Describe the order of a table of all systems."""
        return f"ordered by {name}" if self.ranked.order or len(self.order) < 2 else "not ranked"

    @property
    def unranked(self) -> str:
        """Why fewer than two systems are ranked, and what helps."""
        if len(enough := self.ranked.enough) > 1:
            every = "all systems" if len(enough) == len(self.order) else "all that have enough"
            counts = format_list([f"{system} {self.ranked.counts(system)}" for system in enough], 6)
            most = max(self.ranked.asked[system] for system in enough)
            shared = f"only {len(self.ranked.shared):,} of {format_count(most, 'question')} have"
            fewer = "; leave out systems to have more" if len(enough) > 2 else ""
            return f"{shared} a value of {self.metric} for {every} ({counts}){fewer}"
        few = [system for system in self.order if system not in self.ranked.enough]
        counts = format_list([f"{system} {self.ranked.counts(system)}" for system in few], 6)
        return f"fewer than half of the questions have a value of {self.metric} ({counts})"

    @property
    def corrected(self) -> str:
        """What makes a p-value larger than that of a pair alone."""
        if len(self.ranked.order) <= MAX_PAIRED:
            return f"once all {len(self.versus)} pairs are compared"
        return f"once corrected for all {self.pairs:,} pairs"

    @property
    def tested(self) -> str:
        """Which pairs were compared."""
        every = f"all {self.pairs:,} pairs" if self.pairs > 1 else "the two systems"
        if len(self.ranked.order) <= MAX_PAIRED:
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
    """Order systems by :func:`ragworth.comparison.rank`, and group those that are not significantly different.

    More than :data:`MAX_PAIRED` are only compared with the best one, the best apart from the oracle, and ``baseline``.
    ``testing`` are arguments of `compare`.
    """
    one = scores.having("metric", [metric])
    ranked = rank(one, metric)
    best = ranked.order
    without = {system for system, mine in means.items() if metric not in mine or mine[metric].mean is None}
    others = sorted((system for system in means if system not in best), key=without.__contains__)
    pairs = len(best) * (len(best) - 1) // 2
    # Enough resamples for a small p-value to survive the correction over all pairs.
    given: dict[str, Any] = {"level": LEVEL, "resamples": max(10_000, 40 * pairs), "test": TEST} | testing
    versus: dict[tuple[str, str], Mapping[str, Any]] = {}
    if best:
        compared = one.having("system", best)
        if len(best) <= MAX_PAIRED:
            differences = compare(compared, all_pairs=True, seed=seed, changes=0, **given).differences
        else:
            chosen = _pairs_with_best(best, baseline)
            # The best is chosen by the same values, so p is corrected as if every two had been compared.
            differences = compare(
                compared, pairs=chosen, corrected_for=pairs, seed=seed, changes=0, **given
            ).differences
        versus = {(row["baseline"], row["system"]): row for row in differences.iter_rows(named=True)}
    different = {pair for pair, row in versus.items() if is_different(row, 1 - given["level"])}
    groups = group_systems(best, different) if len(best) <= MAX_PAIRED else group_by_best(best, different)
    shared = _shared_means(one, ranked, seed, testing.get("conversations")) if best else {}
    return Ranking(metric, [*best, *others], ranked, versus, groups, pairs, given["resamples"], shared)


def _pairs_with_best(order: Sequence[str], baseline: object) -> list[tuple[str, str]]:
    """Each system with the best one, the best apart from the oracle, and the baseline if it is one of them."""
    rival = next((system for system in order if system != ORACLE_SYSTEM), order[0])
    others = dict.fromkeys([order[0], rival, *(system for system in order if system == baseline)])
    found = [(other, system) for other in others for system in order if system != other]
    return list({frozenset(pair): pair for pair in reversed(found)}.values())[::-1]


def _shared_means(
    scores: Scores, ranked: RankedSystems, seed: int, conversations: Mapping[str, str] | None
) -> dict[str, MetricMean]:
    """Means of ranked systems over the queries that they share; nothing if they have values for no others."""
    if all(ranked.decided[system] == len(ranked.shared) for system in ranked.order):
        return {}
    chosen = scores.having("system", ranked.order).having("query", ranked.shared)
    summary = summarise(chosen, level=LEVEL, resamples=RESAMPLES, seed=seed, conversations=conversations)
    total = len(scores.distinct("query"))
    return {
        system: mean._replace(total=total) for system, mine in read_means(summary).items() for mean in mine.values()
    }


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
