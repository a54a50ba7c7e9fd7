"""Agreement of any number of judges beyond chance: Fleiss' κ and Krippendorff's α.

Both take ratings as items × judges, with missing ratings as NaN or None, and leave out items with fewer than two
ratings. Intervals are from random weights of items, or of groups of them (queries), and half an unseen one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ragworth.stats.agreement import usual_and_rarest
from ragworth.stats.estimate import Estimate
from ragworth.stats.resampling import agreement_interval, unit_numbers

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
MeasurementLevel = Literal["nominal", "ordinal", "interval"]
RaterLabels = npt.ArrayLike | Sequence[Sequence[Any]]

NOTHING = "no item has two ratings"
CONSTANT = "all ratings are the same, so chance agrees as often"


def fleiss_kappa(
    ratings: RaterLabels,
    *,
    groups: npt.ArrayLike | None = None,
    resamples: int = 0,
    level: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """Fleiss' κ (1971): (P̄ − Pₑ) / (1 − Pₑ).

    P̄ is the mean over items of the share of equal pairs of ratings; Pₑ is the chance that any two ratings are equal,
    Σ pⱼ² over labels. Raters are interchangeable. Fleiss assumes the same number of ratings for every item; otherwise,
    every item still counts the same in P̄, and every rating in pⱼ. ``n`` counts items with at least two ratings,
    ``counts`` their judgments; items with fewer are left out.
    """
    table = _count_labels(ratings, groups)
    if not len(table.counts):
        return Estimate(n_left_out=table.left_out, reason=NOTHING, counts={"judgments": 0})
    counts = _with_unseen(table, "nominal")
    each = counts.sum(axis=1)
    agreed = (counts * (counts - 1)).sum(axis=1) / (each * (each - 1))
    sums = np.column_stack([np.ones(len(each)), agreed, counts])

    def kappas(totals: Floats) -> Floats:
        items, seen, labels = totals[:, 0], totals[:, 1], totals[:, 2:]
        chance = ((labels / labels.sum(axis=1, keepdims=True)) ** 2).sum(axis=1)
        return _beyond_chance(1 - seen / items, 1 - chance)

    return _with_interval(table, sums, kappas, resamples, level, seed)


def krippendorff_alpha(
    ratings: RaterLabels,
    measure: MeasurementLevel = "nominal",
    *,
    groups: npt.ArrayLike | None = None,
    resamples: int = 0,
    level: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """Krippendorff's α: 1 − (disagreement within items / disagreement of all ratings with each other).

    The distance of two ratings is 0 or 1 (``nominal``), the squared difference of their mean ranks among all ratings
    (``ordinal``), or their squared difference (``interval``). Items may have different numbers of ratings; each rating
    counts the same. ``ordinal`` and ``interval`` need numbers. ``n`` and ``counts`` as for Fleiss' κ.
    """
    if measure not in ("nominal", "ordinal", "interval"):
        raise ValueError(f"measure={measure!r} is none of nominal, ordinal, interval")
    table = _count_labels(ratings, groups)
    if not len(table.counts):
        return Estimate(n_left_out=table.left_out, reason=NOTHING, counts={"judgments": 0})
    if measure != "nominal" and table.labels.dtype.kind not in "biuf":
        raise ValueError(f"measure={measure!r} needs numbers; the ratings are such as {table.labels[0]!r}")
    counts = _with_unseen(table, measure)
    rows, columns, cells = _coincidences(counts)
    sums = np.concatenate([cells, counts], axis=1)

    def alphas(totals: Floats) -> Floats:
        together, margins = totals[:, : len(rows)], totals[:, len(rows) :]
        n = margins.sum(axis=1)
        if measure == "nominal":
            seen = together[:, rows != columns].sum(axis=1)
            chance = n**2 - (margins**2).sum(axis=1)
        else:
            places = _label_positions(margins, table.labels, measure)
            seen = (together * (places[:, rows] - places[:, columns]) ** 2).sum(axis=1)
            mean = (margins * places).sum(axis=1, keepdims=True) / n[:, None]
            chance = 2 * n * (margins * (places - mean) ** 2).sum(axis=1)
        return _beyond_chance(seen * (n - 1), chance)

    return _with_interval(table, sums, alphas, resamples, level, seed)


class _LabelCounts(NamedTuple):
    """How often each item with at least two ratings got each label, and the item's group."""

    counts: Floats
    labels: npt.NDArray[np.generic]
    unit: Ints
    left_out: int


