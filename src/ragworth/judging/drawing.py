"""Some of the queries: the first ones, or ones drawn at random."""

from __future__ import annotations

import random
from collections.abc import Iterable


def drawn(queries: Iterable[str], limit: int | None = None, sample: int | None = None, seed: int = 0) -> list[str]:
    """The first ``limit`` of the distinct queries, or of ``sample`` of them drawn at random, in their order."""
    every = list(dict.fromkeys(queries))
    if sample is not None and sample < len(every):
        lucky = set(random.Random(seed).sample(every, sample))
        every = [query for query in every if query in lucky]
    return every[:limit] if limit is not None else every
