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


def id_order(ids: pl.Series) -> Ints:
    """Position of each passage in the order of ids, for ties."""
    return ids.rank("ordinal").to_numpy().astype(np.int64)


def top_hits(scores: Doubles, floor: float, places: Ints, k: int) -> SearchHits:
    """The ``k`` passages with the highest scores above the floor."""
    last = np.partition(scores, -k)[-k] if len(scores) > k else floor
    rows = np.flatnonzero(scores >= last) if last > floor else np.flatnonzero(scores > floor)
    rows = rows[np.lexsort((-places[rows], -scores[rows]))][:k]
    return SearchHits(rows, scores[rows])


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
