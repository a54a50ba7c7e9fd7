"""What the passages of each system are worth to the model, how sure that is, and what it cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from ragworth.comparison import higher_is_better, is_different, summarise
from ragworth.core.errors import InputError, format_count, format_list
from ragworth.data import Scores
from ragworth.data.conversations import cluster_labels
from ragworth.metrics.utility import READER_REASON
from ragworth.report.page.rankings import (
    ALPHA,
    LEVEL,
    RESAMPLES,
    MetricMean,
    Ranking,
    chosen_baseline,
    larger_detectable,
    rank_systems,
    read_means,
    wanted_baseline,
)
from ragworth.report.page.survey import Survey
from ragworth.report.render import format_p_value
from ragworth.report.wording import digits_beside_zero, digits_within, signed
from ragworth.results import Results
from ragworth.stats.bootstrap import FEW_CLUSTERS, FEWEST_CLUSTERS
from ragworth.stats.range_intervals import TOO_FEW


@dataclass(frozen=True)
class Standing:
    """One line of the leaderboard."""

    system: str
    means: Mapping[str, MetricMean]
    group: str
    """Which systems it isn't significantly different from: letters that they share, or their places."""
    sentence: str
    misleading: float | None
    """Share of passages that are hard distractors; None where it can't be measured."""
    unmeasured: str
    """Why that is so; empty where it isn't known or where there is a share."""
    judged: int
    """Passages shown whose utility is known."""
    shown: int
    read: float | None
    """Tokens that the model read for an answer, in the mean."""


@dataclass(frozen=True)
class Overview:
    """All systems, in the order of their ranking."""

    main: str
    metrics: list[str]
    standings: list[Standing]
    ranking: Ranking
    queries: int
    baseline: str
    seed: int
    conversations: int | None = None
    """Conversations that the queries are turns of; None if queries are independent."""


def chosen_metrics(scores: Scores, metrics: Sequence[str] | None) -> list[str]:
    """Metrics in the order to show: as asked for, else UDCG first, because it is what the report is about."""
    known = scores.distinct("metric")
    if not known:
        raise InputError("there are no scores to report", expected="results of at least one metric")
    if metrics is not None:
        strange = [metric for metric in metrics if metric not in known]
        if strange or not metrics:
            found = f"{format_list(strange)} was not computed" if strange else "no metric was asked for"
            raise InputError(found, expected=format_list(known, 12))
        return list(metrics)
    return sorted(known, key=lambda metric: not metric.startswith("UDCG"))


def build_overview(results: Results, known: Survey, metrics: Sequence[str] | None, seed: int) -> Overview:
    """Everything that the top of the report says."""
    names = chosen_metrics(results.scores, metrics)
    main = names[0]
    scores = results.scores.having("metric", names)
    bare = [system for system in results.contexts.systems if not any(known.sizes[system])] if known.passages else []
    if bare:  # a metric of passages says nothing of systems that show none
        scores = scores.having("system", [system for system in scores.distinct("system") if system not in bare])
    turns = results.conversations
    summary = summarise(scores, level=LEVEL, resamples=RESAMPLES, seed=seed, conversations=turns)
    means = read_means(summary, results.contexts.systems)
    ranking = rank_systems(scores, means, main, seed, baseline=wanted_baseline(results.manifest), conversations=turns)
    baseline = chosen_baseline(results.manifest, ranking.order)
    standings = [
        _standing(
            results,
            known,
            system,
            means[system],
            ranking.groups.of.get(system, "–"),
            "shows no passages" if system in bare else _sentence(main, baseline, system, means, ranking),
        )
        for system in ranking.order
    ]
    labels = cluster_labels(known.queries, turns)
    return Overview(
        main,
        names,
        standings,
        ranking,
        len(known.queries),
        baseline,
        seed,
        None if labels is None else len(set(labels)),
    )


def _interval_words(low: float | None, high: float | None, n: int, conversations: int | None) -> tuple[str, int]:
    """An interval in words, and the digits that tell its ends apart."""
    if low is None or high is None:
        few = conversations is not None and conversations < FEWEST_CLUSTERS
        return "no interval from one query" if n < 2 else FEW_CLUSTERS if few else TOO_FEW, 2
    digits = digits_beside_zero(low, high, digits_within(high - low))
    return f"{100 * LEVEL:g} % interval {signed(low, digits)} to {signed(high, digits)}", digits


