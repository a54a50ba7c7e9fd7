"""Who wins with which confidence, case by case: tables and sentences of ``win-rate``."""

from __future__ import annotations

import numpy as np
import polars as pl

from ragworth.annotators.token_confidence import MEASURES
from ragworth.errors import format_count, format_list
from ragworth.results import Results
from ragworth.stats.auc import WinRateEstimate, win_rate
from ragworth.stats.paired import PairedComparison, compare_paired, holm
from ragworth.studies.arms import Floats, p_words
from ragworth.studies.contract import Case, Study
from ragworth.tables import OK

GOLD, DISTRACTOR, RANDOM = "gold", "distractor", "random"
NOUNS = {DISTRACTOR: "a distractor", RANDOM: "a random passage"}
AGAINST = {DISTRACTOR: "over the distractor", RANDOM: "over a random passage"}
NAMES = {**{name: name for name in MEASURES}, "abstention": "1 − abstention", "likelihood": "likelihood"}
"""Judgments that say how sure the model is with a passage, and what they are called; abstention counts against one."""

KEYED = (("KeyEntropy", "Entropy"), ("KeyPPL", "PPL"))
"""Measures over the key tokens, with those over all tokens."""

RATES = {"case": pl.String, "confidence": pl.String, "against": pl.String} | {
    **dict.fromkeys(("win rate", "low", "high", "p", "p_holm"), pl.Float64),
    **dict.fromkeys(("wins", "ties", "losses", "missing", "queries"), pl.Int64),
    "why": pl.String,
}
GAPS = {"case": pl.String, "first": pl.String, "second": pl.String, "against": pl.String} | {
    **dict.fromkeys(("difference", "low", "high", "p"), pl.Float64),
    **dict.fromkeys(("wins", "ties", "losses", "queries"), pl.Int64),
}


def judged(results: Results) -> dict[str, dict[tuple[str, str], float]]:
    """By the name of each confidence its values by query and passage; higher is surer."""
    found: dict[str, dict[tuple[str, str], float]] = {}
    if results.judgments is not None:
        good = results.judgments.frame.filter((pl.col("status") == OK) & pl.col("aspect").is_in(list(NAMES)))
        for query, passage, aspect, value in good.select("query", "passage", "aspect", "value").iter_rows():
            sure = 1 - value if aspect == "abstention" else value
            found.setdefault(NAMES[aspect], {})[query, passage] = sure
    return {name: found[name] for name in NAMES.values() if name in found}


