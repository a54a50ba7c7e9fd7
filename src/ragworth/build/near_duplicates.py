"""Pairs of similar texts. Large sets are compared by blocks of candidates, in linear time."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterator, Sequence
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

PERMUTATIONS, BANDS = 64, 16
"""MinHash: texts whose shingles overlap by 0.8 share one of the bands with probability 0.9998, by 0.3 with 0.12."""
MAX_EXACT = 20_000
"""Vectors that are compared pair by pair. Sets with more are compared by blocks, which can miss a pair."""
PLANES, TABLES = 14, 12
"""Hyperplanes of each table. Vectors with cosine 0.95 share a block of some table with probability 0.95, with cosine
0.92 with 0.85, where no block is larger than `MAX_BLOCK`."""
ROWS = 512
"""Vectors that are multiplied with all others at a time."""
MAX_BLOCK = 50
"""Texts of a block that are compared with each other; in a larger one, each with those just before it."""
SHINGLE = 4
PRIME = (1 << 61) - 1


def shingles(text: str) -> set[int]:
    """Hashes of all runs of four characters, without case and with single blanks."""
    plain = f" {' '.join(text.casefold().split())} "
    runs = {plain[at : at + SHINGLE] for at in range(max(1, len(plain) - SHINGLE + 1))}
    return {
        int.from_bytes(hashlib.blake2b(run.encode("utf-8", "replace"), digest_size=4).digest(), "big") for run in runs
    }


def jaccard(one: set[int], other: set[int]) -> float:
    return len(one & other) / len(one | other)


def minhash_pairs(texts: Sequence[str], *, seed: int = 0) -> Iterator[tuple[int, int]]:
    """Candidates for overlap in wording, the earlier text first. A pair comes once for every band that it shares."""
    draw = np.random.default_rng(seed)
    factors = draw.integers(1, 1 << 31, PERMUTATIONS, dtype=np.uint64)
    offsets = draw.integers(0, 1 << 31, PERMUTATIONS, dtype=np.uint64)
    mixers = draw.integers(1, 1 << 63, PERMUTATIONS, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    keys = np.empty((len(texts), BANDS), np.uint64)
    for number, text in enumerate(texts):
        hashes = np.fromiter(shingles(text), np.uint64)
        lowest = ((hashes[:, None] * factors + offsets) % np.uint64(PRIME)).min(axis=0)
        keys[number] = (lowest * mixers).reshape(BANDS, -1).sum(axis=1)
    for band in range(BANDS):
        for members in _blocks(keys[:, band]):
            some = members.tolist()
            yield from _near(some) if len(some) > MAX_BLOCK else combinations(some, 2)


def block_pairs(keys: Sequence[Hashable]) -> Iterator[tuple[int, int]]:
    """Places with equal keys, the earlier one first. Empty keys are equal to none."""
    places: dict[Hashable, list[int]] = {}
    for place, key in enumerate(keys):
        if key:
            places.setdefault(key, []).append(place)
    for some in places.values():
        yield from _near(some) if len(some) > MAX_BLOCK else combinations(some, 2)


def vector_pairs(vectors: Floats, least: float, *, seed: int = 0) -> Iterator[tuple[int, int, float]]:
    """Pairs of unit vectors with a cosine of ``least`` or more, each pair once, the earlier one first.

    Up to `MAX_EXACT` vectors, no such pair is missed.
    """
    if len(vectors) <= MAX_EXACT:
        yield from _all_similar(vectors, least)
        return
    seen: set[tuple[int, int]] = set()
    for one, other, cosine in _hashed_pairs(vectors, least, seed):
        if (one, other) not in seen:
            seen.add((one, other))
            yield one, other, cosine


def _all_similar(vectors: Floats, least: float) -> Iterator[tuple[int, int, float]]:
    for start in range(0, len(vectors), ROWS):
        end = min(start + ROWS, len(vectors))
        cosines = vectors[:end] @ vectors[start:end].T
        for one, place in np.argwhere(cosines >= least).tolist():
            if one < start + place:
                yield one, start + place, float(cosines[one, place])


def _hashed_pairs(vectors: Floats, least: float, seed: int) -> Iterator[tuple[int, int, float]]:
    """Similar vectors among those on the same side of all hyperplanes of a table, table by table."""
    draw = np.random.default_rng(seed)
    powers = 1 << np.arange(PLANES, dtype=np.int64)
    for _ in range(TABLES):
        planes = draw.standard_normal((vectors.shape[1], PLANES), dtype=np.float32)
        for members in _blocks(((vectors @ planes) > 0) @ powers):
            if len(members) > MAX_BLOCK:
                found = ((one, other, float(vectors[one] @ vectors[other])) for one, other in _near(members.tolist()))
                yield from (each for each in found if each[2] >= least)
                continue
            cosines = vectors[members] @ vectors[members].T
            for one, other in np.argwhere(np.triu(cosines >= least, 1)).tolist():
                yield int(members[one]), int(members[other]), float(cosines[one, other])


def _blocks(keys: NDArray[Any]) -> Iterator[NDArray[np.int64]]:
    """Places of equal keys, in order, where there are two or more. Places that are alone take no memory."""
    order = np.argsort(keys, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(keys[order])) + 1, len(order))
    starts = np.concatenate([[0], ends[:-1]])
    for at in np.flatnonzero(ends - starts > 1):
        yield order[starts[at] : ends[at]]


def _near(members: list[int]) -> Iterator[tuple[int, int]]:
    """Each text with the first of the block and the one before it, which keeps a large block linear."""
    yield from ((members[0], other) for other in members[1:])
    yield from pairwise(members[1:])
