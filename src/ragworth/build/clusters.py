"""Clusters of documents, so that questions cover all subjects of a corpus. Linear in the number of documents."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ragworth.build.questions.phrasing import STOP_WORDS

Floats = NDArray[np.float32]

HEAD_WORDS = 200
"""How much of a document counts: its title and first words."""
BUCKETS, WIDTH = 1 << 14, 96
"""Hashed terms, and the width of their random projection."""
BATCH = 2048
ROUNDS = 12
WORD = re.compile(r"[^\W\d_]{3,}")


VectorsOf: TypeAlias = Callable[[Sequence[int]], Floats]
"""Unit vectors of some documents, by their places."""


class Clusters(NamedTuple):
    """The cluster of each document, and a name of each cluster made of its most typical words."""

    labels: list[int]
    names: list[str]


def cluster_count(documents: int) -> int:
    return max(1, min(8, round(math.sqrt(documents / 3))))


def cluster_documents(texts: Sequence[str], number: int | None = None, *, seed: int = 0) -> Clusters:
    """Cluster by hashed words, weighted by how few documents have them. Needs no model."""
    number = min(number or cluster_count(len(texts)), max(1, len(texts)))
    if number == 1:
        return Clusters([0] * len(texts), ["all"])
    rarity = _rarity(texts)
    basis = np.random.default_rng(seed).standard_normal((BUCKETS, WIDTH), dtype=np.float32)

    def project(rows: Sequence[int]) -> Floats:
        some = texts[rows.start : rows.stop] if isinstance(rows, range) else [texts[row] for row in rows]
        return _project(some, rarity, basis)

    return _cluster(project, texts, number, seed)


def _cluster(vectors: VectorsOf, texts: Sequence[str], number: int, seed: int) -> Clusters:
    """Spherical k-means, trained on at most a few thousand documents; vectors are made batch by batch, and not kept."""
    draw = np.random.default_rng(seed)
    sample = vectors(np.sort(draw.choice(len(texts), min(len(texts), 8 * BATCH), replace=False)).tolist())
    centres = sample[_spread(sample, number, draw)]
    for _ in range(ROUNDS):
        nearest = (sample @ centres.T).argmax(axis=1)
        means = np.stack([_mean(sample[nearest == each], centres[each]) for each in range(number)])
        if np.allclose(means, centres):
            break
        centres = means
    batches = (range(start, min(start + BATCH, len(texts))) for start in range(0, len(texts), BATCH))
    labels = [label for rows in batches for label in (vectors(rows) @ centres.T).argmax(axis=1).tolist()]
    return _named(labels, texts)


def _mean(members: Floats, before: Floats) -> Floats:
    total: Floats = members.sum(axis=0) if len(members) else before
    length = float(np.linalg.norm(total))
    return total / length if length else before


def _spread(sample: Floats, number: int, draw: np.random.Generator) -> list[int]:
    """First centres, each far from those before it (k-means++)."""
    chosen = [int(draw.integers(len(sample)))]
    far = 1 - sample @ sample[chosen[0]]
    while len(chosen) < number:
        weights = np.clip(far, 0, None).astype(float) ** 2
        total = weights.sum()
        following = int(draw.choice(len(sample), p=weights / total)) if total > 0 else len(chosen) % len(sample)
        chosen.append(following)
        far = np.minimum(far, 1 - sample @ sample[following])
    return chosen


def _named(labels: list[int], texts: Sequence[str]) -> Clusters:
    """Number clusters by size, without empty ones, and name each by words that are frequent only there."""
    order = [label for label, _ in Counter(labels).most_common()]
    place = {label: rank for rank, label in enumerate(order)}
    counts: list[Counter[str]] = [Counter() for _ in order]
    for label, text in zip(labels, texts, strict=True):
        counts[place[label]].update(set(_terms(text)))
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    names: list[str] = []
    for rank, each in enumerate(counts):
        typical = sorted(each, key=lambda word: (-each[word] * each[word] / total[word], word))
        names.append(f"{rank + 1} {' '.join(typical[:3])}".strip())
    return Clusters([place[label] for label in labels], names)


def _terms(text: str) -> Iterator[str]:
    words = (match[0].casefold() for match in WORD.finditer(text))
    return islice((word for word in words if word not in STOP_WORDS), HEAD_WORDS)


@lru_cache(maxsize=1 << 16)
def _bucket(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=4).digest(), "big") % BUCKETS


def _rarity(texts: Iterable[str]) -> Floats:
    counts = np.zeros(BUCKETS, np.float32)
    number = 0
    for text in texts:
        number += 1
        counts[list({_bucket(word) for word in _terms(text)})] += 1
    return np.log((1 + number) / (1 + counts)).astype(np.float32)


def _project(texts: Sequence[str], rarity: Floats, basis: Floats) -> Floats:
    vectors = np.zeros((len(texts), WIDTH), np.float32)
    for row, text in enumerate(texts):
        terms = Counter(map(_bucket, _terms(text)))
        if terms:
            buckets = np.fromiter(terms, np.int64)
            weights = rarity[buckets] * np.log1p(np.fromiter(terms.values(), np.float32))
            vectors[row] = weights @ basis[buckets]
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Floats = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return unit
