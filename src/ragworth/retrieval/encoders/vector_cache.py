"""Vectors of a collection's passages: encoded once in blocks, stored on disk and mapped into memory.

They are stored under a hash of the texts and the encoder, so that systems share them.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from ragworth.retrieval.artifact_cache import digest, load_or_build, table_fingerprint
from ragworth.retrieval.encoders.block_cache import (
    BLOCKS_SUFFIX,
    Arrays,
    CachedBlocks,
    ProgressCallback,
    block_ranges,
    build_blocks,
)
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
        say = partial(progress, f"encoding passages with {encoder.name}") if progress is not None else None
        if say is not None and not block.start:
            say(0, len(texts))  # the first block takes as long as any
        found = encoder.encode(texts.slice(block.start, len(block)).to_list(), "passage", prefix)
        if say is not None:
            say(block.stop, len(texts))
        return {"vectors": normalize(found) if cosine else found}

    if cache is None:
        return _join_blocks(map(make, block_ranges(len(texts))), len(texts), encoder.dimension)
    place = cache / cache_name(encoder, texts, cosine, prefix)
    beside = place.with_name(f"{place.name}{BLOCKS_SUFFIX}")

    def encoded() -> Floats | CachedBlocks:
        return build_blocks(beside, len(texts), make)

    def save(vectors: Floats | CachedBlocks, folder: Path) -> None:
        assert isinstance(vectors, CachedBlocks)
        _save(vectors, folder / FILE, (len(texts), encoder.dimension))

    found = load_or_build(cache, place.name, make=encoded, save=save, load=_load_mapped)
    if not isinstance(found, CachedBlocks):
        return found
    try:
        vectors = _load_mapped(place)
    except OSError:  # a cache that can't be written to only costs memory
        return _join_blocks(found, len(texts), encoder.dimension)
    shutil.rmtree(beside, ignore_errors=True)
    return vectors


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
    """All blocks in memory."""
    vectors = np.empty((total, width), dtype=np.float32)
    _fill(vectors, blocks)
    return vectors


def _save(blocks: Iterable[Arrays], path: Path, shape: tuple[int, int]) -> None:
    """Write all blocks to one file, with one in memory at a time."""
    vectors = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
    _fill(vectors, blocks)
    vectors.flush()


def _fill(vectors: Floats, blocks: Iterable[Arrays]) -> None:
    at = 0
    for block in blocks:
        found = block["vectors"]
        vectors[at : at + len(found)] = found
        at += len(found)


def _load_mapped(place: Path) -> Floats:
    found: Floats = np.load(place / FILE, mmap_mode="r", allow_pickle=False)
    return found
