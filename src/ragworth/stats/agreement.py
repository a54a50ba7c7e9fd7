"""Agreement of two judges beyond chance: Cohen's κ, plain and weighted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ragworth.stats.estimate import Estimate
from ragworth.stats.resampling import ConfidenceInterval, agreement_interval, unit_numbers

Floats = npt.NDArray[np.float64]
KappaWeights = Literal["linear", "quadratic"]
JudgeLabels = npt.ArrayLike | Sequence[Any]

NOTHING = "nothing was judged by both"
CONSTANT = "both gave everything the same label, so chance agrees as often"


class Kappa(NamedTuple):
    """Agreement of two judges beyond chance.

    Attributes
    ----------
    value: κ: 1 perfect agreement, 0 chance level, negative below chance; None if undefined.
    reason: why it is undefined, or empty.
    observed: share of the items with equal labels, whatever the weights; None if no item has both labels.
    n: items with both labels.
    missing: items without both labels; they are left out.
    interval: bootstrap interval of κ; None if not requested or undefined.
    """

    value: float | None
    reason: str
    observed: float | None
    n: int
    missing: int
    interval: ConfidenceInterval | None = None

    @property
    def estimate(self) -> Estimate:
        """Without what was observed."""
        found = Estimate(self.value, n=self.n, n_left_out=self.missing, reason=self.reason)
        return found.with_interval(self.interval)


def cohen_kappa(
    a: JudgeLabels,
    b: JudgeLabels,
    *,
    weights: KappaWeights | None = None,
    groups: npt.ArrayLike | None = None,
    resamples: int = 0,
    level: float = 0.95,
    seed: int = 0,
) -> Kappa:
    """Cohen's κ of two judges' labels for the same items: 1 − (observed disagreement / disagreement by chance).

    Without ``weights``, labels are equal or not. With them, labels are numbers, and a disagreement weighs the distance
    between them (``linear``) or its square (``quadratic``). The distance is between the numbers, not their positions
    among the labels that occur, so an unused grade doesn't change it.

    Items with a missing label (NaN or None) are left out and counted. If both judges gave the same label throughout, κ
    is undefined, because chance agrees as often as they do.

    ``resamples`` requests an interval: from random weights of the items and half an unseen one, or of ``groups`` of
    them (queries) if the items of a query aren't independent.
    """
    first, second = np.asarray(a), np.asarray(b)
    if first.shape != second.shape or first.ndim != 1:
        raise ValueError(f"labels of {first.shape} and {second.shape} items")
    there = ~(_missing(first) | _missing(second))
    unit = unit_numbers(groups, len(first))[there]
    missing, n = int((~there).sum()), int(there.sum())
    if n == 0:
        return Kappa(None, NOTHING, None, 0, missing)
    # Via a list, so that labels mixed with None become numbers or text again.
    both = np.array([*first[there].tolist(), *second[there].tolist()])
    labels, place = np.unique(both, return_inverse=True)
    row, column = place.reshape(-1)[:n], place.reshape(-1)[n:]
    cost = _costs(labels, weights)
    observed = float((row == column).mean())
    # Only pairs of labels that occur, or may next: with many labels, the full table is far larger.
    margins = np.bincount(place.reshape(-1)).astype(np.float64)
    usual, rare = usual_and_rarest(margins, margins @ cost)
    cells = np.concatenate([row * len(labels) + column, [rare * len(labels) + rare, usual * len(labels) + rare]])
    pairs, cell = np.unique(cells, return_inverse=True)
    rows, columns = np.divmod(pairs, len(labels))
    agreed, differing = np.eye(len(pairs))[cell.reshape(-1)[-2:]]
    cell = cell.reshape(-1)[:n]

    def kappas(tables: Floats) -> Floats:
        return _kappas(tables, rows, columns, cost)

    value = float(kappas(np.bincount(cell, minlength=len(pairs)).astype(np.float64)[None, :])[0])
    if np.isnan(value):
        return Kappa(None, CONSTANT, observed, n, missing)
    interval = None
    if resamples:
        units, unit = np.unique(unit, return_inverse=True)
        tables = np.zeros((len(units), len(pairs)))
        np.add.at(tables, (unit.reshape(-1), cell), 1.0)
        size = math.sqrt(n / len(units))
        how: dict[str, Any] = {"resamples": resamples, "level": level, "seed": seed}
        interval = agreement_interval(kappas, tables, size * agreed, size * differing, **how)
    return Kappa(value, "", observed, n, missing, interval)


def usual_and_rarest(counts: Floats, distances: Floats) -> tuple[int, int]:
    """Two labels: the most common one, and the one with the largest distance from all ratings.

    One more agreement on the latter raises the agreement beyond chance; an item with one label each lowers it.
    """
    rarest = int(distances.argmax())
    return int(np.where(np.arange(len(counts)) == rarest, -1, counts).argmax()), rarest


def _kappas(tables: Floats, rows: npt.NDArray[np.int64], columns: npt.NDArray[np.int64], cost: Floats) -> Floats:
    """κ of each table of counts (tables × cells); NaN if chance can't disagree."""
    size = len(cost)
    total = tables.sum(axis=1)
    first, second = np.zeros((2, len(tables), size))
    np.add.at(first.T, rows, tables.T)
    np.add.at(second.T, columns, tables.T)
    seen = tables @ cost[rows, columns] / total
    chance = ((first @ cost) * second).sum(axis=1) / total**2
    return np.asarray(1 - np.divide(seen, chance, out=np.full(len(tables), np.nan), where=chance > 0))


def _costs(labels: npt.NDArray[np.generic], weights: KappaWeights | None) -> Floats:
    """Cost of each disagreement between two labels."""
    if weights is None:
        return 1.0 - np.eye(len(labels))
    if weights not in ("linear", "quadratic"):
        raise ValueError(f"weights={weights!r} is neither linear nor quadratic")
    if labels.dtype.kind not in "biuf":
        raise ValueError(f"weights={weights!r} needs numbers; the labels are such as {labels[0]!r}")
    values = labels.astype(np.float64)
    distance = np.abs(values[:, None] - values[None, :])
    return distance if weights == "linear" else distance**2


def _missing(labels: npt.NDArray[np.generic]) -> npt.NDArray[np.bool_]:
    if labels.dtype.kind == "f":
        return np.asarray(np.isnan(labels.astype(np.float64)))
    if labels.dtype.kind == "O":
        return np.array([label is None or label != label for label in labels], dtype=bool)
    return np.zeros(len(labels), dtype=bool)