def _count_labels(ratings: RaterLabels, groups: npt.ArrayLike | None) -> _LabelCounts:
    given = np.asarray(ratings, dtype=object)
    given = given.reshape(0, 0) if not given.size else given
    if given.ndim != 2:
        raise ValueError(f"ratings of shape {given.shape}; items × judges are needed")
    there = np.array([[r is not None and r == r for r in row] for row in given], dtype=bool).reshape(given.shape)
    enough = there.sum(axis=1) > 1
    unit = unit_numbers(groups, len(given))[enough]
    item, judge = np.nonzero(there & enough[:, None])
    labels, label = np.unique(np.array(given[item, judge].tolist()), return_inverse=True)
    counts = np.zeros((len(given), len(labels)))
    np.add.at(counts, (item, label.reshape(-1)), 1.0)
    unit = np.unique(unit, return_inverse=True)[1].reshape(-1)
    return _LabelCounts(counts[enough], labels, unit, int((~enough).sum()))


def _with_unseen(table: _LabelCounts, measure: MeasurementLevel) -> Floats:
    """The counts of all items, and of two unseen ones: all agree on the rarest label, or one says it against others."""
    margins = table.counts.sum(axis=0)
    if len(margins) < 2:
        return np.vstack([table.counts, table.counts[:1], table.counts[:1]])
    places = _label_positions(margins[None, :], table.labels, measure)[0] if measure != "nominal" else None
    far = -margins if places is None else (places - margins @ places / margins.sum()) ** 2
    usual, rarest = usual_and_rarest(margins, far)
    ratings = max(2, round(margins.sum() / len(table.counts)))
    one_each = np.eye(len(margins))
    differing = (ratings - 1) * one_each[usual] + one_each[rarest]
    return np.vstack([table.counts, ratings * one_each[rarest], differing])


def _coincidences(counts: Floats) -> tuple[Ints, Ints, Floats]:
    """Pairs of labels that occur together in an item, and each item's contribution (Krippendorff's coincidences)."""
    rows, columns = np.nonzero(counts.T @ counts)
    pairs = counts[:, rows] * (counts[:, columns] - (rows == columns))
    return rows, columns, pairs / (counts.sum(axis=1, keepdims=True) - 1)


def _label_positions(margins: Floats, labels: npt.NDArray[np.generic], measure: MeasurementLevel) -> Floats:
    """Positions of labels: their values, or their mean ranks among the ratings."""
    if measure == "interval":
        return np.broadcast_to(labels.astype(np.float64), margins.shape)
    return np.cumsum(margins, axis=1) - margins / 2


def _beyond_chance(seen: Floats, chance: Floats) -> Floats:
    """1 − seen/chance; NaN if chance can't disagree."""
    share = np.divide(seen, chance, out=np.full(len(seen), np.nan), where=chance > 1e-12)
    return np.asarray(1 - share)


def _with_interval(
    table: _LabelCounts, sums: Floats, measured: Callable[[Floats], Floats], resamples: int, level: float, seed: int
) -> Estimate:
    """Agreement computed by ``measured`` from sums over items, the last two of them unseen, with its interval."""
    items, (agreed, differing) = sums[:-2], sums[-2:]
    none = Estimate(n=len(items), n_left_out=table.left_out, counts={"judgments": int(table.counts.sum())})
    value = float(measured(items.sum(axis=0, keepdims=True))[0])
    if np.isnan(value):
        return none._replace(reason=CONSTANT)
    interval = None
    if resamples:
        by_unit = np.zeros((int(table.unit.max()) + 1, sums.shape[1]))
        np.add.at(by_unit, table.unit, items)
        size = math.sqrt(len(items) / len(by_unit))
        how: dict[str, Any] = {"resamples": resamples, "level": level, "seed": seed}
        interval = agreement_interval(measured, by_unit, size * agreed, size * differing, **how)
    return none._replace(value=value).with_interval(interval)
