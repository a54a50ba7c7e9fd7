"""Sets of passages as bit masks: which of a context to ask about, round by round, and the Shapley values from them.

With random orders, each is read forwards and backwards (antithetic): a passage that comes early in one comes late in
the other, so that interactions with the others cancel in part. A standard error is from the spread of such pairs.
Papers: Shapley 1953, A Value for n-Person Games; Grabisch and Roubens 1999 (interaction index); Mitchell et al. 2022,
Sampling Permutations for Shapley Value Estimation.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice
from math import comb
from statistics import NormalDist
from typing import Literal, NamedTuple, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from ragworth.calls.programs import Program
from ragworth.llm.contract import Failure, Request, Response

Floats: TypeAlias = npt.NDArray[np.float64]

SubsetValues: TypeAlias = Mapping[int, Floats]
"""The value of each known subset: an array with one number for each sentence of the answer, in nats.

Passage i is in the subset ``mask`` if ``mask >> i & 1``. The value of the whole answer is the sum over its sentences.
"""

Method = Literal["leave-one-out", "exact", "permutations"]
METHODS = ("auto", "leave-one-out", "exact", "permutations")

EXACT_UP_TO = 6
"""Passages up to which all subsets are asked about by default: 64."""
MOST_EXACT = 12
"""Passages beyond which all subsets are too many even if asked for."""
FIRST_PAIRS, MORE_PAIRS = 4, 2
"""Pairs of orders in the first round, and in each of the others."""
CERTAINTY = 0.9
"""Probability with which neighbours in the ranking must be in the right order to stop early."""
TOLERANCE = 0.05
"""Difference in nats that doesn't matter."""


@dataclass(frozen=True)
class Design:
    """How contributions are computed.

    Attributes
    ----------
    method: by default all subsets for up to 6 passages, and random orders for more.
    subsets: most subsets of a context to ask about, where not all are.
    seed: of random orders.
    """

    method: str = "auto"
    subsets: int = 256
    seed: int = 0

    def method_for(self, k: int) -> Method:
        """The method for a context of k passages."""
        if self.method != "auto":
            return cast(Method, self.method)
        return "exact" if k <= EXACT_UP_TO else "permutations"

    def most_subsets(self, k: int) -> int:
        """The most subsets of a context of k passages that are asked about."""
        method = self.method_for(k)
        most = k + 2 if method == "leave-one-out" else max(self.subsets, k + 2 + 4 * (k - 1))
        return 1 << k if method == "exact" else min(1 << k, most)


@dataclass(frozen=True)
class Contributions:
    """What came of one context: contributions in the order of its passages, in nats.

    Attributes
    ----------
    values: passages × sentences, with the standard ``errors`` of contributions to the whole answer.
    alone: what the answer loses when each passage is removed from the whole context.
    everything, nothing: the answer's log-probability by sentence with all passages, and with none.
    interactions: passages × passages, if all subsets are known.
    subsets: how many were asked about.
    single: what each passage adds when it alone is shown, if that was asked for all of them.
    settled: share of neighbours in the ranking whose order is certain enough.
    """

    method: Method
    values: Floats
    errors: Floats
    alone: Floats
    everything: Floats
    nothing: Floats
    interactions: Floats | None
    subsets: int
    single: Floats | None
    settled: float

    @property
    def totals(self) -> Floats:
        """Contributions to the whole answer."""
        return cast(Floats, self.values.sum(axis=1))

    @property
    def gain(self) -> float:
        """What the whole context does for the answer."""
        return float((self.everything - self.nothing).sum())


