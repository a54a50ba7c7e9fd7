"""Correlations of two columns of numbers, and of many columns with one outcome in many bootstrap resamples at once.

The correlation of a constant column, or of fewer than two pairs, is NaN. :func:`correlation` gives the reason, and
leaves out pairs with a missing value.

A resample is represented by how often each unit (query) was drawn, and correlations are computed from these counts: no
row is copied, and a block of resamples takes a handful of array operations. Counts may come in blocks of any size.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Measure = Literal["pearson", "spearman", "kendall", "kendall-c"]

NOTHING = "there are no pairs of values"
SINGLE = "there is only one pair of values"
CONSTANT = "{} is constant"
INFINITE = "a value is infinite, which only ranks can take"


def _defined(x: Floats, y: Floats) -> bool:
    return len(x) > 1 and bool((x != x[0]).any()) and bool((y != y[0]).any())


def pearson(x: Floats, y: Floats) -> float:
    """Pearson's r."""
    if not _defined(x, y):
        return float("nan")
    a, b = x - x.mean(), y - y.mean()
    return float(np.clip((a @ b) / np.sqrt((a @ a) * (b @ b)), -1, 1))


def average_ranks(x: Floats) -> Floats:
    """Ranks from 1; equal values share their mean rank."""
    _, place, count = np.unique(x, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return ((last - count + 1 + last) / 2)[place].astype(np.float64)


def spearman(x: Floats, y: Floats) -> float:
    """Spearman's ρ: Pearson's r of the ranks."""
    return pearson(average_ranks(x), average_ranks(y))


def kendall(x: Floats, y: Floats) -> float:
    """Kendall's τ-b: (concordant − discordant) / √(pairs untied in x × pairs untied in y)."""
    from scipy import stats

    return float(stats.kendalltau(x, y).statistic) if _defined(x, y) else float("nan")


def kendall_c(x: Floats, y: Floats) -> float:
    """Kendall's (Stuart's) τ-c: 2·(concordant − discordant) / (n²·(m − 1)/m), m the smaller number of distinct values.

    Unlike τ-b, it can reach 1 if one column has fewer distinct values than the other.
    """
    from scipy import stats

    return float(stats.kendalltau(x, y, variant="c").statistic) if _defined(x, y) else float("nan")


CORRELATIONS: dict[str, Callable[[Floats, Floats], float]] = {
    "pearson": pearson,
    "spearman": spearman,
    "kendall": kendall,
}

MEASURES: dict[str, Callable[[Floats, Floats], float]] = {**CORRELATIONS, "kendall-c": kendall_c}
"""All measures; ``kendall`` is τ-b."""


class Correlation(NamedTuple):
    """A correlation, or why it is undefined.

    Attributes
    ----------
    value: None if undefined.
    reason: why it is undefined, or empty.
    n: number of pairs.
    missing: pairs with a NaN; they are left out.
    """

    value: float | None
    reason: str
    n: int
    missing: int


def correlation(x: npt.ArrayLike, y: npt.ArrayLike, measure: Measure = "spearman") -> Correlation:
    """Correlate two columns that may contain missing values (NaN)."""
    check_measure(measure)
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 1:
        raise ValueError(f"{a.shape} values with {b.shape} values")
    there = ~(np.isnan(a) | np.isnan(b))
    a, b, missing = a[there], b[there], int((~there).sum())
    reason = missing_reason(a, b, measure)
    value = None if reason else MEASURES[measure](a, b)
    return Correlation(value, reason, len(a), missing)


def missing_reason(x: Floats, y: Floats, measure: str, names: tuple[str, str] = ("the first", "the second")) -> str:
    """Why two columns have no correlation, or empty if they have one."""
    if len(x) < 2:
        return SINGLE if len(x) else NOTHING
    for values, name in zip((x, y), names, strict=True):
        if (values == values[0]).all():
            return CONSTANT.format(name)
    return INFINITE if measure == "pearson" and not (np.isfinite(x).all() and np.isfinite(y).all()) else ""


def check_measure(measure: str) -> None:
    if measure not in MEASURES:
        raise ValueError(f"measure={measure!r} is none of {', '.join(get_args(Measure))}")


Singles = npt.NDArray[np.float32]
CountSampler = Callable[[int], Iterable[Floats]]
"""Yields counts (resamples × units) in blocks of at most this many resamples, the same ones on every call."""

CHUNK = 1 << 21
"""Maximum numbers of one kind in memory."""

WIDEST = 512
"""Resamples per block; more would exceed the CPU cache."""

PAIRS = 1 << 25
"""Numbers of a table of pairs of units in memory, in single precision: 128 MB."""

TALL = 256
"""Units of a table of pairs per block: each against itself and later ones, which halves the work."""

FLAT = 1e-12
"""A variance below this share of the mean square is rounding."""


class Resampler(ABC):
    """Computes correlations of ``columns`` (rows × metrics) with ``outcome`` for resampled units.

    ``unit`` is the number of each row's unit, from 0. No value may be missing.
    """

    def __init__(self, columns: Floats, outcome: Floats, unit: Ints) -> None:
        self.columns, self.outcome, self.unit = columns, outcome, unit
        self.units = int(unit.max()) + 1
        self.block = int(np.clip(CHUNK // len(outcome), 1, WIDEST))

    @abstractmethod
    def of(self, counts: Floats) -> Floats:
        """Correlations (resamples × metrics) for counts (resamples × units); NaN if a side is constant."""

    def over(self, draw: CountSampler) -> Floats:
        """Correlations for all drawn counts."""
        return np.concatenate([np.empty((0, self.columns.shape[1])), *map(self.of, draw(self.block))])


class PearsonResampler(Resampler):
    """Uses sums over each unit, so the rest is one matrix product."""

    def __init__(self, columns: Floats, outcome: Floats, unit: Ints) -> None:
        super().__init__(columns, outcome, unit)
        x, y = _scaled(columns), _scaled(outcome[:, None])
        each = np.concatenate([np.ones_like(y), y, y * y, x, x * x, x * y], axis=1)
        self.sums = np.zeros((self.units, each.shape[1]))
        np.add.at(self.sums, unit, each)

    def of(self, counts: Floats) -> Floats:
        m = self.columns.shape[1]
        total = counts @ self.sums
        means = total[:, 1:] / total[:, :1]
        y, yy, x, xx, xy = np.split(means, np.cumsum([1, 1, m, m]), axis=1)
        return _ratio(xy - x * y, _variance(xx, x), _variance(yy, y))


class SpearmanResampler(Resampler):
    """Uses the ranks of values in the resample, from running sums of the counts in the order of the values."""

    def __init__(self, columns: Floats, outcome: Floats, unit: Ints) -> None:
        super().__init__(columns, outcome, unit)
        self.y = _DistinctColumn(outcome, unit, self.units)
        self.x = [_DistinctColumn(column, unit, self.units) for column in columns.T]

    def of(self, counts: Floats) -> Floats:
        found = np.empty((len(counts), len(self.x)))
        # Resamples along the rows, so that a step from value to value is one operation for all of them.
        times = np.ascontiguousarray(counts.T)
        alike = self.y.counted(times)
        cube, yy = alike.sum(axis=0) ** 3, _tie_cubes(alike)
        ranked = _running_sums(alike.copy()) - (alike + alike.sum(axis=0)) / 2
        rows = times[self.unit]
        weighted = rows * ranked[self.y.kind]
        untied = _tie_cubes(rows), _column_products(rows, weighted) / 2  # the same for all columns without ties
        for place, x in enumerate(self.x):
            alike, outcome = x.counted(times), x.summed(weighted)
            xx, half = (_tie_cubes(alike), _column_products(alike, outcome) / 2) if x.tied else untied
            cross = 12 * (_column_products(_running_sums(alike), outcome) - half)
            found[:, place] = _ratio(cross, _flattened(cube - xx, cube), _flattened(cube - yy, cube))
        return found


class KendallResampler(Resampler):
    """Uses the row pairs of every two units: (concordant − discordant) is a quadratic form of the counts.

    A unit drawn twice is two units, whose rows are compared like any others.
    """

    def __init__(self, columns: Floats, outcome: Floats, unit: Ints, *, c: bool = False) -> None:
        super().__init__(columns, outcome, unit)
        self.c = c
        self.order = np.argsort(unit, kind="stable")
        self.edges = np.searchsorted(unit[self.order], np.arange(self.units + 1))
        self.y = _DistinctColumn(outcome, unit, self.units)
        self.x = [_DistinctColumn(column, unit, self.units) for column in columns.T]

    def of(self, counts: Floats) -> Floats:
        return self.over(lambda block: (counts[low : low + block] for low in range(0, len(counts), block)))

    def over(self, draw: CountSampler) -> Floats:
        parts = [np.empty((0, len(self.x)))]
        parts += [np.stack([self._scale(x, counts) for x in self.x], axis=1) for counts in draw(self.block)]
        scale = np.concatenate(parts)
        net = np.stack([self._net(x, draw) for x in self.x], axis=1)
        return _divided(net, scale)

    def _net(self, x: _DistinctColumn, draw: CountSampler) -> Floats:
        """Concordant minus discordant ordered row pairs, for each resample."""
        net: list[Floats] = []
        size = max(1, PAIRS // self.units)
        for low in range(0, self.units, size):
            edges = [*range(low, min(low + size, self.units), TALL), min(low + size, self.units)]
            tables = [(a, self._table(x, a, b)) for a, b in pairwise(edges)]
            part = [sum(_quadratic_form(counts, a, table) for a, table in tables) for counts in draw(WIDEST)]
            net.append(np.concatenate([np.empty(0), *part]))
        return np.asarray(np.sum(net, axis=0))

    def _scale(self, x: _DistinctColumn, counts: Floats) -> Floats:
        """Divisor of concordant minus discordant ordered pairs; 0 if a side is constant."""
        times = np.ascontiguousarray(counts.T)
        of_x, of_y = x.counted(times), self.y.counted(times)
        pairs = of_y.sum(axis=0) ** 2
        kinds = np.minimum((of_x > 0).sum(axis=0), (of_y > 0).sum(axis=0))
        if self.c:
            return np.asarray(pairs * (kinds - 1) / kinds)
        untied = [pairs - _column_products(alike, alike) for alike in (of_x, of_y)]
        return np.asarray(np.sqrt(untied[0] * untied[1]))

    def _table(self, x: _DistinctColumn, low: int, high: int) -> Singles:
        """Concordant minus discordant row pairs: units ``low`` to ``high`` × units from ``low`` on.

        Pairs of units whose second comes after ``high`` count twice, because they don't occur again.
        """
        first = self.edges[low]
        a, b = x.kind[self.order[first:]], self.y.kind[self.order[first:]]
        edges = self.edges - first
        table = np.empty((high - low, self.units - low), dtype=np.float32)
        at = low
        while at < high:
            # As many units as keep the block of row pairs small, but at least one.
            room = int(np.searchsorted(edges, edges[at] + max(1, CHUNK // len(a)), "right")) - 1
            last = min(max(at + 1, room), high)
            rows = slice(edges[at], edges[last])
            signs = np.sign(a[rows, None] - a) * np.sign(b[rows, None] - b)
            by_unit = np.add.reduceat(signs, edges[low:-1], axis=1)
            table[at - low : last - low] = np.add.reduceat(by_unit, edges[at:last] - edges[at], axis=0)
            at = last
        table[:, high - low :] *= 2
        return table


def _quadratic_form(counts: Floats, low: int, table: Singles) -> Floats:
    """Evaluate the quadratic form of a table of pairs, of units from ``low`` on, at these counts."""
    against = counts[:, low:].astype(np.float32) @ table.T
    return np.asarray(np.vecdot(against.astype(np.float64), counts[:, low : low + len(table)]))


class _DistinctColumn:
    """The distinct values of one column in ascending order, and the rows and units that have them."""

    def __init__(self, values: Floats, unit: Ints, units: int) -> None:
        from scipy.sparse import csr_array

        distinct, kind = np.unique(values, return_inverse=True)
        self.kind = kind.reshape(-1).astype(np.int32)
        self.tied = len(distinct) < len(values)
        order = np.argsort(self.kind, kind="stable")
        self._rows: Any = order
        self._units: Any = unit[order]
        if self.tied:
            ones = np.ones(len(values))
            self._rows = csr_array((ones, (self.kind[order], order)), shape=(len(distinct), len(values)))
            self._units = csr_array((ones, (self.kind[order], unit[order])), shape=(len(distinct), units))

    def counted(self, times: Floats) -> Floats:
        """How often each value occurs (values × resamples) if units are counted this often."""
        return np.asarray(self._units @ times if self.tied else times[self._units])

    def summed(self, numbers: Floats) -> Floats:
        """Sum the rows' numbers for each value."""
        return np.asarray(self._rows @ numbers if self.tied else numbers[self._rows])


def _running_sums(numbers: Floats) -> Floats:
    """Running sums down the rows, in place. Row by row, because NumPy's cumsum is several times slower here."""
    rows = list(numbers)
    for before, row in pairwise(rows):
        np.add(before, row, out=row)
    return numbers


def _tie_cubes(alike: Floats) -> Floats:
    """Correction of the sum of squared ranks for ties: Σt³, of (T³ − Σt³)/12."""
    return _column_products(alike * alike, alike)


def _column_products(first: Floats, second: Floats) -> Floats:
    """Sum of the products down each column."""
    return np.asarray(np.einsum("kr,kr->r", first, second))


def _flattened(variance: Floats, scale: Floats) -> Floats:
    return np.where(variance > FLAT * scale, variance, 0.0)


def make_resampler(measure: Measure, columns: Floats, outcome: Floats, unit: Ints) -> Resampler:
    if measure == "pearson":
        return PearsonResampler(columns, outcome, unit)
    if measure == "spearman":
        return SpearmanResampler(columns, outcome, unit)
    return KendallResampler(columns, outcome, unit, c=measure == "kendall-c")


def _scaled(values: Floats) -> Floats:
    """Scale columns to mean 0 and largest deviation 1, so sums of squares stay accurate; constant ones become 0."""
    centred = values - values.mean(axis=0, keepdims=True)
    spread = np.abs(centred).max(axis=0, keepdims=True)
    return np.asarray(np.divide(centred, spread, out=np.zeros_like(centred), where=spread > 0))


def _variance(square: Floats, mean: Floats) -> Floats:
    return _flattened(square - mean * mean, square)


def _ratio(cross: Floats, first: Floats, second: Floats) -> Floats:
    """``cross`` divided by the root of both, between −1 and 1; NaN if one of them is 0."""
    return _divided(cross, np.sqrt(first * second))


def _divided(numbers: Floats, scale: Floats) -> Floats:
    found = np.divide(numbers, scale, out=np.full(numbers.shape, np.nan), where=scale > 0)
    return np.asarray(np.clip(found, -1, 1))
