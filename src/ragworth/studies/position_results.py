"""One relevant passage at several positions of one case: the answers, and what metrics see of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ragworth.annotators.token_confidence import MEASURES
from ragworth.comparison import higher_is_better, value_bounds
from ragworth.errors import format_count, format_list
from ragworth.stats.correlation import Measure
from ragworth.stats.within_query import MeanCorrelation, within_query_correlations
from ragworth.studies.arms import (
    ROUNDING,
    Arms,
    Contrast,
    Floats,
    arm_means,
    arms_of,
    arms_table,
    contrast,
    corrected,
    matrix,
    p_words,
)
from ragworth.studies.confidence_judgments import confidences_of
from ragworth.studies.contract import Case
from ragworth.studies.score_rows import DIGITS
from ragworth.studies.sentences import signed

if TYPE_CHECKING:
    from ragworth.studies.position import Position

DRAWN = 7
"""Metrics drawn beside the answers; more would hide each other."""


class PositionCase:
    """The positions of one case."""

    def __init__(self, study: Position, case: Case) -> None:
        self.study, self.case = study, case
        design = case.design.sort("position")
        self.places: list[int] = design["position"].to_list()
        self.arms: Arms = arms_of(case, design["system"].to_list(), study.outcome)
        self.notes: list[str] = []
        self.seen = self._seen()
        worth = self.arms.worth
        names = [f"position {place}" for place in self.places]
        self.contrasts: list[Contrast] = [
            contrast(self.arms.what, (names[0], worth[:, 0]), (names[at], worth[:, at]), study, self.arms.bounds)
            for at in range(1, len(names))
        ]
        if len(names) > 2:
            ends, middle = worth[:, [0, -1]].mean(axis=1), worth[:, 1:-1].mean(axis=1)
            self.contrasts.append(
                contrast(
                    self.arms.what, ("the two ends", ends), ("the positions between", middle), study, self.arms.bounds
                )
            )

    def _seen(self) -> dict[str, Floats]:
        """Each metric, and the model's confidence where it was asked for: queries × positions.

        One that has no value at some position cannot be followed through the context: it is left out, and a note says
        so.
        """
        case, arms = self.case, self.arms
        found = {
            str(metric): matrix(part, arms.names, arms.queries)
            for (metric,), part in case.results.scores.frame.group_by("metric", maintain_order=True)
        }
        found |= confidences_of(case, arms.names, arms.queries)
        for metric, values in found.items():
            lost = [str(place) for place, gone in zip(self.places, np.isnan(values).T, strict=True) if gone.all()]
            if lost:
                where = f"position{'s' if len(lost) > 1 else ''} {format_list(lost, 12)}"
                where = where if len(lost) < len(self.places) else "any position"
                self.notes.append(f"{case.name}: {metric} has no value at {where}, and is left out")
        return {metric: values for metric, values in found.items() if not np.isnan(values).all(axis=0).any()}

    def _turned(self, metric: str) -> Floats:
        """A metric's values, higher is better, without what rounding makes of sums of the same passages."""
        confidence = metric in MEASURES
        sign = 1.0 if confidence or higher_is_better(metric) else -1.0
        return np.round(sign * self.seen[metric], DIGITS)

    def table(self) -> pl.DataFrame:
        shown = dict(zip(self.arms.names, self.places, strict=True))
        return arms_table(self.case, "position", self.arms, self.study, shown)

    def metrics(self) -> pl.DataFrame:
        rows: list[dict[str, Any]] = []
        for metric, values in self.seen.items():
            for place, mean in zip(self.places, arm_means(values, self.study, value_bounds(metric)), strict=True):
                ends = mean.span if mean.span is not None else (None, None)
                row = {"case": self.case.name, "metric": metric, "position": place, "mean": mean.value}
                rows.append(row | {"low": ends[0], "high": ends[1], "queries": mean.n})
        numbers = dict.fromkeys(("mean", "low", "high"), pl.Float64)
        schema = {"case": pl.String, "metric": pl.String, "position": pl.Int64, **numbers, "queries": pl.Int64}
        return pl.DataFrame(rows, schema=schema)

    def blind(self, metric: str) -> bool:
        values = self.seen[metric]
        known = values[~np.isnan(values).all(axis=1)]
        return bool((np.nanmax(known, axis=1) - np.nanmin(known, axis=1) <= ROUNDING).all())

    def sight(self) -> pl.DataFrame:
        """Which metrics see the position, and whether what they see is what the model does."""
        measure: Measure = self.study.measure  # type: ignore[assignment]
        count, places = self.arms.values.shape
        unit = np.repeat(np.arange(count), places)
        rows: list[tuple[Any, ...]] = []
        found: list[MeanCorrelation] = []
        if self.seen:
            found = within_query_correlations(
                np.stack([self._turned(metric).reshape(-1) for metric in self.seen], axis=1),
                self.arms.values.reshape(-1),
                unit,
                measure=measure,
                level=self.study.level,
                resamples=self.study.resamples,
                seed=self.study.seed,
            )
        for metric, one in zip(self.seen, found, strict=True):
            ends = one.interval if one.interval is not None else (None, None)
            why = one.reason or ", ".join(f"{reason}: {number:,}" for reason, number in one.left_out.items())
            blind = self.blind(metric)
            left = sum(one.left_out.values())
            rows.append((self.case.name, metric, blind, one.value, *ends, one.queries, left, why))
        schema = {"case": pl.String, "metric": pl.String, "blind": pl.Boolean}
        schema |= dict.fromkeys(("correlation", "low", "high"), pl.Float64)
        return pl.DataFrame(
            rows, schema=schema | {"queries": pl.Int64, "left out": pl.Int64, "why": pl.String}, orient="row"
        )

    def drawn(self) -> tuple[pl.DataFrame, int]:
        """The metrics to draw beside the answers, those that agree as one line; and how many are not drawn."""
        scored = set(self.case.results.scores.frame["metric"])
        same: dict[tuple[float, ...], list[str]] = {}
        for metric, values in self.seen.items():
            if metric in scored:
                same.setdefault(tuple(round(float(each), 9) for each in np.nanmean(values, axis=0)), []).append(metric)
        groups = list(same.values())[:DRAWN]
        names = {group[0]: format_list(group, 4) for group in groups}
        frame = self.metrics().filter(pl.col("metric").is_in(list(names)))
        none = pl.lit(None, dtype=pl.Float64)
        line = frame.select(
            pl.col("metric").replace(names).alias("line"),
            pl.col("position").alias("place"),
            pl.col("mean").alias("value"),
            none.alias("low"),
            none.alias("high"),
            pl.col("queries").alias("n"),
        )
        return line, len(self.seen) - sum(map(len, groups))

    def sentences(self) -> list[str]:
        arms, p, alpha = self.arms, corrected(self.contrasts), 1 - self.study.level
        average = [round(float(each), 12) for each in arms.worth.mean(axis=0)]
        best, worst = average.index(max(average)), average.index(min(average))
        sure = [(one, each) for one, each in zip(self.contrasts, p, strict=True) if each < alpha]
        spread = (
            f"{arms.what} {arms.say(average[best])} at position {self.places[best]}, {arms.say(average[worst])} at "
            f"position {self.places[worst]}"
            if average[best] > average[worst]
            else f"{arms.what} {arms.say(average[0])} at every position"
        )
        over = f"over {format_count(len(arms.queries), 'query', 'queries')}"
        if not sure:
            least = [one.detectable for one in self.contrasts if one.detectable is not None]
            words = [
                f"{self.case.name}: it cannot be told whether position matters: {spread}, {over}; smallest Wilcoxon "
                f"{p_words(min(p))} after Holm{arms.shows(max(least, default=None))}."
            ]
        else:
            words = [f"{self.case.name}: position matters: {spread}, {over}."]
            words += [
                f"{self.case.name}: {arms.what} at {one.first} is {arms.gap(one.found.value or 0.0)} "
                f"{'higher' if (one.found.value or 0.0) > 0 else 'lower'} than at {one.second} "
                f"{arms.span(one.found.interval)}, Wilcoxon {p_words(each)} after Holm."
                for one, each in sure
            ]
        blind = [metric for metric in self.seen if self.blind(metric)]
        sighted = [metric for metric in self.seen if metric not in blind]
        if blind:
            words.append(
                f"{self.case.name}: {format_list(blind, 20)} {'are' if len(blind) > 1 else 'is'} blind to position."
            )
        if sighted:
            ends = [np.nanmean(self.seen[metric], axis=0)[[0, -1]] for metric in sighted]
            told = [f"{m} ({signed(float(a))} → {signed(float(b))})" for m, (a, b) in zip(sighted, ends, strict=True)]
            words.append(
                f"{self.case.name}: from position {self.places[0]} to {self.places[-1]} {format_list(told, 20)} change."
            )
        return words
