"""``dense``: rank passages by the similarity of their vectors to the query's.

A model encodes queries and passages, and a passage's score is the inner product of its vector with the query's: the
cosine of their angle, unless the model was made for plain products. Every passage has a score, so any number can be
retrieved. Only blank texts have no vector: such a passage is never retrieved, and such a query retrieves nothing.
Equal scores are ordered by passage id, descending. ``among="judged"`` ranks only the passages that have a label for the
query, whatever the label, as when each query comes with candidates of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl

from ragworth.data import Contexts
from ragworth.judging.contract import option as named
from ragworth.retrieval.contract import Need, Place, Step, StepContext, argument
from ragworth.retrieval.encoders import Encoder, open_encoder
from ragworth.retrieval.encoders.contract import Floats, normalize
from ragworth.retrieval.encoders.vector_cache import load_vectors
from ragworth.retrieval.hits import NO_HITS, Doubles, Ints, SearchHits, contexts_from_hits, id_order

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

    Products of blocks are computed in single precision, only to select passages that may be among the best: those whose
    score, given the largest possible error, could reach the k-th best. Their scores are then computed in double
    precision, each in the same way, so that equal vectors have equal scores wherever they are.
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


@dataclass(frozen=True)
class Dense(Step):
    """Dense retrieval with one vector per text."""

    model: str = argument("embedded", "encoder: embedded, onnx:FOLDER or st:NAME_OR_FOLDER")
    similarity: str = named(
        "model", "how vectors are compared; model: as it specifies", choices=("model", "cosine", "dot")
    )
    query_prefix: str = named("", "prefix of queries; by default the model's")
    passage_prefix: str = named("", "prefix of passages; by default the model's")
    among: str = named("all", "all passages, or only those with a label for the query", choices=("all", "judged"))

    kind: ClassVar[str] = "dense"
    title: ClassVar[str] = "passages with vectors near the query's"
    place: ClassVar[Place] = "first"
    needs: ClassVar[tuple[Need, ...]] = ("passages", "query texts")

    def problems(self, context: StepContext) -> list[str]:
        self.encoder(context)
        found = super().problems(context)
        if self.among == "judged" and (lack := context.why_missing("relevance")):
            found.append(f"dense among judged passages lacks an input: {lack}")
        return found

    def sources(self, context: StepContext) -> tuple[str, ...]:
        return (f"{self.model} {self.encoder(context).revision}",)

    def encoder(self, context: StepContext) -> Encoder:
        """The model, loaded on first use."""
        return open_encoder(self.model, context.folder)

    def apply(self, before: Contexts | None, context: StepContext) -> Contexts:
        passages, queries = context.collection.passages, context.queries
        rows, asked = nonblank_rows(passages["text"]), nonblank_rows(queries["text"])
        own: list[Ints] | None = None
        if self.among == "judged":
            labels = [context.labels.get(query, {}) for query in queries["query"].gather(asked)]
            rows = rows[passages["passage"].gather(rows).is_in(list(set().union(*labels))).to_numpy()]
            at = {passage: place for place, passage in enumerate(passages["passage"].gather(rows))}
            own = [np.array([at[each] for each in some if each in at], dtype=np.int64) for some in labels]
        found = [NO_HITS] * queries.height
        if len(rows) and len(asked):
            places = id_order(passages["passage"])[rows]
            best = self.found(passages["text"].gather(rows), queries["text"].gather(asked), places, context, own)
            for number, each in zip(asked, best, strict=True):
                found[number] = SearchHits(rows[each.rows], each.scores)
        return contexts_from_hits(found, queries["query"], passages["passage"])

    def found(
        self, texts: pl.Series, queries: pl.Series, places: Ints, context: StepContext, own: list[Ints] | None = None
    ) -> list[SearchHits]:
        """The best of some texts for each of some queries; ``own``: only of those at these places, for each query."""
        model = self.encoder(context)
        cosine = self.similarity == "cosine" or (self.similarity == "model" and model.normalised)
        prefix = self.passage_prefix or None
        vectors = load_vectors(model, texts, context.cache, cosine=cosine, prefix=prefix, progress=context.progress)
        asked: Floats = model.encode(queries.to_list(), "query", self.query_prefix or None)
        asked = normalize(asked) if cosine else asked
        longest = MAX_UNIT_LENGTH if cosine else None
        if own is not None:
            found = [
                search_exact(vectors[mine], query[None], places[mine], context.depth, longest)[0]
                for mine, query in zip(own, asked, strict=True)
            ]
            return [SearchHits(mine[each.rows], each.scores) for mine, each in zip(own, found, strict=True)]
        return search_exact(vectors, asked, places, context.depth, longest)


def nonblank_rows(texts: pl.Series) -> Ints:
    """Indices of texts that aren't blank."""
    return np.flatnonzero((texts.str.strip_chars() != "").to_numpy()).astype(np.int64)
