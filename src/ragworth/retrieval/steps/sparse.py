"""``sparse("NAME")``: rank passages by shared words, with weights learned by a model.

A model of sentence-transformers (such as SPLADE) gives queries and passages weights of words, including words that
don't occur in them. The score is the inner product, in double precision, and only passages that share a word with the
query are retrieved. Blank texts have no words. Equal scores are ordered by passage id, descending.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import polars as pl

from ragworth.core.errors import InputError
from ragworth.data import Contexts
from ragworth.retrieval.artifacts import Arrays, digest, load_or_build_arrays, table_fingerprint
from ragworth.retrieval.encoders.sentence_transformer import SparseTextEncoder, TermWeights
from ragworth.retrieval.hits import NO_HITS, SearchHits, contexts_from_hits, id_order, nonblank_rows, top_hits
from ragworth.retrieval.pipeline import Need, Place, Step, StepContext, argument

if TYPE_CHECKING:
    from scipy.sparse import csr_array

FORM = 2
"""Incremented when the same encoder would give different weights."""


@dataclass(frozen=True)
class Sparse(Step):
    """Passages by words that they share with the query, with learned weights."""

    model: str = argument("", "sparse encoder of sentence-transformers: its name, or its folder")

    kind: ClassVar[str] = "sparse"
    title: ClassVar[str] = "passages sharing words with the query, by learned weights"
    place: ClassVar[Place] = "first"
    needs: ClassVar[tuple[Need, ...]] = ("passages", "query texts")

    def check(self) -> None:
        if not self.model:
            raise InputError("sparse lacks a model", expected='a model, such as sparse("naver/splade-v3")')

    def problems(self, context: StepContext) -> list[str]:
        self.encoder(context)
        return super().problems(context)

    def sources(self, context: StepContext) -> tuple[str, ...]:
        return (f"{self.model} {self.encoder(context).revision}",)

    def encoder(self, context: StepContext) -> SparseTextEncoder:
        """Return the model, shared by name and files so that weights are loaded once."""
        revision = SparseTextEncoder(self.model, context.folder).revision
        return _cached_encoder(self.model, context.folder, revision)

    def apply(self, before: Contexts | None, context: StepContext) -> Contexts:
        passages, queries = context.collection.passages, context.queries
        rows, asked = nonblank_rows(passages["text"]), nonblank_rows(queries["text"])
        hits = [NO_HITS] * queries.height
        if len(rows) and len(asked):
            model = self.encoder(context)
            weights = model.encode(queries["text"].gather(asked).to_list(), "query")
            index = load_weights(model, passages["text"].gather(rows), context)
            words = 1 + max(weights.words.max(initial=0), index.words.max(initial=0))
            by_word = weight_matrix(index, words).T.tocsr()
            order = id_order(passages["passage"])[rows]
            asked_words = weight_matrix(weights, words)
            for place, number in enumerate(asked):
                scores = asked_words[[place]] @ by_word
                best = top_hits(scores.indices.astype(np.int64), scores.data, order, context.depth)
                hits[number] = SearchHits(rows[best.rows], best.scores)
        return contexts_from_hits(hits, queries["query"], passages["passage"])


@lru_cache(maxsize=2)
def _cached_encoder(model: str, folder: Path | None, revision: str) -> SparseTextEncoder:
    return SparseTextEncoder(model, folder)


def load_weights(encoder: SparseTextEncoder, texts: pl.Series, context: StepContext) -> TermWeights:
    """Load the weights of passages from the cache, or encode them in blocks, resuming earlier work."""

    def make(block: range) -> Arrays:
        return encoder.encode(texts.slice(block.start, len(block)).to_list(), "passage")._asdict()

    facts = {"form": FORM, "encoder": encoder.revision, "texts": table_fingerprint(texts.to_frame())}
    progress = context.progress and partial(context.progress, f"encoding passages with {encoder.name}")
    return TermWeights(**load_or_build_arrays(context.cache, f"sparse-{digest(facts)}", len(texts), make, progress))


def weight_matrix(weights: TermWeights, words: int) -> csr_array:
    """(texts, words): the weights in double precision."""
    from scipy.sparse import csr_array

    ends = np.concatenate([[0], np.cumsum(weights.counts)])
    return csr_array((weights.values.astype(np.float64), weights.words, ends), shape=(len(weights.counts), words))
