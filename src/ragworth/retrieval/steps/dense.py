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

from ragworth.retrieval.contract import Need, Place, Step, StepContext, argument
from ragworth.retrieval.encoders import Encoder, open_encoder
from ragworth.retrieval.encoders.contract import Floats, normalize
from ragworth.retrieval.encoders.exact_search import MAX_UNIT_LENGTH, search_exact
from ragworth.retrieval.encoders.vector_cache import load_vectors
from ragworth.retrieval.hits import NO_HITS, Ints, SearchHits, contexts_from_hits, id_order
from ragworth.tables import Contexts
from ragworth.tasks.options import option as named


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
