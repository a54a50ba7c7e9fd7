"""Results of a first stage, by passage position in the collection, and their conversion to contexts.

Equal scores are ordered by passage id, descending, also at the cutoff.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ragworth.data import Contexts

Ints = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]


class SearchHits(NamedTuple):
    """Positions of passages in the collection, best first, with their scores."""

    rows: Ints
    scores: Doubles


NO_HITS = SearchHits(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float64))


def nonblank_rows(texts: pl.Series) -> Ints:
    """Return the indices of texts that aren't blank."""
    return np.flatnonzero((texts.str.strip_chars() != "").to_numpy()).astype(np.int64)


def id_order(ids: pl.Series) -> Ints:
    """Return the position of each passage in the order of ids, for ties."""
    return ids.rank("ordinal").to_numpy().astype(np.int64)


def kth_largest(scores: npt.NDArray[np.floating], k: int) -> float:
    """Return the k-th largest score, or −∞ if there are fewer."""
    return float(np.partition(scores, -k)[-k]) if len(scores) > k else -np.inf


def top_hits(rows: Ints, scores: Doubles, order: Ints, k: int) -> SearchHits:
    """Return the ``k`` best of some passages. ``order`` is that of all ids, for ties."""
    best = np.flatnonzero(scores >= kth_largest(scores, k))
    rows, scores = rows[best], scores[best]
    sequence = np.lexsort((-order[rows], -scores))[:k]
    return SearchHits(rows[sequence], scores[sequence])


def contexts_from_hits(hits: Sequence[SearchHits], queries: pl.Series, passages: pl.Series) -> Contexts:
    """Build contexts from the hits of each query."""
    sizes = [len(each.rows) for each in hits]
    return Contexts.trusted(
        pl.DataFrame(
            {
                "query": queries.gather(np.repeat(np.arange(len(hits)), sizes)),
                "rank": np.concatenate([np.arange(1, size + 1, dtype=np.uint32) for size in (*sizes, 0)]),
                "passage": passages.gather(np.concatenate([*(each.rows for each in hits), NO_HITS.rows])),
                "score": np.concatenate([*(each.scores for each in hits), NO_HITS.scores]),
            }
        ).with_columns(pl.lit("run").alias("system"))
    )
