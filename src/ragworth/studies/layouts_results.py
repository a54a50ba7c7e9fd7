"""Models as choosers of contexts and as readers of each other's choices: tables and sentences of ``layouts``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ragworth.errors import InputError, format_count, format_list
from ragworth.report.study.findings import QUERIES
from ragworth.stats.paired import PairedComparison, compare_paired, holm
from ragworth.stats.power import detectable_difference
from ragworth.studies.arms import SHARE, Floats, arm_means, arms_of, left_out_rows_of, p_words
from ragworth.studies.confidence_judgments import confidences_of
from ragworth.studies.contract import Case, Study

OF_MEASURE = "queries of one measure"
"""What is counted where a query is left out of one measure, and stays in others."""
RANDOM, BEST = "(at random)", "(best possible)"
"""What stands in the place of a chooser: a layout at random, and the one that led to a correct answer if any did."""

ACCURACY = {"case": pl.String, "measure": pl.String, "chosen by": pl.String, "answered by": pl.String} | {
    **dict.fromkeys(("accuracy", "low", "high", "less random", "less low", "less high", "p", "p_holm"), pl.Float64),
    "queries": pl.Int64,
    "tied": pl.Int64,
    "detectable": pl.Float64,
}
OWN = {"case": pl.String, "measure": pl.String, "answered by": pl.String, "other": pl.String} | {
    **dict.fromkeys(("own less other", "low", "high", "p", "p_holm"), pl.Float64),
    **dict.fromkeys(("wins", "ties", "losses", "queries"), pl.Int64),
}


class ChooserCell(NamedTuple):
    """What became of one chooser's contexts with one reader: correct or not, query by query."""

    measure: str
    chooser: str
    reader: str
    values: Floats
    tied: int


