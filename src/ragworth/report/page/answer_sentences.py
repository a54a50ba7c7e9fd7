"""What the report says of systems by the main outcome of their answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ragworth.answer_outcomes import HUMAN, is_surely_better_if_higher, is_surely_better_if_lower, outcome_direction
from ragworth.comparison import is_different
from ragworth.errors import format_count
from ragworth.report.page.rankings import ALPHA, LEVEL, TEST, MetricMean, Ranking
from ragworth.report.wording import digits_beside_zero, signed
from ragworth.stats.p_limits import smallest_p

FEW = 5
"""Questions up to which the default test finds no difference significant, however large it is."""


ROUNDING = 1e-12
"""Means that differ by less are the same number."""


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


class AnswerSentences:
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
            words += f" {join_names(left)} {verb} ranked, with grades for fewer than half of the questions."
        if bare := [system for system in systems if system not in order]:
            words += f" {join_names(bare)} {'has' if len(bare) == 1 else 'have'} no value of {self.main}."
        most = max(self.means[system].n for system in order)
        if most <= FEW:
            return f"{words} With {format_count(most, 'question')} this is only a hint."
        pairs = self.ranking.pairs
        if len(ranked) > 1 and smallest_p(TEST, most, self.ranking.resamples) * pairs >= ALPHA:
            words += f" With {most:,} questions, no difference can be significant among {pairs:,} pairs of systems."
        return words

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
        words = f"{join_names(best)} lead with the same score: {self.verdict(best[0], several=True)}."
        if not behind:
            return f"{words} But they are not significantly better than {join_names(level)}."
        but = f", but not than {join_names(level)}" if level else ""
        return f"{words} They are significantly better than {join_names(behind)}{but}."

    def _leader(self, order: Sequence[str]) -> str:
        best, *others = order
        if not others:
            span = interval_words(self.means[best].low, self.means[best].high, self.share)
            return f"{best}: {self.verdict(best)}{f' ({span})' if span else ''}."
        rows = {other: self.ranking.difference(other, best) for other in others}
        gaps = {other: row["difference"] for other, row in rows.items() if row is not None}
        equal = [other for other, gap in gaps.items() if gap is not None and abs(gap) < ROUNDING]
        if len(equal) == len(others):
            return f"{join_names([best, *equal])} score the same: {self.verdict(best, several=True)}."
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
