"""What stands beside the relevant passage and what became of it, case by case: tables and sentences of ``noise``."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

import numpy as np
import polars as pl

from ragworth.comparison import higher_is_better
from ragworth.errors import format_count, format_list
from ragworth.stats.concordance import Concordance, concordance
from ragworth.stats.paired import PairedComparison, Test, compare_paired, holm
from ragworth.stats.power import detectable_difference
from ragworth.studies.arms import SHARE, Floats, arm_means, arms_of, arms_table, left_out_rows_of, matrix, p_words
from ragworth.studies.confidence_judgments import confidences_of
from ragworth.studies.contract import Case, Study
from ragworth.studies.sentences import between, signed
from ragworth.tables import ANSWERED_STATUSES, OK
from ragworth.tasks.text_lookup import TextLookup
from ragworth.text_match.overlap import token_f1

RANDOM, RETRIEVED = "with random", "with retrieved"
SYSTEMS = [RANDOM, RETRIEVED]

TAUS = {"case": pl.String, "confidence": pl.String} | {
    **dict.fromkeys(("tau", "low", "high", "p", "p_holm"), pl.Float64),
    **dict.fromkeys(("concordant", "discordant", "tied"), pl.Int64),
    **dict.fromkeys(("right", "macro F1"), pl.Float64),
    "missing": pl.Int64,
    "why": pl.String,
}
GAPS = {"case": pl.String, "measure": pl.String} | {
    **dict.fromkeys(("difference", "low", "high", "p"), pl.Float64),
    **dict.fromkeys(("random better", "retrieved better", "same", "queries"), pl.Int64),
    "detectable": pl.Float64,
}


class NoiseCase:
    """The two contexts of each query of one case."""

    def __init__(self, study: Study, case: Case, outcome: str | None, correct: float) -> None:
        self.study, self.case = study, case
        self.arms = arms_of(case, SYSTEMS, outcome)
        self.correct = (self.arms.values >= correct).astype(np.float64)
        self.f1 = f1_of(case, self.arms.queries)
        self.sure = confidences_of(case, SYSTEMS, self.arms.queries) | self._metrics()
        self.found = {name: self._concordance(values) for name, values in self.sure.items()}
        p = holm(np.array([one.p if one.value is not None else np.nan for one in self.found.values()]))
        self.corrected = dict(zip(self.found, map(float, p), strict=True))
        """p of each confidence after Holm; NaN where there is none."""

    def _metrics(self) -> dict[str, Floats]:
        """Scores of the contexts, if there are any, as further confidences."""
        frame = self.case.results.scores.frame.filter(pl.col("status") == OK)
        made = {}
        for (metric,), part in frame.group_by("metric", maintain_order=True):
            sign = 1.0 if higher_is_better(str(metric)) else -1.0
            made[str(metric)] = sign * matrix(part, SYSTEMS, self.arms.queries)
        return made

    def _concordance(self, values: Floats) -> Concordance:
        study = self.study
        return concordance(values, self.correct, level=study.level, resamples=study.resamples, seed=study.seed)

    @property
    def lead(self) -> str:
        n = int(self.case.design["n"][0])
        return (
            f"{self.case.name}: for {format_count(len(self.arms.queries), 'query', 'queries')} a relevant passage "
            "among "
            f"{format_count(n, 'random passage')}, and at the same place among {n:,} retrieved ones without the answer."
        )

    @property
    def note(self) -> str:
        held = int(self.case.design["passed over"].sum())
        return (
            f"{self.case.name}: {format_count(held, 'passage')} passed over for holding an accepted answer"
            if held
            else ""
        )

    def answers(self) -> pl.DataFrame:
        """What became of the answers from both contexts."""
        table = arms_table(self.case, "context", self.arms, self.study, {name: name for name in SYSTEMS})
        f1 = arm_means(self.f1, self.study, SHARE)
        ends = [each.span if each.span is not None else (None, None) for each in f1]
        columns = {"f1": [each.value for each in f1], "f1 low": [e[0] for e in ends], "f1 high": [e[1] for e in ends]}
        return table.with_columns(pl.Series(name, values, dtype=pl.Float64) for name, values in columns.items())

    def _gap(self, measure: str) -> PairedComparison:
        study, values = self.study, self.correct if measure == "correct" else self.f1
        test: Test = "sign" if measure == "correct" else "randomisation"
        return compare_paired(
            values[:, 1],
            values[:, 0],
            test,
            level=study.level,
            resamples=study.resamples,
            seed=study.seed,
            bounds=SHARE,
        )

    def gaps(self) -> pl.DataFrame:
        """Random less retrieved."""
        rows = []
        for measure, values in (("correct", self.correct), ("token F1", self.f1)):
            one = self._gap(measure)
            ends = one.interval if one.interval is not None else (None, None)
            least = detectable_difference(values[:, 0] - values[:, 1], alpha=1 - self.study.level).value
            p = one.p if one.value is not None else None
            counts = (one.wins, one.losses, one.ties, one.n)
            rows.append((self.case.name, measure, one.value, *ends, p, *counts, least))
        return pl.DataFrame(rows, schema=GAPS, orient="row")

    def taus(self) -> pl.DataFrame:
        """τ of each confidence."""
        rows = []
        for name, one in self.found.items():
            known = one.value is not None
            ends = one.interval if one.interval is not None else (None, None)
            told = one.concordant + one.discordant
            share = one.concordant / told if told else None
            chances = (one.p, self.corrected[name]) if known else (None, None)
            counts = (one.concordant, one.discordant, one.tied)
            f1 = macro_f1(self.sure[name], self.correct)
            rows.append((self.case.name, name, one.value, *ends, *chances, *counts, share, f1, one.missing, one.reason))
        return pl.DataFrame(rows, schema=TAUS, orient="row")

    def left(self) -> list[tuple[str, str, int]]:
        """Queries that are in no count, and those that are in no τ."""
        even = int((self.correct[:, 0] == self.correct[:, 1]).sum())
        rows = left_out_rows_of(self.case, self.arms)
        rows += [(self.case.name, "both answers correct, or neither: not in τ", even)] if even else []
        gone = {name: one.missing for name, one in self.found.items() if one.missing}
        return rows + [(self.case.name, f"{name} has no value for both contexts", n) for name, n in gone.items()]

    def hurt(self) -> str:
        """Which passages hurt more."""
        one, name = self._gap("correct"), self.case.name
        shares = [f"{100 * float(self.correct[:, at].mean()):.1f} %" for at in (0, 1)]
        words = f"{name}: {shares[0]} of the answers are correct with random passages, {shares[1]} with retrieved ones"
        assert one.value is not None
        if one.p < 1 - self.study.level:
            which = "retrieved" if one.value > 0 else "random"
            verdict = f"{which} passages hurt more, by {abs(100 * one.value):.1f} points"
        else:
            verdict = "the difference may be chance"
        counts = f"random better in {one.wins:,}, retrieved in {one.losses:,}, same in {one.ties:,}"
        return f"{words}: {verdict} ({p_words(one.p)}; {counts})."

    def aware(self) -> str:
        """Which confidence goes with the outcome, and how surely: it was picked among all, so by p after Holm."""
        known = {name: one for name, one in self.found.items() if one.value is not None}
        differ = int((self.correct[:, 0] != self.correct[:, 1]).sum())
        pairs = format_count(differ, "query", "queries")
        if not known:
            why = next((one.reason for one in self.found.values()), "there is none")
            return f"{self.case.name}: no confidence can be held against the answers of {pairs} that differ: {why}."
        taus = {name: round(one.value or 0.0, 12) for name, one in known.items()}
        best = [name for name in taus if taus[name] == max(taus.values())]
        sure = [name for name in best if taus[name] > 0 and self.corrected[name] < 1 - self.study.level]
        told = sure or best
        # Equal τ may come from fewer queries, and so with another p: the least sure of the equals is shown.
        shown = max(told, key=lambda name: self.corrected[name])
        one, who, many = known[shown], format_list(told, 20), len(told) > 1
        words = f"{who} {'go' if many else 'goes'} with the correct one best"
        if not sure:
            words = f"no confidence surely goes with the correct one; {who} {'come' if many else 'comes'} nearest"
        figures = (
            f"τ = {signed(one.value or 0.0)} {between(one.interval)} ({p_words(self.corrected[shown])} after Holm)"
        )
        return f"{self.case.name}: of {pairs} in which one answer alone is correct, {words}: {figures}."


def f1_of(case: Case, queries: Sequence[str]) -> Floats:
    """Token F1 of the answers, queries × contexts, the mean over repeats; NaN where there is no text to compare."""
    texts, found = TextLookup(case.results.collection), dict[tuple[str, str], list[float]]()
    if case.results.answers is not None:
        good = case.results.answers.frame.filter(
            pl.col("status").is_in(ANSWERED_STATUSES) & pl.col("text").is_not_null()
        )
        for system, query, text in good.select("system", "query", "text").iter_rows():
            if accepted := texts.known_answers(query):
                found.setdefault((system, query), []).append(token_f1(text, accepted))
    rows = [(system, query, fmean(values)) for (system, query), values in found.items()]
    schema = {"system": pl.String, "query": pl.String, "value": pl.Float64}
    return matrix(pl.DataFrame(rows, schema=schema, orient="row"), SYSTEMS, queries)


def macro_f1(sure: Floats, correct: Floats) -> float | None:
    """F1 of telling by the higher value which of two contexts led to the correct answer, the mean of both kinds.

    Over pairs of which one is correct and the values differ. None where one kind is never told, or never true.
    """
    there = ~np.isnan(sure).any(axis=1) & (correct[:, 0] != correct[:, 1]) & (sure[:, 0] != sure[:, 1])
    told, true = sure[there, 0] > sure[there, 1], correct[there, 0] > correct[there, 1]
    kinds = [(told, true), (~told, ~true)]
    if any(not said.any() or not was.any() for said, was in kinds):
        return None
    return float(np.mean([2 * (said & was).sum() / (said.sum() + was.sum()) for said, was in kinds]))