@dataclass
class SubsetAsker:
    """Asks about subsets of one context, each once.

    ``request`` makes the request about a subset from the numbers of its passages; ``read`` turns the response into one
    number for each sentence.
    """

    k: int
    request: Callable[[list[int]], Request]
    read: Callable[[Response | Failure], Floats]
    values: dict[int, Floats] = field(default_factory=dict)

    @property
    def knows_all(self) -> bool:
        """Return whether all subsets were asked about, so that nothing is left to estimate."""
        return len(self.values) == 1 << self.k

    def missing(self, masks: Iterable[int]) -> list[int]:
        """The subsets that were not asked about yet, each once."""
        return [mask for mask in dict.fromkeys(masks) if mask not in self.values]

    def ask(self, masks: Iterable[int]) -> Program[None]:
        """Ask about subsets, in an order in which neighbours share the beginning of the context."""
        wanted = sorted(self.missing(masks), key=members)
        if not wanted:
            return
        outcomes = yield [self.request(members(mask)) for mask in wanted]
        for mask, outcome in zip(wanted, outcomes, strict=True):
            self.values[mask] = self.read(outcome)


def contributions(asker: SubsetAsker, design: Design, seed: str) -> Program[Contributions]:
    """Ask about as many subsets as the design needs, and split the value of the context among its passages.

    ``seed`` goes with that of the design: the same text draws the same orders.
    """
    k, known = asker.k, asker.values
    method, sampled = design.method_for(k), None
    if method == "permutations" and k:
        sampled = yield from _sample(asker, design, f"{design.seed} {seed}")
        method = "exact" if asker.knows_all else method
    yield from asker.ask(range(1 << k) if method == "exact" else _base(k))
    values, errors, interactions = leave_one_out(known, k), np.zeros(k), None
    alone = values.sum(axis=1)
    if method == "exact" and k:
        values, interactions = shapley_values(known, k), shapley_interactions(known, k)
    elif sampled is not None:
        values, errors = sampled.values, sampled.errors
    everything, nothing = known[full_subset(k)], known[0]
    ones = [known[1 << i] for i in range(k) if 1 << i in known]
    single = np.array([float((one - nothing).sum()) for one in ones]) if len(ones) == k else None
    settled = settled_share(sampled) if sampled is not None and method == "permutations" else 1.0
    return Contributions(method, values, errors, alone, everything, nothing, interactions, len(known), single, settled)


def full_subset(k: int) -> int:
    """All of k passages."""
    return (1 << k) - 1


def members(mask: int) -> list[int]:
    """Numbers of the passages in a subset, in order."""
    return [i for i in range(mask.bit_length()) if mask >> i & 1]


def _base(k: int) -> list[int]:
    """The subsets that every method needs: none, all, and all but each passage."""
    return [0, full_subset(k), *(full_subset(k) ^ 1 << i for i in range(k))]


def leave_one_out(values: SubsetValues, k: int) -> Floats:
    """What the answer loses when each passage is removed from the whole context; passages × sentences."""
    everything = values[full_subset(k)]
    losses = [everything - values[full_subset(k) ^ 1 << i] for i in range(k)]
    return np.array(losses).reshape(k, len(everything))


def shapley_values(values: SubsetValues, k: int) -> Floats:
    """The mean gain from adding each passage, over all orders of the k passages; passages × sentences.

    φ_i = Σ_{S ∌ i} |S|! (k−1−|S|)! / k! · (v(S ∪ i) − v(S)). The values sum to v(all) − v(none).
    """
    table = np.array([values[mask] for mask in range(1 << k)])
    masks, sizes = np.arange(1 << k), _sizes(k)
    weights = np.array([1 / (k * comb(k - 1, size)) if size < k else 0.0 for size in range(k + 1)])
    found = np.empty((k, table.shape[1]))
    for i in range(k):
        without = masks[masks >> i & 1 == 0]
        found[i] = weights[sizes[without]] @ (table[without | 1 << i] - table[without])
    return found


def shapley_interactions(values: SubsetValues, k: int) -> Floats:
    """The Shapley interaction index of each two passages, for the whole answer; symmetric, with a diagonal of 0.

    I_ij is the mean of v(S ∪ ij) − v(S ∪ i) − v(S ∪ j) + v(S) with weights |S|! (k−2−|S|)! / (k−1)!. It is 0 if they
    do the same whether or not the other is there, negative if they replace and positive if they need each other.
    """
    table = np.array([float(values[mask].sum()) for mask in range(1 << k)])
    masks, sizes = np.arange(1 << k), _sizes(k)
    weights = np.array([1 / ((k - 1) * comb(k - 2, size)) if size < k - 1 else 0.0 for size in range(k + 1)])
    found = np.zeros((k, k))
    for i in range(k):
        for j in range(i):
            one, two = 1 << i, 1 << j
            rest = masks[(masks & (one | two)) == 0]
            mixed = table[rest | one | two] - table[rest | one] - table[rest | two] + table[rest]
            found[i, j] = found[j, i] = weights[sizes[rest]] @ mixed
    return found