class Choosers:
    """The models of one case as choosers and readers."""

    def __init__(self, study: Study, case: Case, measure: str, outcome: str | None, correct: float) -> None:
        self.study, self.case, self.measure = study, case, measure
        self.models = case.design["model"].unique(maintain_order=True).to_list()
        systems = case.design["system"].to_list()
        if case.design.group_by("model").len()["len"].n_unique() != 1 or len(self.models) < 2:
            raise InputError(f"{case.name}: the models have not the same layouts", expected="two models or more")
        self.arms = arms_of(case, systems, outcome)
        shape = (len(self.arms.queries), len(self.models), -1)
        self.correct = (self.arms.values >= correct).astype(np.float64).reshape(shape)
        sure = confidences_of(case, systems, self.arms.queries)
        self.sure = {name: values.reshape(shape) for name, values in sure.items()}
        self.cells = {name: list(self._cells(name)) for name in self.sure}

    def known(self, measure: str) -> npt.NDArray[np.bool_]:
        """The queries in which every model is more or less sure of every layout."""
        return np.asarray(~np.isnan(self.sure[measure]).any(axis=(1, 2)))

    def _cells(self, measure: str) -> Iterator[ChooserCell]:
        there = self.known(measure)
        sure, correct = self.sure[measure][there], self.correct[there]
        most = sure == sure.max(axis=2, keepdims=True) if len(sure) else sure.astype(bool)
        share = most / np.maximum(most.sum(axis=2, keepdims=True), 1)
        for at, chooser in enumerate(self.models):
            tied = int((most[:, at].sum(axis=1) > 1).sum())
            for to, reader in enumerate(self.models):
                yield ChooserCell(measure, chooser, reader, (share[:, at] * correct[:, to]).sum(axis=1), tied)
        for to, reader in enumerate(self.models):
            yield ChooserCell(measure, RANDOM, reader, correct[:, to].mean(axis=1), 0)
            yield ChooserCell(measure, BEST, reader, correct[:, to].max(axis=1, initial=0.0), 0)

    def cell(self, measure: str, chooser: str, reader: str) -> Floats:
        return next(each.values for each in self.cells[measure] if (each.chooser, each.reader) == (chooser, reader))

    def _paired(self, first: Floats, second: Floats) -> PairedComparison:
        study = self.study
        return compare_paired(
            second, first, level=study.level, resamples=study.resamples, seed=study.seed, bounds=SHARE
        )

    @property
    def lead(self) -> str:
        layouts, queries = self.correct.shape[2], format_count(len(self.arms.queries), "query", "queries")
        models = format_list(self.models, 12)
        return f"{self.case.name}: {layouts} layouts of the same passages for each of {queries}; {models}."

    @cached_property
    def table(self) -> pl.DataFrame:
        """A row for each chooser and reader, by measure."""
        rows = []
        for measure, cells in self.cells.items():
            found = [
                self._paired(each.values, self.cell(measure, RANDOM, each.reader))
                if each.chooser in self.models
                else None
                for each in cells
            ]
            p = _holm(found)
            for each, one, corrected in zip(cells, found, p, strict=True):
                (mean,) = arm_means(each.values[:, None], self.study, SHARE)
                ends = mean.span if mean.span is not None else (None, None)
                gap = _gap(one, corrected)
                least = None
                if one is not None:
                    less = each.values - self.cell(measure, RANDOM, each.reader)
                    least = detectable_difference(less, alpha=1 - self.study.level).value
                names = (self.case.name, measure, each.chooser, each.reader)
                rows.append((*names, mean.value, *ends, *gap, mean.n, each.tied, least))
        return pl.DataFrame(rows, schema=ACCURACY, orient="row")

    @cached_property
    def own(self) -> pl.DataFrame:
        """Each model's own choice against each other model's, both given to it."""
        rows = []
        for measure in self.cells:
            pairs = [(reader, other) for reader in self.models for other in self.models if other != reader]
            found = [
                self._paired(self.cell(measure, reader, reader), self.cell(measure, other, reader))
                for reader, other in pairs
            ]
            for (reader, other), one, p in zip(pairs, found, _holm(found), strict=True):
                counts = (one.wins, one.ties, one.losses, one.n)
                rows.append((self.case.name, measure, reader, other, *_gap(one, p), *counts))
        return pl.DataFrame(rows, schema=OWN, orient="row")

    def sentences(self) -> Iterator[str]:
        """What each model makes of its own choice."""
        measure, name, level = self.measure, self.case.name, self.study.level
        if measure not in self.cells or not self.known(measure).any():
            yield f"{name}: no query has a {measure} of every layout by every model."
            return
        table, own = (frame.filter(pl.col("measure") == measure) for frame in (self.table, self.own))
        for reader in self.models:
            mine = {row["chosen by"]: row for row in table.filter(pl.col("answered by") == reader).to_dicts()}
            shares = {chooser: f"{100 * row['accuracy']:.1f} %" for chooser, row in mine.items()}
            parts = [_verdict(mine[reader]["less random"], mine[reader]["p_holm"], level, "one at random")]
            for each in own.filter(pl.col("answered by") == reader).to_dicts():
                other = f"the choice of {each['other']} ({shares[each['other']]})"
                parts.append(_verdict(each["own less other"], each["p_holm"], level, other))
            yield (
                f"{name}: {reader} answers {shares[reader]} correctly from the context it is surest of, "
                f"{shares[RANDOM]} from one at random and {shares[BEST]} at best: {'; '.join(parts)}."
            )

    def left(self) -> Iterator[tuple[str, str, int, str]]:
        for row in left_out_rows_of(self.case, self.arms):
            yield *row, QUERIES
        for measure in self.cells:
            if gone := int((~self.known(measure)).sum()):
                yield self.case.name, f"{measure} has no value of every layout by every model", gone, OF_MEASURE


def _holm(found: Sequence[PairedComparison | None]) -> list[float]:
    """p-values corrected by Holm; NaN where there is no comparison."""
    p = [one.p if one is not None and one.value is not None else np.nan for one in found]
    return [float(each) for each in holm(np.array(p))]


def _gap(one: PairedComparison | None, corrected: float) -> tuple[float | None, ...]:
    """Difference, interval, p and p after Holm."""
    if one is None or one.value is None:
        return (None,) * 5
    low, high = one.interval if one.interval is not None else (None, None)
    return one.value, low, high, one.p, corrected


def _verdict(difference: float, p: float, level: float, other: str) -> str:
    if p < 1 - level:
        word = "better" if difference > 0 else "worse"
        return f"{word} than from {other} by {abs(100 * difference):.1f} points ({p_words(p)})"
    return f"neither better nor worse than from {other}, as far as can be told ({p_words(p)})"