def _sentence(
    main: str,
    baseline: str,
    system: str,
    means: Mapping[str, Mapping[str, MetricMean]],
    ranking: Ranking,
) -> str:
    """What a system is worth, against the one that it is compared with."""
    mine = means[system].get(main)
    if mine is None or mine.mean is None:
        return f"has no value of {main}"
    row = ranking.versus.get((baseline, system))
    sign = 1 if row is not None else -1
    row = row if row is not None else ranking.versus.get((system, baseline))
    if row is None:
        mean = ranking.shared_means.get(system, mine)
        assert mean.mean is not None
        over = f" over the {format_count(mean.n, 'shared query', 'shared queries')}" if mean is not mine else ""
        span, digits = _interval_words(mean.low, mean.high, mean.n, mean.conversations)
        return f"has a mean {main} of {signed(mean.mean, digits)}{over}, {span}"
    if row["difference"] is None:
        return f"cannot be compared with {baseline}: no query has a value of {main} for both"
    difference = sign * row["difference"]
    ends = (None, None) if row["low"] is None else sorted((sign * row["low"], sign * row["high"]))
    span, digits = _interval_words(ends[0], ends[1], row["n"], row.get("conversations"))
    if row["p_holm"] >= ALPHA:
        every = f" {ranking.corrected}" if row["p"] < ALPHA else ""
        words = (
            f"is not significantly different from {baseline} by {main}{every}: "
            f"difference {signed(difference, digits)}, {span}"
        )
        if not every and row["low"] is not None and row["low"] * row["high"] > 0:
            words += f", which leaves out 0, but the test doesn't confirm it: p = {row['p']:.2g}"
        elif least := larger_detectable(row):
            size = signed(least, digits_beside_zero(least, least, digits))
            words += f"; with {_queries(row)} like these, a difference of {size} would be detected in 4 of 5 cases"
        return words
    if not is_different(row):
        return (
            f"is not clearly different from {baseline} by {main}: difference {signed(difference, digits)}, "
            f"{span}, which includes 0; the test alone finds a difference (p {format_p_value(row['p_holm'])}), but too "
            "few queries differ to rely on it"
        )
    better = (difference > 0) == higher_is_better(main)
    if difference < 0 and ends[0] is not None and ends[1] is not None:
        span, digits = _interval_words(-ends[1], -ends[0], row["n"], row.get("conversations"))
    return f"{'beats' if better else 'trails'} {baseline} by {signed(abs(difference), digits)} {main}, {span}"


def _queries(row: Mapping[str, Any]) -> str:
    """How many queries a comparison is from, and of how many conversations."""
    number = row.get("conversations")
    return f"{row['n']:,} queries" + (f" of {format_count(number, 'conversation')}" if number is not None else "")


def _standing(
    results: Results, known: Survey, system: str, means: Mapping[str, MetricMean], group: str, sentence: str
) -> Standing:
    passages, judged = known.shown[system], known.judged(system)
    misleading = share_of(known.kinds[system, "misleading"], judged)
    parts = [f"{system} {sentence}"]
    unmeasured = READER_REASON if misleading is None and known.reader_judged[system] else ""
    if misleading is not None:
        some = f" ({judged:,} of {passages:,} judged)" if judged < passages else ""
        parts.append(f"{100 * misleading:.0f} % of its passages mislead{some}")
    elif unmeasured:
        parts.append(f"how many of its passages mislead {unmeasured}")
    return Standing(
        system,
        means,
        group,
        "; ".join(parts) + ".",
        misleading,
        unmeasured,
        judged,
        passages,
        _mean_prompt_tokens(results, system),
    )


def share_of(number: int, of: int) -> float | None:
    """How many of how many; of none there is no share."""
    return number / of if of else None


def _mean_prompt_tokens(results: Results, system: str) -> float | None:
    """Tokens of the prompts that answers of a system were asked with, in the mean."""
    said = results.said.get("answers")
    if said is None or "prompt_tokens" not in said.columns:
        return None
    mean = said.filter(pl.col("system") == system)["prompt_tokens"].mean()
    return float(mean) if isinstance(mean, int | float) else None
