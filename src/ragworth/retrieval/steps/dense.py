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

from ragworth.data import Contexts
from ragworth.judging.contract import option as named
from ragworth.retrieval.encoders import Encoder, Floats, load_vectors, normalize, open_encoder
from ragworth.retrieval.hits import (
    NO_HITS,
    Ints,
    SearchHits,
    contexts_from_hits,
    id_order,
    kth_largest,
    nonblank_rows,
    top_hits,
)
from ragworth.retrieval.pipeline import Need, Place, Step, StepContext, argument

PRODUCTS = 1 << 26
"""Products of queries and passages in memory at a time."""


def nearest(vectors: Floats, queries: Floats, order: Ints, k: int) -> list[SearchHits]:
    """Return the ``k`` nearest vectors to each query, best first; `order` is that of ids, for ties.

    Products in single precision only select the passages that may be among the best, given the largest possible
    rounding error. Their scores are then computed in double precision, each in the same way, so that equal vectors have
    equal scores wherever they are.
    """
    # Rounding of a sum of n products: (n + 2) · 2⁻²⁴ of the lengths' product; twice, for both passages compared.
    error = (vectors.shape[1] + 4) * 2.0**-22 * max_norm(vectors)
    at_once = max(1, PRODUCTS // max(1, len(vectors)))
    hits: list[SearchHits] = []
    for start in range(0, len(queries), at_once):
        part = queries[start : start + at_once]
        for query, products in zip(part, part @ vectors.T, strict=True):
            least = kth_largest(products, k) - error * float(np.linalg.norm(query))
            rows = np.flatnonzero(products >= least).astype(np.int64)
            scores = np.einsum("ij,j->i", vectors[rows].astype(np.float64), query.astype(np.float64))
            hits.append(top_hits(rows, scores, order, k))
    return hits


def max_norm(vectors: Floats) -> float:
    """Return the length of the longest vector."""
    return float(np.sqrt(np.einsum("ij,ij->i", vectors, vectors).max(initial=0.0)))


@dataclass(frozen=True)
class Dense(Step):
    """Passages by the similarity of their vectors to the query's."""

    model: str = argument("embedded", "encoder: embedded, or st:NAME_OR_FOLDER")
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
        problems = super().problems(context)
        if self.among == "judged" and (lack := context.why_missing("relevance")):
            problems.append(f"dense among judged passages lacks an input: {lack}")
        return problems

    def sources(self, context: StepContext) -> tuple[str, ...]:
        return (f"{self.model} {self.encoder(context).revision}",)

    def encoder(self, context: StepContext) -> Encoder:
        """Return the model, loaded on first use."""
        return open_encoder(self.model, context.folder)

    def apply(self, before: Contexts | None, context: StepContext) -> Contexts:
        ids, texts = context.collection.passages["passage"], context.collection.passages["text"]
        queries = context.queries["text"]
        rows, asked = nonblank_rows(texts), nonblank_rows(queries)
        labels = [context.labels.get(query, {}) for query in context.queries["query"].gather(asked)]
        if self.among == "judged":
            rows = rows[ids.gather(rows).is_in(list(set().union(*labels))).to_numpy()]
        hits = [NO_HITS] * len(queries)
        if len(rows) and len(asked):
            model, order = self.encoder(context), id_order(ids)[rows]
            cosine = self.similarity == "cosine" or (self.similarity == "model" and model.normalised)
            prefix, cache, progress = self.passage_prefix or None, context.cache, context.progress
            vectors = load_vectors(model, texts.gather(rows), cache, cosine=cosine, prefix=prefix, progress=progress)
            asked_vectors = model.encode(queries.gather(asked).to_list(), "query", self.query_prefix or None)
            asked_vectors = normalize(asked_vectors) if cosine else asked_vectors
            if self.among == "judged":
                place = {passage: number for number, passage in enumerate(ids.gather(rows))}
                best = []
                for query, candidates in zip(asked_vectors, labels, strict=True):
                    own = np.array([place[each] for each in candidates if each in place], dtype=np.int64)
                    (found,) = nearest(vectors[own], query[None], order[own], context.depth)
                    best.append(SearchHits(own[found.rows], found.scores))
            else:
                best = nearest(vectors, asked_vectors, order, context.depth)
            for number, each in zip(asked, best, strict=True):
                hits[number] = SearchHits(rows[each.rows], each.scores)
        return contexts_from_hits(hits, context.queries["query"], ids)
