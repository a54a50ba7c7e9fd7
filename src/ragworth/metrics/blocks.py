"""Inputs of metrics: a block of contexts as padded arrays, and the ground truth of their queries.

A block holds one system's contexts for n queries, one row each, in the order shown. Cells beyond the end of a context
and unknown values are NaN (for ratings: −∞). The truth holds what doesn't depend on the system: all judged values and
rating matrices of the same n queries.
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
SmallInts = npt.NDArray[np.int32]

T = TypeVar("T")


def sum_by_row(row: Ints, values: Floats, n: int) -> Floats:
    """Sum ``values`` in each of n rows."""
    return np.bincount(row, values, minlength=n).astype(np.float64, copy=False)  # bincount of nothing gives integers


def empty_floats() -> Floats:
    return np.empty(0)


def empty_ints() -> Ints:
    return np.empty(0, dtype=np.int64)


class AspectJudgments(NamedTuple):
    """All judgments of one aspect for n queries.

    Attributes
    ----------
    query, value: of every judged passage, by query and then by value descending.
    failed: number of failed judgments per query.
    """

    query: Ints
    value: Floats
    failed: Ints

    def sums(self, weight: Floats | float = 1.0) -> Floats:
        """Sum the values of each query, weighted by position."""
        return sum_by_row(self.query, self.value * weight, len(self.failed))

    def places(self) -> Ints:
        """Position of each value within its query, from 1 for the highest."""
        first = np.searchsorted(self.query, np.arange(len(self.failed)))
        return np.arange(1, len(self.query) + 1) - first[self.query]


@dataclass(frozen=True, eq=False)
class Truth:
    """Ground truth of n queries, independent of systems.

    Attributes
    ----------
    size: n.
    judged_query, judged_value: relevance of every judged passage, by query and then by value descending.
    failed: number of failed relevance judgments per query.
    aspects: functions that build the judgments of other aspects; see :meth:`judged`.
    rated: for each query a matrix of ratings, passages × sub-questions, in the order given; −∞ if unrated, NaN if the
        rating failed.
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
        """Cache ``make()``, so that values depending only on queries are computed once for all systems."""
        if key not in self._memo:
            self._memo[key] = make()
        return cast(T, self._memo[key])

    def judged(self, aspect: str) -> AspectJudgments:
        """All judgments of an aspect other than relevance, sorted on first use because few metrics need them."""
        return self.once(("judged", aspect), self.aspects[aspect])

    def relevant(self, rel: float) -> Floats:
        """Number of passages of each query with relevance ``rel`` or above."""
        return self.once(("relevant", rel), lambda: self._count(self.judged_value >= rel))

    def irrelevant(self, rel: float) -> Floats:
        """Number of passages judged irrelevant: below ``rel``, but not negative (which means not pooled)."""
        return self.once(("irrelevant", rel), lambda: self._count((self.judged_value < rel) & (self.judged_value >= 0)))

    def _count(self, which: Bools) -> Floats:
        return np.bincount(self.judged_query[which], minlength=self.size).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Block:
    """One system's contexts for n queries.

    Attributes
    ----------
    shown: (n) number of passages in the context.
    relevance: (n × depth) relevance of the passage at each rank; NaN if unjudged.
    failed: (n × depth) whether its relevance judgment failed; None if none did.
    aspects: (n × depth) other judgments by aspect, such as the probability that the model abstains when shown only
        that passage, or the quality of its answer; NaN if unjudged.
    ratings: (n × depth × sub-questions) −∞ if unrated, NaN if the rating failed.
    tokens: (n × depth) length of the passage.
    pools: relevant passages found by several runs, by relevance level; only for estimates that need them.
    ended: (n) whether the system retrieved no more than these passages; None if unknown.
    """

    truth: Truth
    shown: Ints
    relevance: Floats
    failed: Bools | None = None
    aspects: Mapping[str, Floats] = field(default_factory=dict)
    ratings: Floats | None = None
    tokens: Floats | None = None
    pools: dict[float, RelevantPool] = field(default_factory=dict)
    ended: Bools | None = None
    _memo: dict[Hashable, object] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return len(self.shown)

    @property
    def abstention(self) -> Floats | None:
        """(n × depth) probability that the model abstains when shown only that passage."""
        return self.aspects.get("abstention")

    def within(self, k: float) -> Floats:
        """Number of passages actually shown up to the cutoff; ``k`` is infinite without one."""
        return np.minimum(self.shown, k).astype(np.float64)

    def upto(self, k: float) -> int:
        """The cutoff as a column index to slice with."""
        return int(min(k, self.relevance.shape[1]))

    def hits(self, rel: float) -> Hits:
        """Positions of the relevant passages."""
        key = ("hits", rel)
        if key not in self._memo:
            # Several times as fast as np.nonzero of two dimensions.
            query, rank = np.divmod(np.flatnonzero(self.relevance >= rel), self.relevance.shape[1])
            self._memo[key] = Hits(self.size, query, rank + 1)
        return cast(Hits, self._memo[key])

    def filled(self, k: float) -> Bools:
        """(n × depth up to k) whether there is a passage."""
        ranks = np.arange(1, self.upto(k) + 1)
        return ranks[None, :] <= self.shown[:, None]


@dataclass(frozen=True, eq=False)
class Hits:
    """Relevant passages of a block as query numbers and ranks (from 1), in that order."""

    size: int
    query: Ints
    rank: Ints

    def count(self, k: npt.ArrayLike) -> Floats:
        """Number of hits in each context up to the cutoff, which may differ between contexts."""
        return self.sum(np.ones(len(self.query)), k)

    def sum(self, values: Floats, k: npt.ArrayLike) -> Floats:
        """Sum over each context's hits up to the cutoff."""
        near = self.rank <= np.broadcast_to(np.asarray(k), self.size)[self.query]
        return sum_by_row(self.query[near], values[near], self.size)

    def sequence(self) -> Ints:
        """Number of each hit within its context, from 1."""
        first = np.searchsorted(self.query, np.arange(self.size))
        return np.arange(1, len(self.query) + 1) - first[self.query]


@dataclass(frozen=True, eq=False)
class RelevantPool:
    """Relevant passages found by several runs, per query.

    Attributes
    ----------
    union: by any run.
    mine, others, shared: by this run, by any other, by both.
    """

    union: Floats
    mine: Floats
    others: Floats
    shared: Floats
