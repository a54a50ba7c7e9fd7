"""Which system answers better, and how sure that is: outcomes of answers, compared like metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ragworth.answer_outcomes import (
    GRADE,
    HUMAN,
    SHARES,
    UNIT,
    is_surely_better_if_higher,
    is_surely_better_if_lower,
    main_outcome,
    outcome_direction,
    outcome_scores,
    outcome_type,
)
from ragworth.comparison import Comparison, compare, is_different, score_matrices, summarise
from ragworth.errors import format_count, format_list
from ragworth.generation.writer import ORACLE_SYSTEM
from ragworth.report.page.rankings import (
    ALPHA,
    LEVEL,
    RESAMPLES,
    TEST,
    MetricMean,
    Ranking,
    chosen_baseline,
    rank_systems,
    read_means,
    wanted_baseline,
)
from ragworth.report.wording import digits_beside_zero, signed
from ragworth.results import Results
from ragworth.tables import Scores

FEW = 5
"""Questions up to which the default test finds no difference significant, however large it is."""
ROUNDING = 1e-12
"""Means that differ by less are the same number."""


@dataclass(frozen=True)
class AnswerStanding:
    """One system: its means by outcome, its group, and a sentence."""

    system: str
    means: Mapping[str, MetricMean]
    group: str
    sentence: str


@dataclass(frozen=True)
class AnswerOverview:
    """All systems with graded answers, best first.

    Attributes
    ----------
    main: the outcome that systems are ordered by.
    outcomes: all that are shown, the main one first.
    shares: those whose values are shares, which are shown in percent.
    comparison: every outcome of every system against the baseline's; None with a single system.
    notes: what to know of the numbers.
    """

    main: str
    outcomes: list[str]
    shares: frozenset[str]
    headline: str
    standings: list[AnswerStanding]
    ranking: Ranking
    baseline: str
    comparison: Comparison | None
    notes: list[str]

    def words(self, outcome: str, value: float) -> str:
        """A value as a person reads it."""
        return value_words(value, outcome in self.shares)


def build_answers(results: Results, seed: int) -> AnswerOverview | None:
    """Compare the outcomes of answers; None if there are none."""
    if results.outcomes is None or not len(results.outcomes):
        return None
    scores = outcome_scores(results.outcomes, results.said)
    names = shown_outcomes(scores)
    if not names:
        return None
    main = names[0]
    scores = scores.having("metric", names)
    turns = results.conversations
    summary = summarise(scores, level=LEVEL, resamples=RESAMPLES, seed=seed, conversations=turns)
    means = _of_all_questions(read_means(summary), scores)
    shares = frozenset(matrix.metric for matrix in score_matrices(scores) if _is_share(matrix.metric, matrix.values))
    ranking = rank_systems(scores, means, main, seed, baseline=wanted_baseline(results.manifest), conversations=turns)
    rivals = [system for system in ranking.order if system != ORACLE_SYSTEM] or ranking.order
    baseline = chosen_baseline(results.manifest, rivals)
    written = _Sentences(ranking, means, main, main in shares)
    standings = [
        AnswerStanding(system, means[system], ranking.groups.of.get(system, "–"), written.of(system, baseline))
        for system in ranking.order
    ]
    comparison = _comparison(scores, ranking, baseline, seed, turns)
    return AnswerOverview(
        main,
        names,
        shares,
        f"{written.headline(rivals)}{_objections(comparison, main, rivals) if comparison is not None else ''}",
        standings,
        ranking,
        baseline,
        comparison,
        _notes(results, means, main, names, ranking),
    )


def shown_outcomes(scores: Scores) -> list[str]:
    """The outcomes that the report shows, the main one first; none if no outcome says which system is better."""
    names = [name for name in scores.distinct("metric") if _is_shown(name)]
    main = main_outcome(_covering(scores.having("metric", names))) or main_outcome(names)
    return [main, *(name for name in names if name != main)] if main is not None else []


def _covering(scores: Scores) -> list[str]:
    """Outcomes that every system has for at least half of the questions, in their order."""
    systems, total = len(scores.distinct("system")), len(scores.distinct("query"))
    found = []
    for matrix in score_matrices(scores):
        counts = (~np.isnan(matrix.values)).sum(axis=0)
        if len(counts) == systems and (2 * counts >= total).all():
            found.append(matrix.metric)
    return found


def _of_all_questions(
    means: Mapping[str, Mapping[str, MetricMean]], scores: Scores
) -> dict[str, dict[str, MetricMean]]:
    """Means with the number of all questions as N: a question without such an outcome is missing, too."""
    total = len(scores.distinct("query"))
    found: dict[str, dict[str, MetricMean]] = {}
    for system, mine in means.items():
        found[system] = {}
        for name, mean in mine.items():
            lacking = f"{total - mean.total:,} in no system's data" if mean.total < total else ""
            words = ", ".join(filter(None, (mean.missing, lacking)))
            found[system][name] = mean._replace(total=total, missing=words)
    return found


def _is_shown(name: str) -> bool:
    """Whether an outcome says something of answers; how sure the model is doesn't."""
    return outcome_direction(name) != 0 or name.endswith("abstained")


