"""``sparse("NAME")``: rank passages by shared words, with weights learned by a model.

A model of sentence-transformers (such as SPLADE) gives queries and passages weights of words, including words that
don't occur in them. The score is the inner product, in double precision, and only passages that share a word with the
query are retrieved. Blank texts have no words. Equal scores are ordered by passage id, descending.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl

from ragworth.core.errors import InputError
from ragworth.data import Contexts
from ragworth.retrieval.artifact_cache import digest, table_fingerprint
from ragworth.retrieval.contract import Need, Place, Step, StepContext, argument
from ragworth.retrieval.encoders.block_cache import Arrays, ProgressCallback, load_or_build_in_blocks, with_progress
from ragworth.retrieval.encoders.sentence_transformer import SparseTextEncoder, TermWeights
from ragworth.retrieval.hits import NO_HITS, Doubles, Ints, SearchHits, contexts_from_hits, id_order, top_hits
from ragworth.retrieval.steps.dense import nonblank_rows

FORM = 1
"""Incremented when the same encoder would give a different index."""


@dataclass(frozen=True)
class Postings:
    """Weights by word: those of word w are at ``ends[w]`` to ``ends[w + 1]``, in order of passages."""

    total: int
    """Number of passages."""
    ends: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int32]
    values: npt.NDArray[np.float32]

    def best(self, words: npt.NDArray[np.int32], weights: npt.NDArray[np.float32], places: Ints, k: int) -> SearchHits:
        """The ``k`` passages with the highest inner product with a query, among those that share a word with it."""
        known = words < len(self.ends) - 1  # no passage has a later word
        words, weights = words[known], weights[known]
        if not len(words):
            return NO_HITS
        scores: Doubles = np.zeros(self.total)
        for word, weight in zip(words.tolist(), weights.astype(np.float64).tolist(), strict=True):
            part = slice(self.ends[word], self.ends[word + 1])
            scores[self.rows[part]] += weight * self.values[part]
        return top_hits(scores, 0.0, places, k)


def load_postings(
    encoder: SparseTextEncoder, texts: pl.Series, cache: Path | None, progress: ProgressCallback | None = None
) -> Postings:
    """Load the index of passages from the cache, or encode them in blocks, resuming earlier work."""

    def make(block: range) -> Arrays:
        return encoder.encode(texts.slice(block.start, len(block)).to_list(), "passage")._asdict()

    total = len(texts)
    facts = {"form": FORM, "encoder": encoder.revision, "texts": table_fingerprint(texts.to_frame())}
    return load_or_build_in_blocks(
        cache,
        f"sparse-{digest(facts)}",
        total,
        with_progress(make, progress, f"encoding passages with {encoder.name}", total),
        join=lambda blocks: _invert(blocks, total),
        save=_save,
        load=lambda folder: _load_mapped(folder, total),
    )


def _invert(blocks: Iterable[Arrays], total: int) -> Postings:
    """Invert blocks from passages to words; passages of a word keep their order."""
    parts = [TermWeights(**block) for block in blocks]
    counts = np.concatenate([np.zeros(0, dtype=np.int64), *(np.diff(part.ends) for part in parts)])
    words = np.concatenate([np.zeros(0, dtype=np.int32), *(part.words for part in parts)])
    values = np.concatenate([np.zeros(0, dtype=np.float32), *(part.values for part in parts)])
    order = np.argsort(words, kind="stable")
    ends = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(np.bincount(words))])
    rows = np.repeat(np.arange(total, dtype=np.int32), counts)
    return Postings(total, ends, rows[order], values[order])


def _save(made: Postings, folder: Path) -> None:
    for name in ("ends", "rows", "values"):
        np.save(folder / f"{name}.npy", getattr(made, name), allow_pickle=False)


def _load_mapped(folder: Path, total: int) -> Postings:
    parts = [np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in ("ends", "rows", "values")]
    return Postings(total, *parts)


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
