"""Contribution of each row to a rank correlation, which gives its sampling error without resampling.

To first order, a statistic of a sample is the mean of one number per row (its influence function), so its interval
over many rows, or groups of rows, is the interval of a mean.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Influence(NamedTuple):
    """A correlation, and one number per row with the correlation as their mean."""

    value: float
    rows: Floats

    def by_group(self, group: Ints) -> Floats:
        """One number per group of rows, from 0, with the correlation as their mean.

        The spread of their mean is that of the correlation if whole groups are drawn.
        """
        groups = int(group.max()) + 1
        return np.asarray(self.value + np.bincount(group, self.rows - self.value) * groups / len(self.rows))


def spearman_influence(x: Floats, y: Floats) -> Influence:
    """Spearman's ρ with the influence of each row; equal values share their mean rank.

    ρ = (E[F·G] − ¼) / √(A·B), where F and G are the ranks as shares of the sample and A = (1 − Σp³)/12 is the variance
    of F if values occur with shares p. A row counts in E[F·G] itself, and through the ranks of the rows above it in x
    and in y. Neither side may be constant.
    """
    a, b = _Ranked.of(x), _Ranked.of(y)
    product = a.rank * b.rank
    mean = float(product.mean())
    scale = float(np.sqrt(a.variance * b.variance))
    value = (mean - 0.25) / scale
    rows = (product + a.above(b.rank) + b.above(a.rank) - 3 * mean) / scale
    rows -= value / 2 * (a.variance_rows / a.variance + b.variance_rows / b.variance)
    return Influence(value, value + rows)


class _Ranked(NamedTuple):
    """A column's distinct values in ascending order: the index of each row's value, and how common each is."""

    place: Ints
    share: Floats
    rank: Floats

    @classmethod
    def of(cls, values: Floats) -> _Ranked:
        _, place, count = np.unique(values, return_inverse=True, return_counts=True)
        share = count / len(values)
        return cls(place.reshape(-1), share, (np.cumsum(share) - share / 2)[place.reshape(-1)])

    @property
    def variance(self) -> float:
        return (1 - float((self.share**3).sum())) / 12

    @property
    def variance_rows(self) -> Floats:
        """Influence of each row on the variance of the ranks."""
        return np.asarray((float((self.share**3).sum()) - self.share**2)[self.place] / 4)

    def above(self, other: Floats) -> Floats:
        """For each row, ``other`` summed over rows with a higher value (equal ones count half), divided by all rows."""
        sums = np.bincount(self.place, other) / len(other)
        return np.asarray((sums.sum() - np.cumsum(sums) + sums / 2)[self.place])