class WinRateCase:
    """The two comparisons of one case."""

    def __init__(self, study: Study, case: Case) -> None:
        self.study, self.case = study, case
        self.shown: dict[str, dict[str, str]] = {}
        for system, query, passage in case.results.contexts.frame.select("system", "query", "passage").iter_rows():
            self.shown.setdefault(system, {})[query] = passage
        self.values = judged(case.results)
        self.against = [name for name in AGAINST if name in self.shown]
        self.won = {(name, other): self._won(name, other) for name in self.values for other in self.against}
        p = holm(np.array([one.p if one.value is not None else np.nan for one in self.won.values()]))
        self.corrected = dict(zip(self.won, map(float, p), strict=True))
        """p of each after Holm; NaN where there is none."""

    def pairs(self, name: str, other: str) -> Floats:
        """A confidence in the relevant passage and in the other one, queries × 2."""
        first, second, values = self.shown[GOLD], self.shown[other], self.values[name]
        rows = [
            [values.get((query, each[query]), np.nan) for each in (first, second)] for query in first if query in second
        ]
        return np.array(rows, dtype=np.float64).reshape(-1, 2)

    def _won(self, name: str, other: str) -> WinRateEstimate:
        study = self.study
        return win_rate(self.pairs(name, other), level=study.level, resamples=study.resamples, seed=study.seed)

    @property
    def lead(self) -> str:
        sizes = [
            f"{NOUNS[other]} ({format_count(len(self.shown[other]), 'query', 'queries')})" for other in self.against
        ]
        return f"{self.case.name}: a relevant passage of each query against {' and '.join(sizes)}, each shown alone."

    @property
    def note(self) -> str:
        held = int(self.case.design["passed over"].sum())
        return (
            f"{self.case.name}: {format_count(held, 'passage')} passed over for holding an accepted answer"
            if held
            else ""
        )

    def table(self) -> pl.DataFrame:
        rows = []
        for (name, other), one in self.won.items():
            known = one.value is not None
            ends = one.interval if one.interval is not None else (None, None)
            chances = (one.p, self.corrected[name, other]) if known else (None, None)
            counts = (one.wins, one.ties, one.losses, one.missing, one.queries)
            rows.append((self.case.name, name, other, one.value, *ends, *chances, *counts, one.reason))
        return pl.DataFrame(rows, schema=RATES, orient="row")

    def _gaps(self) -> list[tuple[str, str, str, PairedComparison]]:
        found = []
        for first, second in KEYED:
            for other in self.against if {first, second} <= set(self.values) else ():
                more, less = (_halves(self.pairs(name, other)) for name in (first, second))
                study = self.study
                one = compare_paired(
                    less, more, "sign", level=study.level, resamples=study.resamples, seed=study.seed, bounds=(0.0, 1.0)
                )
                found.append((first, second, other, one))
        return found

    def gaps(self) -> pl.DataFrame:
        rows = []
        for first, second, other, one in self._gaps():
            ends = one.interval if one.interval is not None else (None, None)
            counts = (one.wins, one.ties, one.losses, one.n)
            p = one.p if one.value is not None else None
            rows.append((self.case.name, first, second, other, one.value, *ends, p, *counts))
        return pl.DataFrame(rows, schema=GAPS, orient="row")

    def left(self) -> list[tuple[str, str, int]]:
        rows = [(self.case.name, reason, number) for reason, number in self.case.left_out.items()]
        return rows + [
            (self.case.name, f"{name} has no value {AGAINST[other]}", one.missing)
            for (name, other), one in self.won.items()
            if one.missing
        ]

    def sentence(self) -> str:
        """The confidence that tells best, or those, and how surely: it was picked among all, so by p after Holm."""
        main = self.against[0]
        known = [name for name in self.values if self.won[name, main].value is not None]
        if not known:
            return f"{self.case.name}: no confidence has a value for both passages of a query."
        rates = {name: round(self.won[name, main].value or 0.0, 12) for name in known}
        best = [name for name in known if rates[name] == max(rates.values())]
        sure = [name for name in best if rates[name] > 0.5 and self.corrected[name, main] < 1 - self.study.level]
        told = sure or best
        # Equally many wins may come with more ties, and so with another p: the least sure of the equals is shown.
        shown = max(told, key=lambda name: self.corrected[name, main])
        figures = f"{AGAINST[main]} {_share(self.won[shown, main], self.corrected[shown, main])}"
        others = [f"{AGAINST[other]} {self._shares(told, other)}" for other in self.against[1:]]
        parts, who, many = ", ".join([figures, *others]), format_list(told, 20), len(told) > 1
        if sure:
            how = "tell them apart best, equally often: they prefer" if many else "tells them apart best: it prefers"
            return f"{self.case.name}: {who} {how} the relevant passage {parts}."
        return (
            f"{self.case.name}: no confidence surely prefers the relevant passage; {who} "
            f"{'come' if many else 'comes'} nearest, {parts}."
        )

    def _shares(self, names: list[str], other: str) -> str:
        """How often some confidences win, each where they differ."""
        told = dict.fromkeys(_share(self.won[name, other], self.corrected[name, other]) for name in names)
        if len(told) == 1:
            return next(iter(told))
        return " and ".join(f"{_share(self.won[n, other], self.corrected[n, other])} with {n}" for n in names)

    def keyed(self) -> str:
        """What key tokens add, in the main comparison."""
        words = []
        for first, second, other, one in self._gaps():
            if other == self.against[0] and one.value is not None:
                more = f"{abs(100 * one.value):.1f} points {'more' if one.value > 0 else 'less'} often than {second}"
                words.append(f"{first} wins {more if one.value else f'as often as {second}'} ({p_words(one.p)})")
        return f"{self.case.name}: {AGAINST[self.against[0]]}, {'; '.join(words)}." if words else ""


def _halves(sides: Floats) -> Floats:
    """1 for a win, ½ for a tie, 0 for a loss; NaN where a value is missing."""
    return np.where(np.isnan(sides).any(axis=1), np.nan, 0.5 + np.sign(sides[:, 0] - sides[:, 1]) / 2)


def _share(one: WinRateEstimate, p: float) -> str:
    if one.value is None:
        return f"in no query ({one.reason})"
    ends = f" [{100 * one.interval.low:.1f}, {100 * one.interval.high:.1f}]" if one.interval is not None else ""
    return (
        f"in {100 * one.value:.1f} %{ends} of {format_count(one.queries, 'query', 'queries')} ({p_words(p)} after Holm)"
    )