def _is_share(name: str, values: Any) -> bool:
    kind = outcome_type(name)
    if kind is not None and kind.bounds != UNIT:
        return False
    known = ~np.isnan(values)
    if not ((values[known] >= 0) & (values[known] <= 1)).all():
        return False  # a scale of its own, such as 1 to 5
    return name.rpartition("-")[2] in SHARES or bool(np.isin(values[known], (0, 1)).all())


def _comparison(
    scores: Scores, ranking: Ranking, baseline: str, seed: int, turns: Mapping[str, str]
) -> Comparison | None:
    """Every outcome against the baseline's; for the main one, p is corrected over all pairs, as for the groups."""
    if len(scores.distinct("system")) < 2:
        return None
    found = compare(scores, baseline=baseline, test=TEST, level=LEVEL, seed=seed, changes=0, conversations=turns)
    known = {system: ranking.difference(baseline, system) for system in ranking.order}
    corrected = {system: row["p_holm"] for system, row in known.items() if row is not None}
    main = pl.col("metric") == ranking.metric
    over_all = pl.col("system").replace_strict(corrected, default=None, return_dtype=pl.Float64)
    return found._replace(
        differences=found.differences.with_columns(p_holm=pl.when(main).then(over_all).otherwise("p_holm"))
    )


def _objections(comparison: Comparison, main: str, systems: Sequence[str]) -> str:
    """What speaks against the verdict by the main outcome, as sentences after it."""
    return _wrong_answers(comparison, main, systems) + _better_by_others(comparison, main, systems)


def _better_by_others(comparison: Comparison, main: str, systems: Sequence[str]) -> str:
    """Systems that are significantly better than the first by other outcomes, also corrected for their number."""
    grader, hyphen, last = main.rpartition("-")
    family = (*SHARES, GRADE)  # they all come from one grade
    own = {main, *(f"{grader}{hyphen}{name}" for name in family if last in family)}
    rows = [row for row in comparison.differences.iter_rows(named=True) if row["metric"] not in own]
    level = ALPHA / max(1, len({row["metric"] for row in rows}))
    found: dict[str, list[str]] = {}
    for row in rows:
        direction = outcome_direction(row["metric"])
        if not direction or not {row["system"], row["baseline"]} <= set(systems) or not is_different(row, level):
            continue
        better, worse = (row["system"], row["baseline"])[:: 1 if direction * row["difference"] > 0 else -1]
        if worse == systems[0]:
            found.setdefault(better, []).append(row["metric"])
    return "".join(
        f" By {_join_names(names)}, {better} is significantly better than {systems[0]}."
        for better, names in list(found.items())[:2]
    )


