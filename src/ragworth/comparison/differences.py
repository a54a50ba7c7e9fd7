"""Systems compared query by query."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Literal

import numpy as np
import polars as pl

from ragworth.comparison.comparable import Comparable, JoinedScores, conversations_of, join_scores, to_scores
from ragworth.comparison.comparison import Comparison, Pair, families_of, out_of_reach
from ragworth.comparison.score_matrix import (
    Floats,
    QueryColumns,
    ScoreMatrix,
    check_arguments,
    conversations_last,
    direction,
    none_if_nan,
    rank_matrix,
    score_matrices,
    value_bounds,
    with_intervals,
)
from ragworth.core.errors import InputError, format_list
from ragworth.stats.bootstrap import MeanIntervals
from ragworth.stats.paired import TESTS, Test, holm, opposes_mean, paired_p
from ragworth.stats.power import LEAST_RESAMPLES, detectable_difference, enough_resamples
from ragworth.stats.range_intervals import difference_bounds

MAX_INTERVAL_RESAMPLES = 100_000
"""Resamples of an interval, however many a test needs: more don't change what is printed of it."""


def compare(
    data: Comparable | Mapping[str, Comparable],
    *,
    baseline: str | None = None,
    all_pairs: bool = False,
    pairs: Sequence[tuple[str, str]] | None = None,
    test: Test = "randomisation",
    family: Literal["metric", "all"] = "metric",
    level: float = 0.95,
    resamples: int | None = None,
    seed: int = 0,
    changes: int = 5,
    conversations: Mapping[str, str] | None = None,
    corrected_for: int = 1,
) -> Comparison:
    """Compare systems query by query.

    Parameters
    ----------
    data: scores, outcomes of answers, results or an evaluation; or a dict of several, by name. For outcomes called
        ``grade``, the shares of correct, wrong and abstained answers are compared too. In a dict, if two have the same
        systems, those are called NAME/SYSTEM and compared with their namesakes in the first.
    baseline: the system to compare the others with; the first by default.
    all_pairs: compare every system with every later one instead.
    pairs: compare these systems only: (baseline, system).
    test: of the mean difference: randomisation, t, wilcoxon, sign, bootstrap or bounded. ``bounded`` keeps its level
        even if two systems have equal means but very different distributions, and needs metrics with a finite range.
    family: scope of Holm's correction: the systems compared by one metric, or all comparisons.
    resamples: of the test, and up to 100,000 of the intervals. By default 10,000; for tests of so many comparisons that
        none could be significant after Holm's correction, more.
    changes: how many of the queries that changed most to list.
    conversations: the conversation of each query that is a turn (`ragworth.data.conversations.conversation_ids`).
        Intervals and tests then draw whole conversations, because their turns aren't independent. Results know theirs.
    corrected_for: how many comparisons Holm's correction is for, if the pairs were chosen from so many by their values.

    A query counts if both systems have a value for it. Nothing is tested if one of them has a value for fewer than half
    of its own (:func:`ragworth.comparison.rank`): p, interval and detectable difference are null then.
    """
    check_arguments(level, LEAST_RESAMPLES if resamples is None else resamples, seed)
    known = conversations_of(data) if conversations is None else conversations
    scores, matched, _ = join_scores(data) if isinstance(data, Mapping) else JoinedScores(to_scores(data))
    if test not in TESTS:
        raise InputError(f"unknown test {test!r}", expected=format_list(list(TESTS), 9))
    if family not in ("metric", "all"):
        raise InputError(f"unknown family {family!r}", expected="metric or all")
    systems = scores.distinct("system")
    if len(systems) < 2:
        raise InputError(
            "there is only one system to compare" if systems else "there are no systems to compare",
            expected="two or more systems",
        )
    if baseline is not None and baseline not in systems:
        raise InputError(f"unknown baseline {baseline!r}", expected=format_list(systems, 12))
    if pairs is None:
        pairs = _pairs(systems, baseline, matched, all_pairs=all_pairs)
    rows: list[dict[str, object]] = []
    changed = [pl.DataFrame(schema=CHANGES_SCHEMA)]
    compared = [(m, here) for m in score_matrices(scores) if (here := [pair for pair in pairs if m.has(*pair)])]
    columns = (_difference_columns(matrix, here, test, known) for matrix, here in compared)
    drawn = min(LEAST_RESAMPLES if resamples is None else resamples, MAX_INTERVAL_RESAMPLES)
    found = with_intervals(columns, level=level, resamples=drawn, seed=seed)
    every = sum(len(here) for _, here in compared)
    sizes = [max(corrected_for, every if family == "all" else len(here)) for _, here in compared]
    if resamples is None:
        resamples = enough_resamples(max(sizes, default=0), 1 - level)
    opposed: set[Pair] = set()
    for (matrix, here), (differences, interval), size in zip(compared, found, sizes, strict=True):
        alpha = (1 - level) / size  # what p must be below to be so after any correction for as many comparisons
        enough = set(rank_matrix(matrix).enough)
        for i, pair in enumerate(here):
            row = _difference_row(matrix, pair, differences, interval, i, test, alpha, resamples, seed)
            rows.append(row if enough.issuperset(pair) else row | dict.fromkeys(UNTESTED))
            if opposes_mean(differences.values[:, i], test, differences.clusters.labels):
                opposed.add((matrix.metric, *pair))
            if changes:
                changed.append(_largest_changes(matrix, *pair, changes))
    if not rows:
        raise InputError("no metric was computed for at least two systems", expected="the same metrics for all systems")
    corrected = _add_holm(
        rows, family, corrected_for, lambda part: out_of_reach(part, test, resamples, 1 - level, corrected_for)
    )
    changes_table = pl.concat(changed)
    return Comparison(corrected, changes_table, test, level, resamples, seed, family, frozenset(opposed))


