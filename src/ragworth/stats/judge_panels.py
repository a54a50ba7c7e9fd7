"""A panel of judges, items × judges with NaN for missing judgments: all together, every two, and one against another.

Intervals are over groups of items (queries).
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ragworth.stats.agreement import cohen_kappa
from ragworth.stats.estimate import Estimate, Resampling
from ragworth.stats.pooled import pooled_correlations
from ragworth.stats.raters import fleiss_kappa, krippendorff_alpha
from ragworth.stats.resampling import resample_counts, share_interval, unit_numbers

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

CHUNK = 256
"""Resamples whose counts are held at a time."""
MOST_LABELS = 12
"""Different values up to which equal ones mean something."""
NO_ORDER = "the labels are words without an order"
CONTINUOUS = f"more than {MOST_LABELS} different values, so that equal ones mean little"


class PairAgreement(NamedTuple):
    """How far two judges (columns) agree over the items that both judged.

    ``equal`` is the share of equal values; ``weighted`` and ``rank`` have no value if values have no order, ``equal``
    and ``kappa`` none if values are no labels.
    """

    first: int
    second: int
    equal: float | None
    kappa: Estimate
    weighted: Estimate
    rank: Estimate


def pair_agreements(
    values: Floats, groups: Ints, plan: Resampling, *, nominal: bool, ordered: bool
) -> list[PairAgreement]:
    """Every two judges: Cohen's κ, plain and with quadratic weights, and Spearman's ρ."""
    found = []
    for a, b in combinations(range(values.shape[1]), 2):
        x, y = values[:, a], values[:, b]
        plain = cohen_kappa(x, y, groups=groups, **plan.options)
        kappa = plain.estimate
        if not nominal:
            kappa = Estimate(n=kappa.n, n_left_out=kappa.n_left_out, reason=CONTINUOUS)
        weighted, rank = Estimate(reason=NO_ORDER), Estimate(reason=NO_ORDER)
        if ordered:
            weighted = cohen_kappa(x, y, weights="quadratic", groups=groups, **plan.options).estimate
            (rank,) = pooled_correlations(x[:, None], y, groups, **plan.options)
        found.append(PairAgreement(a, b, plain.observed if nominal else None, kappa, weighted, rank))
    return found


def panel_agreements(
    values: Floats, groups: Ints, plan: Resampling, *, nominal: bool, ordered: bool
) -> dict[str, Estimate]:
    """All judges at once: Fleiss' κ and Krippendorff's α, as far as the values allow; n counts items."""
    found: dict[str, Estimate] = {}
    how = {"groups": groups, **plan.options}
    if nominal:
        found["Fleiss κ"] = fleiss_kappa(values, **how)
        found["Krippendorff α, nominal"] = krippendorff_alpha(values, **how)
    if ordered:
        found["Krippendorff α, ordinal"] = krippendorff_alpha(values, "ordinal", **how)
        found["Krippendorff α, interval"] = krippendorff_alpha(values, "interval", **how)
    by_all = int((~np.isnan(values)).all(axis=1).sum())
    counts = {"judges": values.shape[1], "by all": by_all}
    return {name: one._replace(counts={**counts, **one.counts}) for name, one in found.items()}


class Confusion(NamedTuple):
    """How often one judge says ``second`` of what the other calls ``first``; ``share`` of all these."""

    first: float
    second: float
    items: int
    share: float


def confusions(x: Floats, y: Floats) -> list[Confusion]:
    """Each pair of values that two judges give the same item."""
    both = np.column_stack([x, y])[~(np.isnan(x) | np.isnan(y))]
    cells, counts = np.unique(both, axis=0, return_counts=True)
    return [
        Confusion(float(first), float(second), int(n), float(n / (both[:, 0] == first).sum()))
        for (first, second), n in zip(cells, counts, strict=True)
    ]


class PrecisionRecall(NamedTuple):
    """What a judge calls yes against a reference; ``hits``, ``false`` and ``missed`` count items."""

    precision: Estimate
    recall: Estimate
    f1: float | None
    hits: int
    false: int
    missed: int


def precision_recall(predicted: Bools, true: Bools, groups: npt.ArrayLike, plan: Resampling) -> PrecisionRecall:
    """Precision, recall and F1 of ``predicted`` against ``true``. A share of nothing has no value."""
    each = np.stack([predicted & true, predicted & ~true, ~predicted & true], axis=1).astype(np.float64)
    hits, false, missed = each.sum(axis=0)
    units = unit_numbers(groups, len(predicted))
    size = int(units.max(initial=-1)) + 1
    sums = np.zeros((size, 3))
    np.add.at(sums, units, each)
    draws = np.empty((0, 3))
    if size > 1:
        draws = np.concatenate([counts @ sums for counts in resample_counts(size, plan.resamples, plan.seed, CHUNK)])

    def share(other: int) -> Estimate:
        whole = draws[:, 0] + draws[:, other]
        shares = np.divide(draws[:, 0], whole, out=np.full(len(draws), np.nan), where=whole > 0)
        counted = int((sums[:, 0] + sums[:, other] > 0).sum())
        low, high = share_interval(shares, size, plan.level, counted) or (None, None)
        total = hits + each[:, other].sum()
        return Estimate(float(hits / total) if total else None, low, high, n=len(predicted))

    f1 = float(2 * hits / (2 * hits + false + missed)) if hits + false + missed else None
    return PrecisionRecall(share(1), share(2), f1, int(hits), int(false), int(missed))