def _wrong_answers(comparison: Comparison, main: str, systems: Sequence[str]) -> str:
    """Who gives wrong answers more often without having fewer correct ones, as a sentence after the verdict by these.

    An answer that declines is better than a wrong one, and neither is correct.
    """
    grader, hyphen, last = main.rpartition("-")
    if last != "correct":
        return ""
    different = [row for row in comparison.differences.iter_rows(named=True) if is_different(row, ALPHA)]
    correct = {row["system"]: row["difference"] for row in different if row["metric"] == main}
    found = [
        row
        for row in different
        if row["metric"] == f"{grader}{hyphen}wrong"
        and row["system"] in systems
        and row["difference"] * correct.get(row["system"], 0.0) >= 0
    ]
    found.sort(key=lambda row: -abs(row["difference"]))
    words = ""
    for row in found[:2]:
        first, second = (row["system"], row["baseline"])[:: 1 if row["difference"] > 0 else -1]
        points = f"{100 * abs(row['difference']):.0f} points"
        words += f" {first} gives wrong answers significantly more often than {second}, by {points}."
    return words


def _notes(
    results: Results,
    means: Mapping[str, Mapping[str, MetricMean]],
    main: str,
    names: Sequence[str],
    ranking: Ranking,
) -> list[str]:
    notes = []
    if ranking.shared is not None:
        notes.append(
            "The systems have grades for different questions. Each mean is over the system's own questions. "
            "Systems are ordered by the questions that all of them have; differences are over those that both have."
        )
    if outcome_type(main) is None and outcome_direction(main) > 0 and HUMAN not in main and len(ranking.order) > 1:
        notes.append(f"Higher values of {main} are taken to be better.")
    if lower := [name for name in names if outcome_type(name) is None and outcome_direction(name) < 0]:
        notes.append(f"Lower values of {format_list(lower, 6)} are taken to be better, because of their names.")
    aspects = results.outcomes.distinct("aspect") if results.outcomes is not None else []
    if hidden := [name for name in aspects if outcome_type(name) is None and not outcome_direction(name)]:
        notes.append(f"Not shown, because their names say nothing of an answer's quality: {format_list(hidden, 6)}.")
    best = main_outcome(list(names))
    if best is not None and HUMAN in best and HUMAN not in main:
        notes.append(f"People's grades cover only some systems or questions, so systems are ordered by {main}.")
    grades = (
        results.outcomes.having("aspect", ["grade"]).frame["value"] if results.outcomes is not None else pl.Series()
    )
    if "correct" in names and (grades == 0.5).any():
        notes.append("Correct includes answers that no passage shown supports (“partially correct” in the figures).")
    return notes


def value_words(value: float, share: bool) -> str:
    """A share in percent, or a number."""
    return f"{100 * value:.0f} %" if share else signed(value, 3)


def interval_words(low: float | None, high: float | None, share: bool, *, points: bool = False) -> str:
    """An interval in words; empty if there is none."""
    if low is None or high is None:
        return ""
    ends = [100 * end if share else end for end in (low, high)]
    digits = (0 if high - low >= 0.02 else 1) if share else 3
    if points:
        digits = digits_beside_zero(ends[0], ends[1], digits)
    words = [signed(end, digits) for end in ends]
    return f"{100 * LEVEL:g} % interval {words[0]} to {words[1]}{(' points' if points else ' %') if share else ''}"


