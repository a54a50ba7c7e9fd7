"""The contexts of one case by K/N_p: parts, cells, and differences between metrics."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ragworth.errors import MetricError, format_count, format_list
from ragworth.metrics.parsing import parse
from ragworth.report.study.findings import QUERIES
from ragworth.stats.correlation import correlation
from ragworth.stats.paired import holm
from ragworth.stats.pooled import CorrelationGap, PooledCorrelation, pooled_correlations, pooled_gaps
from ragworth.studies.contract import MEASURES, Case
from ragworth.studies.score_rows import ScoreRows, rows_of
from ragworth.studies.sentences import between, measure_words, signed
from ragworth.studies.top_k import CONTEXTS, TopK, relevant_of, retrievers_of, sizes_of

Bools = npt.NDArray[np.bool_]

ALL = "all systems"
PARTS = ("narrow", "wide", "all")
NAMES = {-1.0: "wrong", 0.0: "abstained", 0.5: "partial", 1.0: "correct"}
KINDS, BINS = 6, 5
"""Outcomes of up to six different values are told apart; others are parted into five bins."""


class ContextSegment(NamedTuple):
    """Some of the contexts of a case: those of a retriever (or of all), narrow, wide, all, or of one ratio."""

    retriever: str
    place: str
    keep: Bools


class SegmentCorrelations(NamedTuple):
    """The correlations of a part, and the differences between them."""

    part: ContextSegment
    found: list[PooledCorrelation]
    gaps: list[CorrelationGap]


class SegmentedCase:
    """The contexts of one case, each with its retriever and its K/N_p."""

    def __init__(self, study: TopK, case: Case) -> None:
        self.study, self.case = study, case
        rows = rows_of(case.results, study.outcome, name=case.name)
        relevant, shown, names = (
            relevant_of(case, study.level_relevant),
            sizes_of(case),
            retrievers_of(case, study.same),
        )
        there = np.array([relevant.get(query, 0) > 0 for query in rows.queries], dtype=bool)
        self.without = len({query for query, known in zip(rows.queries, there, strict=True) if not known})
        self.rows: ScoreRows = rows.only(there)
        pairs = list(zip(self.rows.systems, self.rows.queries, strict=True))
        self.retriever = np.array([names[system] for system, _ in pairs], dtype=object)
        ratios = [Fraction(shown.get(pair, 0), relevant[pair[1]]) for pair in pairs]
        self.wide = np.array([ratio >= 1 for ratio in ratios], dtype=bool)
        self.ratio = np.array([float(round(ratio, study.digits)) for ratio in ratios])
        self.retrievers = list(dict.fromkeys(self.retriever))
        self.pairs = self._pairs()
        self.cells, self.small = self._cells()
        self.found = [self._of(part) for part in (*self._parts(), *self.cells)]

    def _parts(self) -> Iterator[ContextSegment]:
        every = np.ones(len(self.wide), dtype=bool)
        for retriever, mine in self.by_retriever():
            for name, where in zip(PARTS, (~self.wide, self.wide, every), strict=True):
                if (mine & where).any():
                    yield ContextSegment(retriever, name, mine & where)

    def by_retriever(self) -> list[tuple[str, Bools]]:
        each = [(str(name), np.asarray(self.retriever == name)) for name in self.retrievers]
        return [(ALL, np.ones(len(self.wide), dtype=bool)), *each] if len(each) > 1 else each

    def _cells(self) -> tuple[list[ContextSegment], list[ContextSegment]]:
        """Cells that have contexts enough, and those that have not."""
        cells = [
            ContextSegment(retriever, self.written(ratio), mine & (self.ratio == ratio))
            for retriever, mine in self.by_retriever()
            for ratio in np.unique(self.ratio)
        ]
        size = self.study.least
        return [one for one in cells if one.keep.sum() >= size], [one for one in cells if 0 < one.keep.sum() < size]

    def written(self, ratio: float) -> str:
        return f"{ratio:.{self.study.digits}f}"

    def _pairs(self) -> list[tuple[int, int]]:
        """The pairs to compare; where none of those that are wanted is there, the first metric with the others."""
        bare = {_bare(name): at for at, name in reversed(list(enumerate(self.rows.metrics)))}
        exact = {name: at for at, name in enumerate(self.rows.metrics)}
        known = bare | exact
        wanted = [(known[a], known[b]) for a, b in self.study.pairs() if a in known and b in known]
        return wanted or [(at, 0) for at in range(1, min(5, len(self.rows.metrics)))]

    def _of(self, part: ContextSegment) -> SegmentCorrelations:
        study, rows = self.study, self.rows.only(part.keep)
        how: dict[str, Any] = {
            "measure": study.measure,
            "level": study.level,
            "resamples": study.resamples,
            "seed": study.seed,
        }
        found = pooled_correlations(rows.values, rows.outcome, rows.units, **how)
        gaps = pooled_gaps(rows.values, rows.outcome, rows.units, pairs=self.pairs, **how) if self.pairs else []
        return SegmentCorrelations(part, found, gaps)

    def table(self) -> pl.DataFrame:
        """Every metric in every part and cell, by the chosen correlation with its interval, and by all four."""
        made = []
        for part, found, _ in self.found:
            rows = self.rows.only(part.keep)
            for at, one in enumerate(found):
                others = {
                    measure_words(measure): correlation(rows.values[:, at], rows.outcome, measure).value  # type: ignore[arg-type]
                    for measure in MEASURES
                }
                made.append(
                    {"case": self.case.name, "system": part.retriever, "K/N_p": part.place, "metric": rows.metrics[at]}
                    | {"correlation": one.value, "low": one.interval.low if one.interval else None}
                    | {"high": one.interval.high if one.interval else None}
                    | others
                    | {"contexts": one.n, "queries": one.queries, "why": one.reason}
                )
        numbers = ("correlation", "low", "high", *map(measure_words, MEASURES))
        schema = dict.fromkeys(("case", "system", "K/N_p", "metric"), pl.String) | dict.fromkeys(numbers, pl.Float64)
        return pl.DataFrame(made, schema={**schema, "contexts": pl.Int64, "queries": pl.Int64, "why": pl.String})

    def gaps(self) -> pl.DataFrame:
        """One metric's correlation less another's, in every part and cell; Holm over the places of a pair."""
        made = []
        for number, (a, b) in enumerate(self.pairs):
            ones = [(cell.part, cell.gaps[number]) for cell in self.found]
            p = holm(np.array([np.nan if one.p is None else one.p for _, one in ones]))
            for (part, one), each in zip(ones, p, strict=True):
                made.append(
                    {
                        "case": self.case.name,
                        "system": part.retriever,
                        "K/N_p": part.place,
                        "first": self.rows.metrics[a],
                        "second": self.rows.metrics[b],
                        "difference": one.value,
                        "low": one.interval.low if one.interval else None,
                        "high": one.interval.high if one.interval else None,
                        "p": one.p,
                        "p_holm": None if np.isnan(each) else float(each),
                        "contexts": one.n,
                        "queries": one.queries,
                    }
                )
        texts = dict.fromkeys(("case", "system", "K/N_p", "first", "second"), pl.String)
        numbers = dict.fromkeys(("difference", "low", "high", "p", "p_holm"), pl.Float64)
        return pl.DataFrame(made, schema={**texts, **numbers, "contexts": pl.Int64, "queries": pl.Int64})

    def outcomes(self) -> pl.DataFrame:
        """What became of the answers in each cell."""
        kinds, labels = kinds_of(self.rows.outcome)
        made = [
            (
                self.case.name,
                part.retriever,
                part.place,
                label,
                float((kinds[part.keep] == at).mean()),
                int((kinds[part.keep] == at).sum()),
            )
            for part in self.cells
            for at, label in enumerate(labels)
        ]
        schema = dict.fromkeys(("case", "system", "K/N_p", "outcome"), pl.String)
        return pl.DataFrame(made, schema={**schema, "share": pl.Float64, "contexts": pl.Int64}, orient="row")

    def left(self) -> Iterator[tuple[str, str, int, str]]:
        for reason, number in self.case.left_out.items():
            unit = "contexts" if reason.endswith(CONTEXTS) else QUERIES
            yield self.case.name, reason.removesuffix(CONTEXTS), number, unit
        if self.without:
            yield self.case.name, "no relevant passage", self.without, QUERIES
        kept = np.zeros(len(self.wide), dtype=bool)
        for part in self.cells:
            kept |= part.keep
        lost = set(self.rows.queries) - {self.rows.queries[at] for at in np.flatnonzero(kept)}
        if lost:
            yield self.case.name, f"in no cell of {self.study.least:,} contexts or more", len(lost), QUERIES

    def best(self, place: str) -> tuple[int, PooledCorrelation] | None:
        """The metric with the highest correlation over the contexts of all systems in a part."""
        first = self.by_retriever()[0][0]
        for part, found, _ in self.found:
            if part.place == place and part.retriever == first:
                known = [(round(one.value, 12), -at) for at, one in enumerate(found) if one.value is not None]
                return (-max(known)[1], found[-max(known)[1]]) if known else None
        return None

    def sentence(self, place: str) -> str:
        """Which metric goes best with the outcome in a part, and what is significantly different."""
        found = self.best(place)
        words = {"narrow": "K < N_p", "wide": "K ≥ N_p", "all": "all contexts"}[place]
        where = f"{self.case.name}, {words}: "
        if found is None:
            return f"{where}no metric has a correlation with the outcome."
        at, one = found
        said = (
            f"{where}{self.rows.metrics[at]} goes best with the outcome, {measure_words(self.study.measure)} "
            f"{signed(one.value or 0.0)} {between(one.interval)} over {format_count(one.n, 'context')} of "
            f"{format_count(one.queries, 'query', 'queries')}."
        )
        first = self.by_retriever()[0][0]
        mine = self.gaps().filter(
            (pl.col("system") == first) & (pl.col("K/N_p") == place) & (pl.col("p_holm") < 1 - self.study.level)
        )
        sure = [
            f"{a} {'above' if gap > 0 else 'below'} {b} by {signed(abs(gap))}"
            for a, b, gap in mine.select("first", "second", "difference").iter_rows()
        ]
        return said + (f" Significantly different: {format_list(sure, 9)}." if sure else "")


def _bare(name: str) -> str:
    """A metric's written form without its cutoff, and without what counts as relevant, which is the same for all."""
    try:
        metric = parse(name)
    except MetricError:
        return re.sub(r"@\d+$", "", name)  # a measure of another package
    return str(replace(metric, cutoff=None, parameters=tuple(each for each in metric.parameters if each[0] != "rel")))


def kinds_of(outcome: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Which kind each outcome is of, and their names, lowest first."""
    values, place = np.unique(outcome, return_inverse=True)
    if len(values) <= KINDS:
        graded = set(values) <= set(NAMES)
        return place.reshape(-1), [NAMES[v] if graded else f"{v:g}" for v in values]
    low, high = (0.0, 1.0) if values[0] >= 0 and values[-1] <= 1 else (float(values[0]), float(values[-1]))
    edges = np.linspace(low, high, BINS + 1)
    place = np.clip(np.searchsorted(edges, outcome, side="right") - 1, 0, BINS - 1)
    return place, [f"{a:.2g}–{b:.2g}" for a, b in pairwise(edges)]