def _difference_row(
    matrix: ScoreMatrix,
    pair: tuple[str, str],
    columns: QueryColumns,
    interval: MeanIntervals,
    i: int,
    test: Test,
    alpha: float,
    resamples: int,
    seed: int,
) -> dict[str, object]:
    """The difference between two systems, which is column ``i``, over the queries that both have a value for."""
    _, pair_differences, bounds, clusters = columns
    before, after = (matrix.columns()[system] for system in pair)
    both = ~np.isnan(pair_differences[:, i])
    differences, mine = pair_differences[both, i], clusters.of_queries(both)
    some, up = bool(both.any()), direction(matrix.metric)
    p = paired_p(differences, test, resamples=resamples, seed=seed, bounds=bounds, clusters=mine) if some else None
    least = detectable_difference(differences, test=test, alpha=alpha, clusters=mine).value
    return {
        "metric": matrix.metric,
        "baseline": pair[0],
        "system": pair[1],
        "mean_baseline": float(before[both].mean()) if some else None,
        "mean_system": float(after[both].mean()) if some else None,
        "difference": float(differences.mean()) if some else None,
        "low": none_if_nan(interval.low[i]),
        "high": none_if_nan(interval.high[i]),
        "p": p,
        "wins": int((up * differences > 0).sum()) if up else None,
        "ties": int((differences == 0).sum()),
        "losses": int((up * differences < 0).sum()) if up else None,
        "n": int(both.sum()),
        "n_baseline": int((~np.isnan(before)).sum()),
        "n_system": int((~np.isnan(after)).sum()),
        "total": len(both),
        "detectable": _possible(least, (interval.high[i] - interval.low[i]) / 2, bounds),
        "conversations": clusters.numbers[i],
    }


def _difference_columns(
    matrix: ScoreMatrix, pairs: Sequence[tuple[str, str]], test: Test, conversations: Mapping[str, str]
) -> QueryColumns:
    """The differences between each two systems."""
    column = matrix.columns()
    differences = np.stack([_rounded_difference(column[a], column[b]) for a, b in pairs], axis=1)
    bounds = difference_bounds(value_bounds(matrix.metric, matrix.values))
    if test == "bounded" and not np.isfinite(bounds).all():
        raise InputError(
            f"the test 'bounded' needs the range of {matrix.metric}, which is infinite or unknown",
            expected="metrics with a lowest and a highest value",
            remedy="use --test bootstrap, or leave the metric out",
        )
    return QueryColumns.of(matrix.queries, differences, bounds, conversations)