class _Sentences:
    """What is said of systems by the main outcome."""

    def __init__(self, ranking: Ranking, means: Mapping[str, Mapping[str, MetricMean]], main: str, share: bool) -> None:
        self.ranking, self.main, self.share = ranking, main, share
        self.means = {system: mine[main] for system, mine in means.items() if main in mine}

    @property
    def _by(self) -> str | None:
        """Who says what is correct, in words; None if the main outcome isn't the share of correct answers."""
        grader, _, last = self.main.rpartition("-")
        if last != "correct":
            return None
        return " by people's grades" if grader == HUMAN else f" by {grader}" if grader else ""

    def value(self, system: str, mean: float | None = None) -> str:
        """The mean in words, such as ``81 % correct`` or ``a mean f1 of 0.610``."""
        mean = self.means[system].mean if mean is None else mean
        assert mean is not None
        words = value_words(mean, self.share)
        if not self.share:
            return f"a mean {self.main} of {words}"
        return f"{words} correct{self._by}" if self._by is not None else f"{words} by {self.main}"

    def verdict(self, system: str, *, several: bool = False) -> str:
        """The same as a clause, such as ``81 % of its answers are correct``; of the questions that all share."""
        mine, shared = self.means[system], self.ranking.shared
        common = shared.means.get(system) if shared is not None else None
        words, whose = self.value(system, common), "their" if several else "its"
        if not self.share or self._by is None:
            return f"{'they have' if several else 'it has'} {words}"
        if common is None and mine.n < mine.total:
            whose = f"the {mine.n:,} of {whose} {mine.total:,}"
            return words.replace(" correct", f" of {whose} answers that have a grade are correct", 1)
        return words.replace(" correct", f" of {whose} answers are correct", 1)

    def _coverage(self, mine: MetricMean) -> list[str]:
        """How many answers a mean is from if some have no grade, and what it could be for all of them."""
        if mine.n == mine.total or mine.mean is None:
            return []
        words = f"{mine.n:,} of {mine.total:,} have a grade"
        if self.share and mine.n < 0.9 * mine.total:
            right, open_ = mine.mean * mine.n, mine.total - mine.n
            low, high = 100 * right / mine.total, 100 * (right + open_) / mine.total
            words += f", so {low:.0f} to {high:.0f} % of all"
        return [words]

    def of(self, system: str, baseline: str) -> str:
        """A system against the one that it is compared with."""
        mine = self.means.get(system)
        if mine is None or mine.mean is None:
            return f"{system}: no answer has a value of {self.main}{f' ({mine.missing})' if mine else ''}."
        span = interval_words(mine.low, mine.high, self.share)
        facts = "; ".join(filter(None, [span, *self._coverage(mine)]))
        words = f"{system}: {self.value(system)}{f' ({facts})' if facts else ''}"
        row = self.ranking.difference(baseline, system)
        return f"{words}{self._versus(baseline, row) if row is not None else ''}."

    def _versus(self, baseline: str, row: Mapping[str, Any]) -> str:
        if row["difference"] is None:
            return f"; it can't be compared with {baseline}: no question has a value for both"
        span = interval_words(row["low"], row["high"], self.share, points=True)
        size, difference = self._points(abs(row["difference"])), self._points(row["difference"])
        shared = format_count(row["n"], "question")
        both = f"over the {shared} that both have" if row["n"] < row["total"] else ""
        if is_different(row, ALPHA):
            known = "; ".join(filter(None, (span, both)))
            side = "above" if row["difference"] > 0 else "below"
            return f"; {size} {side} {baseline}{f' ({known})' if known else ''}"
        facts = [f"difference {difference}", both, span]
        if row["p_holm"] < ALPHA:
            facts.append("the test alone finds a difference, but too few answers differ to rely on it")
        elif row["p"] < ALPHA:
            facts.append(
                f"p is below 0.05 for this pair alone, but not after correcting for {self.ranking.pairs:,} pairs"
            )
        elif row["low"] is not None and row["low"] * row["high"] > 0:
            facts.append(f"the interval leaves out 0, but the test doesn't confirm it: p = {row['p']:.2g}")
        elif row["detectable"]:
            least = self._points(row["detectable"])
            facts.append(f"with {_questions(row)} like these, a difference of {least} would be detected")
        return f"; not significantly different from {baseline} ({'; '.join(filter(None, facts))})"

    def _points(self, difference: float) -> str:
        digits = 0 if abs(difference) >= 0.01 else 1
        return f"{signed(100 * difference, digits)} points" if self.share else signed(difference, 3)

    def headline(self, systems: Sequence[str]) -> str:
        """Which system answers better, and how sure that is."""
        order = [system for system in systems if system in self.means and self.means[system].mean is not None]
        if not order:
            return f"No answer has a value of {self.main}."
        shared = self.ranking.shared
        left = [system for system in order if shared is not None and system in shared.left_out]
        ranked = [system for system in order if system not in left]
        if shared is not None and not shared.n and len(ranked) > 1:
            return f"The systems can't be ranked: no question has a value of {self.main} for all of them."
        words = self._leader(ranked)
        if len(ranked) > 1:
            words += self._assumed_direction()
        if shared is not None and shared.n < shared.total and len(ranked) > 1:
            every = "both" if len(ranked) == 2 else "all of them"
            words += f" This is over the {shared.n:,} of {shared.total:,} questions that have a grade for {every}."
        if left:
            verb = "isn't" if len(left) == 1 else "aren't"
            words += f" {_join_names(left)} {verb} ranked, with grades for fewer than half of the questions."
        if bare := [system for system in systems if system not in order]:
            words += f" {_join_names(bare)} {'has' if len(bare) == 1 else 'have'} no value of {self.main}."
        most = max(self.means[system].n for system in order)
        return words if most > FEW else f"{words} With {format_count(most, 'question')} this is only a hint."

    def _assumed_direction(self) -> str:
        """Which values are taken to be better, where only the name of the outcome says it, or nothing."""
        if outcome_direction(self.main) < 0 and not is_surely_better_if_lower(self.main):
            here, other = "Lower", "higher"
        elif outcome_direction(self.main) > 0 and not is_surely_better_if_higher(self.main):
            here, other = "Higher", "lower"
        else:
            return ""
        return (
            f" {here} values of {self.main} are taken to be better; if {other} ones are, call it {other}_{self.main}."
        )

    def _leaders(self, best: Sequence[str], others: Sequence[str]) -> str:
        """The same of several systems whose means are equal, ahead of others."""

        def is_behind(other: str) -> bool:
            rows = [row for one in best if (row := self.ranking.difference(other, one)) is not None]
            return bool(rows) and all(is_different(row, ALPHA) for row in rows)

        behind, level = [one for one in others if is_behind(one)], [one for one in others if not is_behind(one)]
        words = f"{_join_names(best)} lead with the same score: {self.verdict(best[0], several=True)}."
        if not behind:
            return f"{words} But they are not significantly better than {_join_names(level)}."
        but = f", but not than {_join_names(level)}" if level else ""
        return f"{words} They are significantly better than {_join_names(behind)}{but}."

    def _leader(self, order: Sequence[str]) -> str:
        best, *others = order
        if not others:
            span = interval_words(self.means[best].low, self.means[best].high, self.share)
            return f"{best}: {self.verdict(best)}{f' ({span})' if span else ''}."
        rows = {other: self.ranking.difference(other, best) for other in others}
        gaps = {other: row["difference"] for other, row in rows.items() if row is not None}
        equal = [other for other, gap in gaps.items() if gap is not None and abs(gap) < ROUNDING]
        if len(equal) == len(others):
            return f"{_join_names([best, *equal])} score the same: {self.verdict(best, several=True)}."
        if equal:
            return self._leaders([best, *equal], [other for other in others if other not in equal])
        behind = [other for other, row in rows.items() if row is not None and is_different(row, ALPHA)]
        level = [other for other in others if other not in behind]
        if not level:
            than = behind[0] if len(behind) == 1 else "every other system"
            more = "more" if outcome_direction(self.main) > 0 else "less"
            return f"{best} answers best: {self.verdict(best)}, significantly {more} than for {than}."
        if not behind:
            other = level[0] if len(level) == 1 else "any other system"
            return f"{best} leads: {self.verdict(best)}. But it is not significantly better than {other}."
        return (
            f"{best} leads: {self.verdict(best)}. It is significantly better than {_join_names(behind)}, but not "
            f"than {_join_names(level)}."
        )


def _questions(row: Mapping[str, Any]) -> str:
    """How many questions a comparison is from, and of how many conversations."""
    number = row.get("conversations")
    return f"{row['n']:,} questions" + (f" of {format_count(number, 'conversation')}" if number is not None else "")


def _join_names(names: Sequence[str]) -> str:
    """Names in a sentence: a, b and c; of many, the first ones."""
    if len(names) > 4:
        return f"{', '.join(names[:3])} and {len(names) - 3} others"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
