"""Which subsets of a context to ask about, round by round, and what comes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice
from statistics import NormalDist
from typing import Any, Literal, cast

import numpy as np

from ragworth.calls.programs import Program
from ragworth.contribution import permutations, shapley
from ragworth.contribution.permutations import SampledContributions
from ragworth.contribution.subsets import Floats, full_subset, leave_one_out, members
from ragworth.llm.contract import Failure, Request, Response

Method = Literal["leave-one-out", "exact", "permutations"]

METHODS = ("auto", "leave-one-out", "exact", "permutations")

EXACT_UP_TO = 6
"""Passages up to which all subsets are asked about by default: 64."""

MOST_EXACT = 12
"""Passages beyond which all subsets are too many even if asked for."""

FIRST_PAIRS, MORE_PAIRS = 4, 2
"""Pairs of orders in the first round, and in each of the others."""


@dataclass(frozen=True)
class Design:
    """How contributions are computed.

    Attributes
    ----------
    method: by default all subsets for up to 6 passages, and random orders for more.
    subsets: most subsets of a context to ask about, where not all are.
    certainty: probability with which neighbours in the ranking must be in the right order to stop early.
    tolerance: difference in nats that doesn't matter.
    seed: of random orders.
    """

    method: str = "auto"
    subsets: int = 256
    certainty: float = 0.9
    tolerance: float = 0.05
    seed: int = 0

    def method_for(self, k: int) -> Method:
        """The method for a context of k passages."""
        if self.method != "auto":
            return cast(Method, self.method)
        return "exact" if k <= EXACT_UP_TO else "permutations"

    def most_subsets(self, k: int) -> int:
        """The most subsets of a context of k passages that are asked about."""
        method = self.method_for(k)
        if method == "exact":
            return 1 << k
        if method == "leave-one-out":
            return min(1 << k, k + 2)
        return min(1 << k, max(self.subsets, k + 2 + 4 * (k - 1)))


@dataclass(frozen=True)
class Contributions:
    """What came of one context: contributions in the order of its passages, in nats.

    Attributes
    ----------
    values: contributions, passages × sentences of the answer.
    errors: standard error of each passage's contribution to the whole answer; NaN if unknown, 0 if exact.
    alone: what removing each passage from the whole context takes from the answer.
    everything, nothing: log-probability of each sentence with all passages, and with none.
    interactions: of each two passages; None if not asked for.
    subsets: how many subsets were asked about.
    single: what each passage adds to the answer if it is the only one; None if not asked about.
    settled: share of neighbours in the ranking whose order is certain enough; 1 if nothing was sampled.
    """

    method: Method
    values: Floats
    errors: Floats
    alone: Floats
    everything: Floats
    nothing: Floats
    interactions: Floats | None
    subsets: int
    single: Floats | None = None
    settled: float = 1.0

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
    method = design.method_for(asker.k)
    if asker.k == 0:
        yield from asker.ask([0])
        return _found(asker, method, np.zeros((0, len(asker.values[0]))), np.zeros(0), None)
    if method == "exact":
        return (yield from _exact(asker))
    if method == "leave-one-out":
        yield from asker.ask([0, *_without_one(asker.k)])
        values = leave_one_out(asker.values, asker.k)
        return _found(asker, method, values, np.zeros(asker.k), None)
    return (yield from _permutations(asker, design, f"{design.seed} {seed}"))


def _without_one(k: int) -> list[int]:
    """All passages, and all but each one."""
    return [full_subset(k), *(full_subset(k) ^ 1 << i for i in range(k))]


def _found(
    asker: SubsetAsker, method: Method, values: Floats, errors: Floats, interactions: Floats | None, **more: Any
) -> Contributions:
    k, known = asker.k, asker.values
    alone = leave_one_out(known, k).sum(axis=1) if k else np.zeros(0)
    ones = [known[1 << i] for i in range(k) if 1 << i in known]
    single = np.array([float((one - known[0]).sum()) for one in ones]) if len(ones) == k else None
    everything, nothing = known[full_subset(k)], known[0]
    return Contributions(method, values, errors, alone, everything, nothing, interactions, len(known), single, **more)


def _exact(asker: SubsetAsker) -> Program[Contributions]:
    k = asker.k
    yield from asker.ask(range(1 << k))
    interactions = shapley.shapley_interactions(asker.values, k) if k > 1 else np.zeros((k, k))
    return _found(asker, "exact", shapley.shapley_values(asker.values, k), np.zeros(k), interactions)


def _permutations(asker: SubsetAsker, design: Design, seed: str) -> Program[Contributions]:
    """Add orders until the ranking is certain enough, all subsets are known, or the next would take too many."""
    drawn = permutations.random_orders(asker.k, seed)
    base = [0, *_without_one(asker.k)]
    orders: list[tuple[int, ...]] = []
    found: SampledContributions | None = None
    settled = 0.0
    z = NormalDist().inv_cdf(design.certainty)
    most = design.most_subsets(asker.k)
    while settled < 1:
        more = list(islice(drawn, 2 * (MORE_PAIRS if orders else FIRST_PAIRS)))
        least = 0 if found else 4
        while len(more) > least and len(asker.values) + len(asker.missing(_subsets_of(base, more))) > most:
            more = more[:-2]
        if not more:
            break
        yield from asker.ask(_subsets_of(base, more))
        if asker.knows_all:
            return (yield from _exact(asker))
        orders += more
        found = permutations.estimate(asker.values, orders)
        settled = permutations.settled_share(found, z, design.tolerance)
    assert found is not None
    return _found(asker, "permutations", found.values, found.errors, None, settled=settled)


def _subsets_of(base: list[int], orders: Iterable[tuple[int, ...]]) -> list[int]:
    return [*base, *(mask for order in orders for mask in permutations.prefixes(order))]
