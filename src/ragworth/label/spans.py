"""Agreement of highlights: do two annotators mark the same spans, and the same characters?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from ragworth.label.labels import Label
from ragworth.label.ratios import ratio_estimate
from ragworth.label.tasks.contract import LabelItem
from ragworth.stats.estimate import Estimate, Resampling

NOTHING = "no two annotators of an item highlighted anything"


class SpanAgreement(NamedTuple):
    """F1 of two annotators' highlights, over all pairs of annotators and all items of which either highlighted some.

    ``exact`` counts spans with equal ends; ``overlap`` counts characters. Both are 2·shared / (first's + second's),
    summed over pairs and items; n counts pairs.
    """

    exact: Estimate
    overlap: Estimate


def span_agreement(
    labels: Sequence[Label], items: Mapping[str, LabelItem], field: str, plan: Resampling
) -> SpanAgreement:
    """Agreement of the highlights in a field; labels without a value have none."""
    by_item: dict[str, list[list[Any]]] = {}
    for label in labels:
        if label.value is not None:
            by_item.setdefault(label.item, []).append(list(label.value.get(field) or ()))
    groups: list[str] = []
    counts: list[tuple[int, int, int, int]] = []
    for item, every in by_item.items():
        for first, second in combinations(every, 2):
            if first or second:
                groups.append(items[item].group or item)
                counts.append((*_shared_spans(first, second), *_shared_characters(first, second)))
    table = np.array(counts, dtype=np.float64).reshape(-1, 4)
    exact, overlap = (ratio_estimate(table[:, at], table[:, at + 1], np.array(groups), plan, NOTHING) for at in (0, 2))
    return SpanAgreement(exact, overlap)


def _shared_spans(first: Sequence[Mapping[str, Any]], second: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """Twice the number of equal spans, and the number of all."""
    a, b = ({(one["part"], one["start"], one["end"]) for one in side} for side in (first, second))
    return 2 * len(a & b), len(a) + len(b)


def _shared_characters(first: Sequence[Mapping[str, Any]], second: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """Twice the number of characters that both highlighted, and the sum of both."""
    shared = sum(
        max(0, min(a["end"], b["end"]) - max(a["start"], b["start"]))
        for a in first
        for b in second
        if a["part"] == b["part"]
    )
    return 2 * shared, sum(one["end"] - one["start"] for side in (first, second) for one in side)
