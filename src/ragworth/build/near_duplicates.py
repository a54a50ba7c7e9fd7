"""Pairs of similar texts: by wording among blocks of candidates, in linear time; by meaning all pairs."""

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
ROWS = 2048
"""Vectors that are compared at a time."""
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


def vector_pairs(vectors: Floats, least: float) -> Iterator[tuple[int, int, float]]:
    """Pairs of unit vectors with a cosine of ``least`` or more, each pair once, the earlier one first."""
    for start in range(0, len(vectors), ROWS):
        some = vectors[start : start + ROWS]
        for first in range(0, start + 1, ROWS):
            cosines = vectors[first : first + ROWS] @ some.T
            for one, other in np.argwhere(cosines >= least).tolist():
                if first + one < start + other:
                    yield first + one, start + other, float(cosines[one, other])


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