def _possible(difference: float | None, half: float, bounds: tuple[float, float] | None) -> float | None:
    """A detectable difference that this metric can have; None for a larger one.

    It is at least half of the interval's length: a smaller one would leave 0 in the interval, which is long where the
    sample may lack something, and the systems wouldn't count as clearly different.
    """
    least = None if difference is None else float(np.fmax(difference, half))
    return None if least is None or (bounds is not None and least > bounds[1]) else least


def _pairs(
    systems: Sequence[str], baseline: str | None, matched: list[tuple[str, str]] | None, *, all_pairs: bool
) -> list[tuple[str, str]]:
    """The systems to compare."""
    if all_pairs:
        return list(combinations(systems, 2))
    if baseline is None and matched is not None:
        return matched
    first = baseline if baseline is not None else systems[0]
    return [(first, system) for system in systems if system != first]


def _rounded_difference(before: Floats, after: Floats) -> Floats:
    """After − before, exactly 0 if they differ only by rounding."""
    difference = after - before
    return np.where(np.abs(difference) < 1e-12, 0.0, difference)


DIFFERENCE_SCHEMA: dict[str, type[pl.DataType]] = {
    "metric": pl.String,
    "baseline": pl.String,
    "system": pl.String,
    "mean_baseline": pl.Float64,
    "mean_system": pl.Float64,
    "difference": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "p": pl.Float64,
    "p_holm": pl.Float64,
    "wins": pl.Int64,
    "ties": pl.Int64,
    "losses": pl.Int64,
    "n": pl.Int64,
    "n_baseline": pl.Int64,
    "n_system": pl.Int64,
    "total": pl.Int64,
    "detectable": pl.Float64,
    "conversations": pl.Int64,
}

UNTESTED = ("low", "high", "p", "detectable")
"""Columns of a difference that are empty if one of the systems has too few values."""

CHANGES_SCHEMA: dict[str, type[pl.DataType]] = {
    **dict.fromkeys(("metric", "baseline", "system", "query"), pl.String),
    **dict.fromkeys(("before", "after", "difference"), pl.Float64),
}


def _add_holm(
    rows: list[dict[str, object]], family: str, corrected_for: int, hopeless: Callable[[pl.DataFrame], bool]
) -> pl.DataFrame:
    """Add Holm's p-values to the rows. Where none can be significant, no difference is detectable."""
    frame = conversations_last(pl.DataFrame(rows, schema=DIFFERENCE_SCHEMA))
    return pl.concat(
        part.with_columns(
            pl.Series("p_holm", _corrected(part["p"], corrected_for), dtype=pl.Float64).fill_nan(None),
            pl.lit(None, dtype=pl.Float64).alias("detectable") if hopeless(part) else pl.col("detectable"),
        )
        for part in families_of(frame, family)
    )


def _corrected(p: pl.Series, corrected_for: int) -> Floats:
    """p after Holm's correction for so many comparisons, of which those that weren't made count as 1."""
    others = np.ones(max(corrected_for - len(p), 0))
    return holm(np.append(p.fill_null(float("nan")).to_numpy(), others))[: len(p)]


def _largest_changes(matrix: ScoreMatrix, a: str, b: str, most: int) -> pl.DataFrame:
    """The queries on which two systems differ most, leaving out those without a difference."""
    column = matrix.columns()
    difference = _rounded_difference(column[a], column[b])
    changed = np.flatnonzero(~np.isnan(difference) & (difference != 0))
    largest = changed[np.argsort(-np.abs(difference[changed]), kind="stable")][:most]
    names = {"metric": matrix.metric, "baseline": a, "system": b}
    return pl.DataFrame(
        {
            **{name: [value] * len(largest) for name, value in names.items()},
            "query": matrix.queries.gather(largest),
            "before": column[a][largest],
            "after": column[b][largest],
            "difference": difference[largest],
        },
        schema=CHANGES_SCHEMA,
    )
