"""What the report says of systems by the main outcome of their answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ragworth.answer_outcomes import outcome_direction
from ragworth.comparison import is_different
from ragworth.comparison.comparison import DECIDE_MORE
from ragworth.core.errors import format_count, format_list
from ragworth.report.page.rankings import ALPHA, LEVEL, TEST, MetricMean, Ranking, larger_detectable
from ragworth.report.wording import digits_beside_zero, digits_within, share_of_all, signed
from ragworth.stats.power import smallest_p


class OutcomeScale(NamedTuple):
    """The scale of an outcome: a share, which is written in percent, or a number."""

    share: bool

    def value(self, value: float, low: float | None = None, high: float | None = None) -> str:
        """A value with as many digits as its interval allows; of a share without one, whole percents."""
        return f"{signed(self._times * value, self._digits(low, high))}{' %' if self.share else ''}"

    def ends(self, low: float | None, high: float | None) -> str:
        """An interval as ``12 to 34 %``; empty if there is none."""
        if low is None or high is None:
            return ""
        digits = self._digits(low, high)
        words = " to ".join(signed(self._times * end, digits) for end in (low, high))
        return words + (" %" if self.share else "")

    def interval(self, low: float | None, high: float | None) -> str:
        """An interval of a mean, with its level."""
        ends = self.ends(low, high)
        return ends and f"{100 * LEVEL:g} % interval {ends}"

    def difference(self, value: float, low: float | None = None, high: float | None = None) -> str:
        """A difference, of shares in points; one that isn't 0 doesn't look like it."""
        digits = self._digits(low, high)
        number = self._times * value
        return f"{signed(number, digits_beside_zero(number, number, digits))}{' points' if self.share else ''}"

    def difference_interval(self, low: float | None, high: float | None) -> str:
        """The interval of a difference, with its level; one that leaves out 0 shows it."""
        if low is None or high is None:
            return ""
        first, last = self._times * low, self._times * high
        digits = digits_beside_zero(first, last, self._digits(low, high))
        words = f"{signed(first, digits)} to {signed(last, digits)}"
        return f"{100 * LEVEL:g} % interval {words}{' points' if self.share else ''}"

    @property
    def _times(self) -> int:
        return 100 if self.share else 1

    def _digits(self, low: float | None, high: float | None) -> int:
        if low is None or high is None:
            return 0 if self.share else 2
        return max(digits_within(high - low) - 2 * self.share, 0)


FEW = 5
"""Questions up to which the default test finds no difference significant, however large it is."""

ROUNDING = 1e-12
"""Means that differ by less are the same number."""


class AnswerSentences:
    """What is said of systems by the main outcome."""

    def __init__(
        self,
        ranking: Ranking,
        means: Mapping[str, Mapping[str, MetricMean]],
        main: str,
        scale: OutcomeScale,
        grader: str,
    ) -> None:
        self.ranking, self.main, self.scale, self.grader = ranking, main, scale, grader
        self.means = {system: mine[main] for system, mine in means.items() if main in mine}

    @property
    def by(self) -> str | None:
        """Who says what is correct, in words; None if the main outcome isn't the share of correct answers."""
        return f" by {self.grader}" if self.main.rpartition("-")[2] == "correct" else None

    def value(self, mean: MetricMean) -> str:
        """A mean in words, such as ``81 % correct`` or ``a mean f1 of 0.61``."""
        words = self._number(mean)
        if not self.scale.share:
            return f"a mean {self.main} of {words}"
        return f"{words} correct{self.by}" if self.by is not None else f"{words} by {self.main}"

    def _number(self, mean: MetricMean) -> str:
        assert mean.mean is not None
        return self.scale.value(mean.mean, mean.low, mean.high)

    def verdict(self, system: str, *, several: bool = False) -> str:
        """The same as a clause, such as ``81 % of its answers are correct``; of the questions that all share."""
        mine, common = self.means[system], self.ranking.shared_means.get(system)
        words, whose = self.value(common or mine), "their" if several else "its"
        if not self.scale.share or self.by is None:
            return f"{'they have' if several else 'it has'} {words}"
        part = self.of_decided(system) if common is None else ""
        return words.replace(" correct", f" of {whose} answers are correct", 1) + (f" ({part})" if part else "")

    def of_decided(self, system: str) -> str:
        """Describe the answers behind a share, and its range over all answers, if some are undecided; else nothing.

        What a grader can decide isn't a random part: long answers, for example, are seldom decided.
        """
        estimate, asked = self.means[system], self.ranking.ranked.asked.get(system, 0)
        if estimate.mean is None or estimate.n >= asked:
            return ""
        words = f"of the {estimate.n:,} decided of {asked:,} asked, which aren't a random part"
        if not self.scale.share:
            return words
        return f"{words}; {share_of_all(estimate.mean, estimate.n, asked)} of all"

    def of(self, system: str, baseline: str) -> str:
        """A system against the one that it is compared with."""
        mine = self.means.get(system)
        if mine is None or mine.mean is None:
            return f"{system}: no answer has a value of {self.main}{f' ({mine.missing})' if mine else ''}."
        facts = "; ".join(filter(None, [self.of_decided(system), self.scale.interval(mine.low, mine.high)]))
        known = f" ({facts})" if facts else ""
        common = self.ranking.shared_means.get(system)
        if common is None or common.n == mine.n:
            words = f"{system}: {self.value(mine)}{known}"
        else:
            span = self.scale.interval(common.low, common.high)
            words = f"{system}: {self.value(common)} on the {format_count(common.n, 'shared question')}"
            words += f"{f' ({span})' if span else ''}; {self._number(mine)} on its own questions{known}"
        row = self.ranking.difference(baseline, system)
        return f"{words}{self._versus(baseline, row) if row is not None else ''}."

    def _versus(self, baseline: str, row: Mapping[str, Any]) -> str:
        if row["difference"] is None:
            return f"; it can't be compared with {baseline}: no question has a value for both"
        ends = row["low"], row["high"]
        span = self.scale.difference_interval(*ends)
        shared = format_count(row["n"], "question")
        both = f"over the {shared} that both have" if row["n"] < row["total"] else ""
        if is_different(row, ALPHA):
            above = row["difference"] > 0
            sized = span if above or row["low"] is None else self.scale.difference_interval(-row["high"], -row["low"])
            known = "; ".join(filter(None, (sized, both)))
            size = self.scale.difference(abs(row["difference"]), *ends)
            return f"; {size} {'above' if above else 'below'} {baseline}{f' ({known})' if known else ''}"
        facts = [f"difference {self.scale.difference(row['difference'], *ends)}", both, span]
        if row["p_holm"] < ALPHA:
            facts.append("the test alone finds a difference, but too few answers differ to rely on it")
        elif row["p"] < ALPHA:
            facts.append(
                f"p is below 0.05 for this pair alone, but not after correcting for {self.ranking.pairs:,} pairs"
            )
        elif row["low"] is not None and row["low"] * row["high"] > 0:
            facts.append(f"the interval leaves out 0, but the test doesn't confirm it: p = {row['p']:.2g}")
        elif least := larger_detectable(row):
            words = f"a difference of {self.scale.difference(least, *ends)} would be detected in 4 of 5 cases"
            facts.append(f"with {_questions(row)} like these, {words}")
        return f"; not significantly different from {baseline} ({'; '.join(filter(None, facts))})"

    def headline(self, systems: Sequence[str]) -> str:
        """Which system answers better, and how sure that is."""
        order = [system for system in systems if system in self.means and self.means[system].mean is not None]
        if not order:
            return f"No answer has a value of {self.main}. {self._remedy}"
        if len(systems) > 1 and not self.ranking.ranked.order:
            return f"The systems can't be ranked: {self.ranking.unranked}. {self._remedy}"
        ranked = [system for system in systems if system in self.ranking.ranked.order] or order
        shared, total = self._shared
        better = self._better_than_first(ranked)
        words = better or self._leader(ranked)
        if shared < total and len(ranked) > 1 and not better:
            every = "both" if len(ranked) == 2 else "all of them"
            words += f" This is over the {shared:,} of {total:,} questions that have a grade for {every}."
        if left := [system for system in systems if system not in ranked]:
            verb, counts = "isn't" if len(left) == 1 else "aren't", self.ranking.ranked.counts
            few = format_list([f"{system} {counts(system)}" for system in left], 4) if left[1:] else counts(left[0])
            words += f" {join_names(left)} {verb} ranked, with grades for fewer than half of the questions ({few})."
        return words + self._size_hint(order, several=len(ranked) > 1)

    @property
    def _shared(self) -> tuple[int, int]:
        """The questions that ranked systems are compared by, and all that any was asked."""
        n = next(iter(self.ranking.shared_means.values()), None)
        return (n.n, n.total) if n is not None else (0, 0)

    @property
    def _remedy(self) -> str:
        """Return the remedy where too few answers have a grade."""
        return f"To decide more, {DECIDE_MORE}."

    def _size_hint(self, order: Sequence[str], *, several: bool) -> str:
        """Whether there are too few questions, or conversations, for any difference to be significant."""
        rows = list(self.ranking.versus.values()) if several else []
        turns = [row["conversations"] for row in rows if row.get("conversations") is not None]
        most = max(turns or [row["n"] for row in rows] or [self.means[system].n for system in order])
        units, pairs = format_count(most, "conversation" if turns else "question"), self.ranking.pairs
        if most <= FEW:
            return f" With {units} this is only a hint."
        if several and smallest_p(TEST, most, self.ranking.resamples) * pairs >= ALPHA:
            return f" With {units}, no difference can be significant among {pairs:,} pairs of systems."
        return ""

    def _leaders(self, best: Sequence[str], others: Sequence[str]) -> str:
        """The same of several systems whose means are equal, ahead of others."""

        def is_behind(other: str) -> bool:
            return all(self.ranking.order_against(one, other) > 0 for one in best)

        behind, level = [one for one in others if is_behind(one)], [one for one in others if not is_behind(one)]
        words = f"{join_names(best)} lead with the same score: {self.verdict(best[0], several=True)}."
        if not behind:
            return f"{words} But they are not significantly better than {join_names(level)}."
        but = f", but not than {join_names(level)}" if level else ""
        return f"{words} They are significantly better than {join_names(behind)}{but}."

    def _better_than_first(self, order: Sequence[str]) -> str:
        """Who is significantly better than the first system, on more questions than those that all share."""
        best, *others = order
        shared, total = self._shared
        ahead = [other for other in others if self.ranking.order_against(other, best) > 0]
        if not ahead or not total:
            return ""
        verb = "is" if len(ahead) == 1 else "are"
        return (
            f"No system answers best. On the {shared:,} of {total:,} questions that have a grade for all, "
            f"{best} is first: {self.verdict(best)}. But {join_names(ahead)} {verb} significantly better than {best} "
            "on the questions that both have."
        )

    def _leader(self, order: Sequence[str]) -> str:
        best, *others = order
        if not others:
            span = self.scale.interval(self.means[best].low, self.means[best].high)
            return f"{best}: {self.verdict(best)}{f' ({span})' if span else ''}."
        rows = {other: self.ranking.difference(other, best) for other in others}
        gaps = {other: row["difference"] for other, row in rows.items() if row is not None}
        equal = [other for other, gap in gaps.items() if gap is not None and abs(gap) < ROUNDING]
        if len(equal) == len(others):
            return f"{join_names([best, *equal])} score the same: {self.verdict(best, several=True)}."
        if equal:
            return self._leaders([best, *equal], [other for other in others if other not in equal])
        behind = [other for other in others if self.ranking.order_against(best, other) > 0]
        level = [other for other in others if other not in behind]
        if not level:
            than = behind[0] if len(behind) == 1 else "every other system"
            more = "more" if outcome_direction(self.main) > 0 else "less"
            return f"{best} answers best: {self.verdict(best)}, significantly {more} than for {than}."
        if not behind:
            other = level[0] if len(level) == 1 else "any other system"
            return f"{best} leads: {self.verdict(best)}. But it is not significantly better than {other}."
        return (
            f"{best} leads: {self.verdict(best)}. It is significantly better than {join_names(behind)}, but not "
            f"than {join_names(level)}."
        )


def _questions(row: Mapping[str, Any]) -> str:
    """How many questions a comparison is from, and of how many conversations."""
    number = row.get("conversations")
    return f"{row['n']:,} questions" + (f" of {format_count(number, 'conversation')}" if number is not None else "")


def join_names(names: Sequence[str]) -> str:
    """Names in a sentence: a, b and c; of many, the first ones."""
    if len(names) > 4:
        return f"{', '.join(names[:3])} and {len(names) - 3} others"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
