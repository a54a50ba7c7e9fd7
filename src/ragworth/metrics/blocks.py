"""What metrics read: a block of contexts as padded arrays, and the truth about their queries.

A block holds one system's contexts for n queries, one row each, in the order shown; beyond a
context's end, and where nothing is known, there is NaN (for ratings: −∞). The truth holds what does not
depend on the system: all judged values and all rating matrices of the same n queries.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

T = TypeVar("T")


def sum_by_row(row: Ints, values: Floats, n: int) -> Floats:
    """The sum of ``values`` in each of n rows."""
    return np.bincount(row, values, minlength=n).astype(np.float64, copy=False)  # of nothing: whole numbers


def empty_floats() -> Floats:
    return np.empty(0)


def empty_ints() -> Ints:
    return np.empty(0, dtype=np.int64)


class AspectJudgments(NamedTuple):
    """All judgments of one aspect for n queries.

    Attributes
    ----------
    query, value: of every judged passage, by query and then by value descending.
    failed: how many judgments of each query have no value.
    """

    query: Ints
    value: Floats
    failed: Ints

    def sums(self, weight: Floats | float = 1.0) -> Floats:
        """For each query the sum of its values, each times the weight of its place."""
        return sum_by_row(self.query, self.value * weight, len(self.failed))

    def places(self) -> Ints:
        """1 for the highest value of a query, 2 for the next, …"""
        first = np.searchsorted(self.query, np.arange(len(self.failed)))
        return np.arange(1, len(self.query) + 1) - first[self.query]


@dataclass(frozen=True, eq=False)
class Truth:
    """What is known about n queries, whatever a system shows for them.

    Attributes
    ----------
    size: n.
    judged_query, judged_value: relevance of every judged passage, by query and then by value descending.
    failed: how many relevance judgments of each query have no value.
    aspects: what makes the judgments of the other aspects; see :meth:`judged`.
    rated: for each query a matrix of ratings, passages × sub-questions, in the order given; −∞ where unrated,
        NaN where a rating was tried and failed.
    rated_by_id: for each query the rows of that matrix by passage id descending.
    rated_tokens: for each query the token counts of those passages.
    """

    size: int
    judged_query: Ints = field(default_factory=empty_ints)
    judged_value: Floats = field(default_factory=empty_floats)
    failed: Ints = field(default_factory=empty_ints)
    aspects: Mapping[str, Callable[[], AspectJudgments]] = field(default_factory=dict)
    rated: tuple[Floats, ...] = ()
    rated_by_id: tuple[Ints, ...] = ()
    rated_tokens: tuple[Floats, ...] = ()
    _memo: dict[Hashable, object] = field(default_factory=dict)

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """``make()``, remembered: what depends on queries alone is computed once for all systems."""
        if key not in self._memo:
            self._memo[key] = make()
        return cast(T, self._memo[key])

    def judged(self, aspect: str) -> AspectJudgments:
        """All judgments of an aspect other than relevance; sorted when first asked for, as few metrics do."""
        return self.once(("judged", aspect), self.aspects[aspect])

    def relevant(self, rel: float) -> Floats:
        """How many judged passages of each query are relevant at ``rel`` or above."""
        return self.once(("relevant", rel), lambda: self._count(self.judged_value >= rel))

    def irrelevant(self, rel: float) -> Floats:
        """How many were judged irrelevant: below ``rel``, but not negative (which says not pooled)."""
        return self.once(("irrelevant", rel), lambda: self._count((self.judged_value < rel) & (self.judged_value >= 0)))

    def _count(self, which: Bools) -> Floats:
        return np.bincount(self.judged_query[which], minlength=self.size).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Block:
    """One system's contexts for n queries.

    Attributes
    ----------
    shown: (n) how many passages the context holds.
    relevance: (n × depth) relevance of the passage at each rank; NaN where it was not judged.
    failed: (n × depth) whether judging its relevance was tried and gave no value; None when it never was.
    aspects: (n × depth) by aspect, what else is known of the passage at each rank: the probability that the model
        abstains when shown it alone, how good its answer is then, …; NaN where that was not judged.
    ratings: (n × depth × sub-questions) −∞ where unrated, NaN where rating was tried and failed.
    tokens: (n × depth) length of the passage.
    pools: by relevance level, what several runs found together; only for estimates that ask for it.
    """

    truth: Truth
    shown: Ints
    relevance: Floats
    failed: Bools | None = None
    aspects: Mapping[str, Floats] = field(default_factory=dict)
    ratings: Floats | None = None
    tokens: Floats | None = None
    pools: dict[float, RelevantPool] = field(default_factory=dict)
    _memo: dict[Hashable, object] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return len(self.shown)

    @property
    def abstention(self) -> Floats | None:
        """(n × depth) probability that the model abstains when shown that passage alone."""
        return self.aspects.get("abstention")

    def within(self, k: float) -> Floats:
        """How many passages are really shown up to the cutoff; ``k`` is infinite where there is none."""
        return np.minimum(self.shown, k).astype(np.float64)

    def upto(self, k: float) -> int:
        """The cutoff as a column number to slice with."""
        return int(min(k, self.relevance.shape[1]))

    def hits(self, rel: float) -> Hits:
        """Where the relevant passages are."""
        key = ("hits", rel)
        if key not in self._memo:
            query, rank = np.nonzero(self.relevance >= rel)
            self._memo[key] = Hits(self.size, query, rank + 1)
        return cast(Hits, self._memo[key])

    def filled(self, k: float) -> Bools:
        """(n × depth up to k) where there is a passage."""
        ranks = np.arange(1, self.upto(k) + 1)
        return ranks[None, :] <= self.shown[:, None]


@dataclass(frozen=True, eq=False)
class Hits:
    """Relevant passages of a block: query number and rank, in that order; ranks from 1."""

    size: int
    query: Ints
    rank: Ints

    def count(self, k: npt.ArrayLike) -> Floats:
        """How many each context has up to the cutoff, which may differ from one to the next."""
        return self.sum(np.ones(len(self.query)), k)

    def sum(self, values: Floats, k: npt.ArrayLike) -> Floats:
        """The sum over each context's hits up to the cutoff."""
        near = self.rank <= np.broadcast_to(np.asarray(k), self.size)[self.query]
        return sum_by_row(self.query[near], values[near], self.size)

    def sequence(self) -> Ints:
        """1 for the first hit of a context, 2 for the second, …"""
        first = np.searchsorted(self.query, np.arange(self.size))
        return np.arange(1, len(self.query) + 1) - first[self.query]


@dataclass(frozen=True, eq=False)
class RelevantPool:
    """Relevant passages found by several runs, for each query.

    Attributes
    ----------
    union: by any run.
    mine, others, shared: by this run, by any other, by both.
    """

    union: Floats
    mine: Floats
    others: Floats
    shared: Floats
