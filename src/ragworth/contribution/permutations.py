"""Shapley values from random orders of the passages, with standard errors.

Each order is read forwards and backwards (antithetic): a passage that comes early in one comes late in the other, so
that interactions with the others cancel in part. A standard error is from the spread of such pairs of orders.
Paper: Mitchell et al. 2022, Sampling Permutations for Shapley Value Estimation.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ragworth.contribution.subsets import Floats, SubsetValues

Order = Sequence[int]


class SampledContributions(NamedTuple):
    """Estimated Shapley values (passages × sentences), and what is known of their error for the whole answer."""

    values: Floats
    errors: Floats
    """Standard error of each passage's contribution to the whole answer."""
    difference_errors: Floats
    """Standard error of the difference between any two contributions, passages × passages."""
    pairs: int
    """Pairs of orders that they come from."""


def random_orders(k: int, seed: str) -> Iterator[tuple[int, ...]]:
    """An endless sequence of orders, each followed by its reverse."""
    draw = random.Random(seed)
    while True:
        order = tuple(draw.sample(range(k), k))
        yield order
        yield order[::-1]


def prefixes(order: Order) -> list[int]:
    """The subsets that an order passes through, from none to all passages."""
    found = [0]
    for i in order:
        found.append(found[-1] | 1 << i)
    return found


def estimate(values: SubsetValues, orders: Sequence[Order]) -> SampledContributions:
    """Mean gain of each passage over orders, which come in antithetic pairs: 2 pairs or more."""
    gains = np.array([_gains(values, order) for order in orders])
    paired = (gains[::2] + gains[1::2]) / 2
    n = len(paired)
    total = paired.sum(axis=2)
    apart = total[:, :, None] - total[:, None, :]
    scale = np.sqrt(n)
    return SampledContributions(
        paired.mean(axis=0), total.std(axis=0, ddof=1) / scale, apart.std(axis=0, ddof=1) / scale, n
    )


def _gains(values: SubsetValues, order: Order) -> Floats:
    """What each passage adds where it comes in an order; passages × sentences."""
    steps = prefixes(order)
    found = np.empty((len(order), len(values[0])))
    for place, i in enumerate(order):
        found[i] = values[steps[place + 1]] - values[steps[place]]
    return found


def settled_share(found: SampledContributions, z: float, tolerance: float) -> float:
    """The share of neighbours in the ranking whose order is certain enough; 1 if all are.

    Two neighbours are settled if their difference is more than ``z`` standard errors, or is known to within
    ``tolerance`` nats, so that it doesn't matter.
    """
    totals = found.values.sum(axis=1)
    order = np.argsort(-totals, kind="stable")
    if len(order) < 2:
        return 1.0
    gaps = totals[order[:-1]] - totals[order[1:]]
    errors = z * found.difference_errors[order[:-1], order[1:]]
    return float(np.mean((gaps > errors) | (errors <= tolerance)))
