"""Exact nearest-neighbour search by inner product, comparing all passages.

Products of blocks are computed in single precision, only to select passages that may be among the best: those whose
score, given the largest possible error, could reach the k-th best. Their scores are then computed in double precision,
each in the same way, so that equal vectors have equal scores wherever they are.
"""

from __future__ import annotations

import numpy as np

from ragworth.retrieval.encoders.contract import Floats
from ragworth.retrieval.hits import Doubles, Ints, SearchHits

QUERIES, ROWS = 512, 16384
"""Queries and passages compared at a time; their product bounds memory."""

MAX_UNIT_LENGTH = 1.001
"""Upper bound on the length of a normalised vector."""

PAIRS = 8192
"""Scores computed in double precision at a time."""


def search_exact(
    vectors: Floats, queries: Floats, places: Ints, k: int, longest: float | None = None
) -> list[SearchHits]:
    """The ``k`` nearest vectors to each query, best first; `places` is the order of ids, for ties.

    ``longest``: upper bound on the vectors' length; computed if unknown.
    """
    longest = max_norm(vectors) if longest is None else longest
    found: list[SearchHits] = []
    for low in range(0, len(queries), QUERIES):
        search = _ExactSearch(queries[low : low + QUERIES], k, longest)
        for start in range(0, len(vectors), ROWS):
            search.look(vectors, start, places)
        found += search.found()
    return found


def pair_products(vectors: Floats, rows: Ints, queries: Floats, owners: Ints) -> Doubles:
    """Inner product of each pair of a vector and a query, in double precision."""
    scores = np.empty(len(rows), dtype=np.float64)
    for low in range(0, len(rows), PAIRS):
        part = slice(low, low + PAIRS)
        left, right = vectors[rows[part]].astype(np.float64), queries[owners[part]].astype(np.float64)
        scores[part] = np.einsum("ij,ij->i", left, right)
    return scores


def rounding_error(queries: Floats, longest: float) -> Doubles:
    """Maximum error of each query's products in single precision; within it, two of them may swap."""
    lengths = np.sqrt(np.einsum("ij,ij->i", queries, queries))
    # Rounding of a sum of products: (n + 2) · 2⁻²⁴ of the lengths' product, and as much for the comparison itself.
    error: Doubles = (queries.shape[1] + 4) * 2.0**-23 * lengths.astype(np.float64) * longest
    return error


def max_norm(vectors: Floats) -> float:
    """Length of the longest vector."""
    squares = [
        float(np.einsum("ij,ij->i", part, part).max())
        for low in range(0, len(vectors), ROWS)
        if len(part := vectors[low : low + ROWS])
    ]
    return float(np.sqrt(max(squares, default=0.0)))


class _ExactSearch:
    """The best passages so far for some queries."""

    def __init__(self, queries: Floats, k: int, longest: float) -> None:
        self.queries = queries
        self.k = k
        self.error = rounding_error(queries, longest)
        self.last = np.full(len(queries), -np.inf)
        """Score of the k-th best passage of each query, if there are so many."""
        self.owners = np.empty(0, dtype=np.int64)
        self.rows = np.empty(0, dtype=np.int64)
        self.scores = np.empty(0, dtype=np.float64)

    def look(self, vectors: Floats, start: int, places: Ints) -> None:
        """Compare the queries with the vectors of a block."""
        block = vectors[start : start + ROWS]
        products = self.queries @ block.T
        least = self.last - self.error
        if len(block) > self.k and not np.isfinite(self.last).all():
            inside = np.partition(products, len(block) - self.k, axis=1)[:, len(block) - self.k]
            least = np.maximum(least, inside - 2 * self.error)
        flat = np.flatnonzero(products >= least.astype(np.float32)[:, None])
        owners, columns = np.divmod(flat, len(block))
        rows = columns + start
        self._merge(owners, rows, pair_products(vectors, rows, self.queries, owners), places)

    def _merge(self, owners: Ints, rows: Ints, scores: Doubles, places: Ints) -> None:
        """Add passages, and keep the k best of each query."""
        owners, rows = np.concatenate([self.owners, owners]), np.concatenate([self.rows, rows])
        scores = np.concatenate([self.scores, scores])
        order = np.lexsort((-places[rows], -scores, owners))
        sizes = np.bincount(owners, minlength=len(self.queries))
        starts = np.cumsum(sizes) - sizes
        rank = np.arange(len(order)) - np.repeat(starts, sizes)
        order = order[rank < self.k]
        self.owners, self.rows, self.scores = owners[order], rows[order], scores[order]
        full = np.flatnonzero(sizes >= self.k)
        kept = np.minimum(sizes, self.k)
        self.last[full] = self.scores[np.cumsum(kept)[full] - 1]

    def found(self) -> list[SearchHits]:
        ends = np.cumsum(np.bincount(self.owners, minlength=len(self.queries)))[:-1]
        parts = zip(np.split(self.rows, ends), np.split(self.scores, ends), strict=True)
        return [SearchHits(rows, scores) for rows, scores in parts]