def _sizes(k: int) -> npt.NDArray[np.int64]:
    """The number of passages in each subset."""
    return np.array([mask.bit_count() for mask in range(1 << k)], dtype=np.int64)


Order = tuple[int, ...]


class SampledContributions(NamedTuple):
    """Estimated Shapley values (passages × sentences), and what is known of their error for the whole answer."""

    values: Floats
    errors: Floats
    """Standard error of each passage's contribution to the whole answer."""
    difference_errors: Floats
    """Standard error of the difference between any two contributions, passages × passages."""


def _sample(asker: SubsetAsker, design: Design, seed: str) -> Program[SampledContributions]:
    """Add orders until the ranking is certain enough, all subsets are known, or the next would take too many."""
    drawn, most = random_orders(asker.k, seed), design.most_subsets(asker.k)
    orders: list[Order] = []
    found: SampledContributions | None = None
    while found is None or (settled_share(found) < 1 and not asker.knows_all):
        more = list(islice(drawn, 2 * (MORE_PAIRS if orders else FIRST_PAIRS)))
        while len(more) > (0 if found else 4) and len(asker.values) + len(asker.missing(_passed(asker.k, more))) > most:
            more = more[:-2]
        if not more:
            break
        yield from asker.ask(_passed(asker.k, more))
        orders += more
        found = estimate(asker.values, orders)
    assert found is not None
    return found


def random_orders(k: int, seed: str) -> Iterator[Order]:
    """An endless sequence of orders, each followed by its reverse."""
    draw = random.Random(seed)
    while True:
        order = tuple(draw.sample(range(k), k))
        yield order
        yield order[::-1]


def prefixes(order: Order) -> list[int]:
    """The subsets that an order passes through, from none to all passages."""
    return list(accumulate((1 << i for i in order), initial=0))


def _passed(k: int, orders: Iterable[Order]) -> list[int]:
    return [*_base(k), *(mask for order in orders for mask in prefixes(order))]


def estimate(values: SubsetValues, orders: Sequence[Order]) -> SampledContributions:
    """Mean gain of each passage over orders, which come in antithetic pairs: 2 pairs or more."""
    gains = np.array([_gains(values, order) for order in orders])
    paired = (gains[::2] + gains[1::2]) / 2
    total, scale = paired.sum(axis=2), np.sqrt(len(paired))
    apart = total[:, :, None] - total[:, None, :]
    return SampledContributions(
        paired.mean(axis=0), total.std(axis=0, ddof=1) / scale, apart.std(axis=0, ddof=1) / scale
    )


def _gains(values: SubsetValues, order: Order) -> Floats:
    """What each passage adds where it comes in an order; passages × sentences."""
    steps = np.array([values[mask] for mask in prefixes(order)])
    found = np.empty((len(order), steps.shape[1]))
    found[list(order)] = np.diff(steps, axis=0)
    return found


def settled_share(found: SampledContributions) -> float:
    """The share of neighbours in the ranking whose order is certain enough; 1 if all are.

    Two neighbours are settled if their difference is more than its standard errors allow (`CERTAINTY`, one-sided), or
    is known to within `TOLERANCE`.
    """
    totals = found.values.sum(axis=1)
    order = np.argsort(-totals, kind="stable")
    if len(order) < 2:
        return 1.0
    gaps = totals[order[:-1]] - totals[order[1:]]
    errors = NormalDist().inv_cdf(CERTAINTY) * found.difference_errors[order[:-1], order[1:]]
    return float(np.mean((gaps > errors) | (errors <= TOLERANCE)))
