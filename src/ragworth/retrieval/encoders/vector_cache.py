"""Vectors of a collection's passages: encoded once in blocks, stored on disk and mapped into memory.

They are stored under a hash of the texts and the encoder, so that systems share them.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import polars as pl

from ragworth.retrieval.artifact_cache import digest, table_fingerprint
from ragworth.retrieval.encoders.block_cache import Arrays, ProgressCallback, load_or_build_in_blocks, with_progress
from ragworth.retrieval.encoders.contract import Encoder, Floats, normalize

FORM = 1
"""Incremented when the same encoder would give different vectors."""

FILE = "vectors.npy"


def load_vectors(
    encoder: Encoder,
    texts: pl.Series,
    cache: Path | None = None,
    *,
    cosine: bool = True,
    prefix: str | None = None,
    progress: ProgressCallback | None = None,
) -> Floats:
    """(texts, dimension): the vectors of passages, in order.

    Parameters
    ----------
    cache: folder to store them in and resume from, or None.
    cosine: scale them to length 1.
    prefix: prefix of each text; None is the encoder's own.
    progress: receives the progress.
    """

    def make(block: range) -> Arrays:
        found = encoder.encode(texts.slice(block.start, len(block)).to_list(), "passage", prefix)
        return {"vectors": normalize(found) if cosine else found}

    total = len(texts)
    return load_or_build_in_blocks(
        cache,
        cache_name(encoder, texts, cosine, prefix) if cache is not None else "",
        total,
        with_progress(make, progress, f"encoding passages with {encoder.name}", total),
        join=lambda blocks: _join_blocks(blocks, total, encoder.dimension),
        save=lambda vectors, folder: np.save(folder / FILE, vectors, allow_pickle=False),
        load=lambda folder: np.load(folder / FILE, mmap_mode="r", allow_pickle=False),
    )


def cache_name(encoder: Encoder, texts: pl.Series, cosine: bool, prefix: str | None) -> str:
    """Name under which vectors are stored."""
    facts = {
        "form": FORM,
        "encoder": encoder.revision,
        "cosine": cosine,
        "prefix": encoder.prefix("passage") if prefix is None else prefix,
        "texts": table_fingerprint(texts.to_frame()),
    }
    return f"vectors-{digest(facts)}"


def _join_blocks(blocks: Iterable[Arrays], total: int, width: int) -> Floats:
    vectors = np.empty((total, width), dtype=np.float32)
    at = 0
    for block in blocks:
        found = block["vectors"]
        vectors[at : at + len(found)] = found
        at += len(found)
    return vectors
