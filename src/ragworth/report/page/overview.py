"""The top of the report: which system is worth most to the model, how sure that is, and what it cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import polars as pl

from ragworth.comparison import compare, higher_is_better, summarise
from ragworth.errors import InputError, format_list
from ragworth.report.page.groups import SystemGroups, group_systems
from ragworth.report.page.survey import Survey
from ragworth.report.render import format_p_value
from ragworth.results import Results
from ragworth.stats.range_intervals import TOO_FEW
from ragworth.tables import Scores

LEVEL, ALPHA = 0.95, 0.05
RESAMPLES = 2000
"""Of intervals of means."""


class MetricMean(NamedTuple):
    """A metric's mean for one system, with its interval and how many queries it is from."""

    mean: float | None
    low: float | None
    high: float | None
    n: int
    total: int
    missing: str

    @property
    def ends(self) -> str:
        """The ends of the interval, or why several queries give none; empty for a single one."""
        if self.low is None or self.high is None:
            return "too few differ" if self.n > 1 else ""
        return f"[{format_signed(self.low, 3)}, {format_signed(self.high, 3)}]"


@dataclass(frozen=True)
class Standing:
    """One line of the leaderboard."""

    system: str
    means: Mapping[str, MetricMean]
    group: str
    """Which systems it cannot be told from: letters that they share, or their places."""
    sentence: str
    misleading: float | None
    """Share of passages that are hard distractors."""
    judged: int
    """Passages shown whose utility is known."""
    shown: int
    correct: float | None
    """Share of answers that are; those that are only partially correct are not among them."""
    wrong: float | None
    graded: int
    """Answers that have a grade."""
    answers: int
    read: float | None
    """Tokens that the model read for an answer, in the mean."""

    def count(self, share: str) -> tuple[int, int]:
        """How many passages or answers a share is from, and of how many."""
        return (self.judged, self.shown) if share == "misleading" else (self.graded, self.answers)


@dataclass(frozen=True)
class Overview:
    """All systems, best first."""

    main: str
    metrics: list[str]
    standings: list[Standing]
    groups: SystemGroups
    queries: int
    baseline: str
    test: str
    pairs: int
    resamples: int
    seed: int


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
    means: dict[str, dict[str, MetricMean]] = {system: {} for system in results.contexts.systems}
    for row in summarise(scores, level=LEVEL, resamples=RESAMPLES, seed=seed).iter_rows(named=True):
        facts = [row[name] for name in ("mean", "low", "high", "n", "total", "missing")]
        means.setdefault(row["system"], {})[row["metric"]] = MetricMean(*facts)
    up = 1 if higher_is_better(main) else -1
    order = sorted(means, key=lambda system: _sort_key(_mean(means[system], main), up))
    wanted = evaluation_settings(results).get("baseline")
    baseline = wanted if isinstance(wanted, str) and wanted in means else order[0]
    pairs = len(order) * (len(order) - 1) // 2
    # Enough resamples for a small p-value to survive the correction over all pairs.
    resamples = max(10_000, 40 * pairs)
    one = scores.having("metric", [main])
    versus: dict[tuple[str, str], dict[str, Any]] = {}
    if len(one.distinct("system")) > 1:
        compared = compare(one, all_pairs=True, level=LEVEL, resamples=resamples, seed=seed)
        for row in compared.differences.iter_rows(named=True):
            versus[row["baseline"], row["system"]] = row
    known_order = [system for system in order if _mean(means[system], main) is not None]
    groups = group_systems(known_order, {pair for pair, row in versus.items() if _is_different(row)})
    standings = [
        _standing(
            results,
            known,
            system,
            means[system],
            groups.of.get(system, "–"),
            _sentence(main, baseline, system, means, versus),
        )
        for system in order
    ]
    queries = len(known.queries)
    return Overview(main, names, standings, groups, queries, baseline, "randomisation", pairs, resamples, seed)


def evaluation_settings(results: Results) -> Mapping[str, Any]:
    """The settings of the evaluation."""
    found = results.manifest.get("settings")
    return found if isinstance(found, Mapping) else {}


def _mean(means: Mapping[str, MetricMean], metric: str) -> float | None:
    return means[metric].mean if metric in means else None


def _sort_key(mean: float | None, up: int) -> tuple[bool, float]:
    """Where a system goes: the best first, those without a value last."""
    return mean is None, -up * (mean or 0.0)


