"""An inverted index of learned weights: the passages of each word, mapped into memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from ragworth.retrieval.artifact_cache import digest, table_fingerprint
from ragworth.retrieval.encoders.block_cache import Arrays, ProgressCallback, load_or_build_in_blocks, with_progress
from ragworth.retrieval.encoders.sentence_transformer import SparseTextEncoder, TermWeights
from ragworth.retrieval.hits import NO_HITS, Doubles, Ints, SearchHits, top_hits

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
