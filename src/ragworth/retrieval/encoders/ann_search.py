"""Approximate nearest-neighbour search with an inverted file of faiss.

Vectors are clustered with a fixed seed, and a query is compared only with those of its nearest clusters. Results are
scored and ordered as in an exact search; vectors in other clusters are missed.
"""

from __future__ import annotations

import math
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ragworth.retrieval.artifact_cache import digest, load_or_build
from ragworth.retrieval.encoders.contract import Floats
from ragworth.retrieval.encoders.exact_search import ROWS, max_norm, pair_products, rounding_error
from ragworth.retrieval.hits import Ints, SearchHits

FILE = "groups.faiss"
MIN_PER_GROUP = 39
"""Minimum average size of a cluster: fewer vectors say little about its position."""

EXTRA_CANDIDATES = 16
"""Extra vectors requested."""


def group_count(total: int) -> int:
    """Number of clusters for so many vectors."""
    return max(1, min(round(4 * math.sqrt(total)), total // MIN_PER_GROUP))


def load_index(vectors: Floats, name: str, cache: Path | None) -> Any:
    """Load the index of vectors stored under a name, memory-mapped from the cache if it is there."""
    import faiss

    facts = {"vectors": name, "groups": group_count(len(vectors)), "faiss": version("faiss-cpu")}
    return load_or_build(
        cache,
        f"ann-{digest(facts)}",
        make=lambda: _build_index(vectors),
        save=lambda index, folder: faiss.write_index(index, str(folder / FILE)),
        load=lambda folder: faiss.read_index(str(folder / FILE), faiss.IO_FLAG_MMAP | faiss.IO_FLAG_READ_ONLY),
    )


def _build_index(vectors: Floats) -> Any:
    import faiss

    width, count = vectors.shape[1], group_count(len(vectors))
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(width), width, count, faiss.METRIC_INNER_PRODUCT)
    index.cp.min_points_per_centroid = 1  # few vectors are one cluster: no reason to warn
    sample = np.random.default_rng(0).permutation(len(vectors))[: count * 256]
    index.train(np.ascontiguousarray(vectors[np.sort(sample)]))
    for low in range(0, len(vectors), ROWS):
        index.add(np.ascontiguousarray(vectors[low : low + ROWS]))
    return index


def search_approximate(
    index: Any, vectors: Floats, queries: Floats, places: Ints, k: int, probes: int, longest: float | None = None
) -> list[SearchHits]:
    """The ``k`` nearest to each query among the vectors compared, best first, whatever k is.

    faiss compares in single precision and breaks ties arbitrarily, so a few more are requested; if even the last of
    them could be among the first k, all that could.
    """
    index.nprobe = min(probes, index.nlist)
    asked = min(k + EXTRA_CANDIDATES, len(vectors))
    queries = np.ascontiguousarray(queries)
    products, numbers = index.search(queries, asked)
    errors = rounding_error(queries, max_norm(vectors) if longest is None else longest)
    found = []
    for number, (row, error) in enumerate(zip(numbers, errors.tolist(), strict=True)):
        rows = row[row >= 0].astype(np.int64)
        best = _rescore(vectors, rows, queries, number, places)
        if len(rows) == asked < len(vectors) and products[number, -1] + error >= best.scores[k - 1]:
            above = np.nextafter(np.float32(best.scores[k - 1] - 2 * error), np.float32(-np.inf))
            _, _, rows = index.range_search(queries[number : number + 1], float(above))
            best = _rescore(vectors, rows, queries, number, places)
        found.append(SearchHits(best.rows[:k], best.scores[:k]))
    return found


def _rescore(vectors: Floats, rows: Ints, queries: Floats, number: int, places: Ints) -> SearchHits:
    """Some vectors with their scores for one query, best first."""
    scores = pair_products(vectors, rows, queries, np.full(len(rows), number))
    order = np.lexsort((-places[rows], -scores))
    return SearchHits(rows[order], scores[order])
