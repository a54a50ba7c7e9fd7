"""``sparse("NAME")``: rank passages by shared words, with weights learned by a model.

A model of sentence-transformers (such as SPLADE) gives queries and passages weights of words, including words that
don't occur in them. The score is the inner product, in double precision, and only passages that share a word with the
query are retrieved. Blank texts have no words. Equal scores are ordered by passage id, descending.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

from ragworth.errors import InputError
from ragworth.retrieval.contract import Need, Place, Step, StepContext, argument
from ragworth.retrieval.encoders.inverted_index import load_postings
from ragworth.retrieval.encoders.sentence_transformer import SparseTextEncoder
from ragworth.retrieval.hits import NO_HITS, SearchHits, contexts_from_hits, id_order
from ragworth.retrieval.steps.dense import nonblank_rows
from ragworth.tables import Contexts


def open_sparse_encoder(model: str, folder: Path | None) -> SparseTextEncoder:
    """Open a model, shared by name and files so that weights are loaded once."""
    return _cached_encoder(model, folder, SparseTextEncoder(model, folder).revision)


@lru_cache(maxsize=2)
def _cached_encoder(model: str, folder: Path | None, revision: str) -> SparseTextEncoder:
    return SparseTextEncoder(model, folder)


@dataclass(frozen=True)
class Sparse(Step):
    model: str = argument("", "sparse encoder of sentence-transformers: its name, or its folder")

    kind: ClassVar[str] = "sparse"
    title: ClassVar[str] = "passages sharing words with the query, by learned weights"
    place: ClassVar[Place] = "first"
    needs: ClassVar[tuple[Need, ...]] = ("passages", "query texts")

    def check(self) -> None:
        if not self.model:
            raise InputError("sparse lacks a model", expected='a model, such as sparse("naver/splade-v3")')

    def problems(self, context: StepContext) -> list[str]:
        open_sparse_encoder(self.model, context.folder)
        return super().problems(context)

    def sources(self, context: StepContext) -> tuple[str, ...]:
        return (f"{self.model} {open_sparse_encoder(self.model, context.folder).revision}",)

    def apply(self, before: Contexts | None, context: StepContext) -> Contexts:
        passages, queries = context.collection.passages, context.queries
        rows, asked = nonblank_rows(passages["text"]), nonblank_rows(queries["text"])
        found = [NO_HITS] * queries.height
        if len(rows) and len(asked):
            model = open_sparse_encoder(self.model, context.folder)
            index = load_postings(model, passages["text"].gather(rows), context.cache, context.progress)
            weights = model.encode(queries["text"].gather(asked).to_list(), "query")
            places = id_order(passages["passage"])[rows]
            for place, number in enumerate(asked):
                part = slice(weights.ends[place], weights.ends[place + 1])
                best = index.best(weights.words[part], weights.values[part], places, context.depth)
                found[number] = SearchHits(rows[best.rows], best.scores)
        return contexts_from_hits(found, queries["query"], passages["passage"])