def format_signed(value: float, digits: int = 2) -> str:
    """A number with a minus sign that is one; what rounds to 0 is 0."""
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")


def _interval_words(low: float | None, high: float | None, n: int) -> tuple[str, int]:
    """An interval in words, and the digits that tell its ends apart."""
    if low is None or high is None:
        return "no interval from one query" if n < 2 else TOO_FEW, 2
    digits = 2 if high - low >= 0.05 else 3
    return f"{100 * LEVEL:g} % interval {format_signed(low, digits)} to {format_signed(high, digits)}", digits


def _is_different(row: Mapping[str, Any]) -> bool:
    """Whether two systems differ significantly: by the test, and by the interval where there is one.

    The interval allows for values that no query has shown yet and the test does not, so where few queries differ the
    interval may hold 0 although p is small.
    """
    return row["p_holm"] is not None and row["p_holm"] < ALPHA and not holds_zero(row)


def holds_zero(row: Mapping[str, Any]) -> bool:
    """Whether the interval of a difference holds 0; where there is no interval, it doesn't."""
    return row["low"] is not None and row["low"] <= 0 <= row["high"]


def _sentence(
    main: str,
    baseline: str,
    system: str,
    means: Mapping[str, Mapping[str, MetricMean]],
    versus: Mapping[tuple[str, str], Mapping[str, Any]],
) -> str:
    """What a system is worth, against the one that it is compared with."""
    mine = means[system].get(main)
    if mine is None or mine.mean is None:
        return f"has no value of {main}"
    row = versus.get((baseline, system))
    sign = 1 if row is not None else -1
    row = row if row is not None else versus.get((system, baseline))
    if row is None:
        span, digits = _interval_words(mine.low, mine.high, mine.n)
        return f"has a mean {main} of {format_signed(mine.mean, digits)}, {span}"
    if row["difference"] is None:
        return f"cannot be compared with {baseline}: no query has a value of {main} for both"
    difference = sign * row["difference"]
    ends = (None, None) if row["low"] is None else sorted((sign * row["low"], sign * row["high"]))
    span, digits = _interval_words(ends[0], ends[1], row["n"])
    if row["p_holm"] >= ALPHA:
        every = f" once all {len(versus)} pairs are compared" if row["p"] < ALPHA else ""
        words = (
            f"cannot be told from {baseline} by {main}{every}: difference {format_signed(difference, digits)}, {span}"
        )
        if row["detectable"] and not every:  # by itself; where all pairs together decide, it takes more
            words += f"; with {row['n']:,} queries like these one of {format_signed(row['detectable'], 3)} would show"
        return words
    if not _is_different(row):
        return (
            f"is not clearly different from {baseline} by {main}: difference {format_signed(difference, digits)}, "
            f"{span}, "
            f"which includes 0; the test alone finds a difference (p {format_p_value(row['p_holm'])}), but too few "
            "queries "
            "differ to rely on it"
        )
    more = f"{format_signed(abs(difference), digits)} {'more' if difference > 0 else 'less'}"
    if main.startswith("UDCG"):
        return f"is worth {more} to this model than {baseline} by {main}, {span}"
    return f"scores {more} than {baseline} by {main}, {span}"


def _standing(
    results: Results, known: Survey, system: str, means: Mapping[str, MetricMean], group: str, sentence: str
) -> Standing:
    passages, judged = known.shown(system), known.judged(system)
    misleading = share_of(known.kinds[system, "misleading"], judged)
    answers = sum(number for (name, _), number in known.grades.items() if name == system)
    graded = answers - known.grades[system, None]
    correct, wrong = (share_of(known.grades[system, grade], graded) for grade in ("correct", "wrong"))
    parts = [f"{system} {sentence}"]
    if misleading is not None:
        some = f" ({judged:,} of {passages:,} judged)" if judged < passages else ""
        parts.append(f"{100 * misleading:.0f} % of its passages mislead{some}")
    if correct is not None and wrong is not None:
        some = f" ({graded:,} of {answers:,} graded)" if graded < answers else ""
        parts.append(f"{100 * correct:.0f} % of the answers from them are correct and {100 * wrong:.0f} % wrong{some}")
    return Standing(
        system,
        means,
        group,
        "; ".join(parts) + ".",
        misleading,
        judged,
        passages,
        correct,
        wrong,
        graded,
        answers,
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
