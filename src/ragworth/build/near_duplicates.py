"""Pairs of similar texts. Large sets are compared by blocks of candidates, in linear time."""

from __future__ import annotations

import hashlib
import mmap
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
ROWS = 2048
"""Vectors that are read or compared at a time."""
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


def jaccard(first: set[int], other: set[int]) -> float:
    return len(first & other) / len(first | other)


def minhash_pairs(texts: Sequence[str], *, seed: int = 0) -> Iterator[tuple[int, int]]:
    """Candidates for overlap in wording, the earlier text first. A pair comes once for every band that it shares."""
    draw = np.random.default_rng(seed)
    factors = draw.integers(1, 1 << 31, PERMUTATIONS, dtype=np.uint64)
    offsets = draw.integers(0, 1 << 31, PERMUTATIONS, dtype=np.uint64)
    mixers = draw.integers(1, 1 << 63, PERMUTATIONS, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    keys = np.empty((BANDS, len(texts)), np.uint32)
    for number, text in enumerate(texts):
        hashes = np.fromiter(shingles(text), np.uint64)
        lowest = ((hashes[:, None] * factors + offsets) % np.uint64(PRIME)).min(axis=0)
        keys[:, number] = (lowest * mixers).reshape(BANDS, -1).sum(axis=1) >> np.uint64(32)
    for band in keys:
        for members in _blocks(band):
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
        some = vectors[start : start + ROWS]
        for first in range(0, start + 1, ROWS):
            cosines = vectors[first : first + ROWS] @ some.T
            for one, other in np.argwhere(cosines >= least).tolist():
                if first + one < start + other:
                    yield first + one, start + other, float(cosines[one, other])


def _hashed_pairs(vectors: Floats, least: float, seed: int) -> Iterator[tuple[int, int, float]]:
    """Similar vectors among those on the same side of all hyperplanes of a table, table by table.

    Vectors are read in order once. After that, the sides of all hyperplanes, 24 bytes for each vector, say which pairs
    may be similar, and only these are read again.
    """
    sides = _sides_of_planes(vectors, seed)
    angle = float(np.arccos(np.clip(least, -1, 1)) / np.pi)
    most = TABLES * PLANES * angle + 5 * np.sqrt(TABLES * PLANES * angle * (1 - angle))
    for table in range(TABLES):
        order = np.argsort(sides[:, table], kind="stable")
        for start in range(0, len(order), ROWS):
            for one, other in _close_pairs(sides, order[start : start + ROWS + MAX_BLOCK], table, most):
                if (cosine := float(vectors[one] @ vectors[other])) >= least:
                    yield one, other, cosine
            _forget_pages(vectors)


def _sides_of_planes(vectors: Floats, seed: int) -> NDArray[np.uint16]:
    """For each vector and table, on which side of each of its hyperplanes it is, as bits."""
    planes = np.random.default_rng(seed).standard_normal((vectors.shape[1], TABLES * PLANES), dtype=np.float32)
    powers = (1 << np.arange(PLANES)).astype(np.uint16)
    sides = np.empty((len(vectors), TABLES), np.uint16)
    for start in range(0, len(vectors), ROWS):
        above = (vectors[start : start + ROWS] @ planes > 0).reshape(-1, TABLES, PLANES)
        sides[start : start + ROWS] = above @ powers
        _forget_pages(vectors)
    return sides


def _close_pairs(
    sides: NDArray[np.uint16], places: NDArray[np.int64], table: int, most: float
) -> Iterator[tuple[int, int]]:
    """Of the first `ROWS` places, which are sorted by a table, and those after them: pairs that share it and differ in
    few of all sides."""
    own = sides[places]
    for step in range(1, MAX_BLOCK):
        following = own[step : ROWS + step, table]
        same = np.flatnonzero(own[: len(following), table] == following)
        if not len(same):
            return
        near = same[np.bitwise_count(own[same] ^ own[same + step]).sum(axis=1, dtype=np.int64) <= most]
        yield from zip(places[near].tolist(), places[near + step].tolist(), strict=True)


def _forget_pages(vectors: Floats) -> None:
    """Give back the memory of what was read of a file that is mapped; it can be read again."""
    mapped = getattr(vectors, "_mmap", None)
    if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


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
