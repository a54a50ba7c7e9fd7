"""A plain BM25 over a few thousand passages, to find near misses."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from math import log

K1, B = 1.2, 0.75
COMMON = 1 / 4
"""Words that more than this share of the passages have are passed over."""


class Bm25:
    """Passages, searched by their words."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._lists: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self._lengths: list[int] = []
        for number, text in enumerate(texts):
            counts = Counter(_words(text))
            self._lengths.append(sum(counts.values()))
            for word, count in counts.items():
                self._lists[word].append((number, count))
        self._mean = sum(self._lengths) / max(1, len(self._lengths))

    def best(self, query: str, number: int) -> list[int]:
        """The places of the passages that fit best; of two that fit as well, the first comes first."""
        total = len(self._lengths)
        scores: dict[int, float] = defaultdict(float)
        for word in set(_words(query)):
            postings = self._lists.get(word, [])
            if not postings or len(postings) > total * COMMON:
                continue
            weight = log(1 + (total - len(postings) + 0.5) / (len(postings) + 0.5))
            for place, count in postings:
                norm = K1 * (1 - B + B * self._lengths[place] / self._mean)
                scores[place] += weight * count * (K1 + 1) / (count + norm)
        return sorted(scores, key=lambda place: (-scores[place], place))[:number]


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())
