"""Correlations over the rows of each part of the queries, averaged over the parts."""

from __future__ import annotations

import numpy as np

from ragworth.fitting.rows import Bools, FittingRows, Floats, Ints
from ragworth.stats.correlation import Measure, Resampler, make_resampler
from ragworth.stats.pooled import JACKKNIFED
from ragworth.stats.resampling import resample_counts


class FoldCorrelations:
    """The correlation of columns (rows × columns) with the outcome in each part of the queries, averaged.

    A part in which some column has none is in no average, so that all columns are compared over the same parts. Queries
    are drawn from all parts at once, and stay in their part.
    """

    def __init__(self, columns: Floats, rows: FittingRows, part: Ints, measure: Measure) -> None:
        self.queries = rows.queries
        self.each: list[tuple[Bools, Resampler]] = []
        for fold in np.unique(part):
            here = part == fold
            mine = np.isin(np.arange(rows.queries), rows.query[here])
            unit = np.unique(rows.query[here], return_inverse=True)[1].reshape(-1)
            self.each.append((mine, make_resampler(measure, columns[here], rows.outcome[here], unit)))
        self.values: Floats = self._averaged(np.ones((1, rows.queries)))[0]
        """The average of each column; NaN where there is none."""

    def draws(self, resamples: int, seed: int) -> Floats:
        """The averages in bootstrap resamples of the queries (resamples × columns)."""
        block = min(maker.block for _, maker in self.each)
        return np.concatenate(
            [self._averaged(counts) for counts in resample_counts(self.queries, resamples, seed, block)]
        )

    def left_out(self) -> Floats:
        """The averages with each query left out in turn, where they are not too many for that to matter."""
        none = np.empty((0, len(self.values)))
        return self._averaged(1.0 - np.eye(self.queries)) if self.queries <= JACKKNIFED else none

    def _averaged(self, counts: Floats) -> Floats:
        """The averages for each way to count the queries (ways × queries)."""
        found = np.stack([self._part(maker, counts[:, mine]) for mine, maker in self.each])
        there = ~np.isnan(found).any(axis=2, keepdims=True)
        number = there.sum(axis=0)
        total = np.where(there, found, 0.0).sum(axis=0)
        return np.where(number > 0, total / np.maximum(number, 1), np.nan)

    @staticmethod
    def _part(maker: Resampler, counts: Floats) -> Floats:
        """The correlations in one part; NaN where none of its queries was drawn."""
        found = np.full((len(counts), maker.columns.shape[1]), np.nan)
        some = counts.any(axis=1)
        if some.any():
            found[some] = maker.of(counts[some])
        return found
