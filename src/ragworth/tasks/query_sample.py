"""Select some of the queries: the first ones, or a random sample."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeVar

from ragworth.core.errors import InputError


class HasQuery(Protocol):
    """Something that belongs to a query."""

    @property
    def query(self) -> str: ...


T = TypeVar("T", bound=HasQuery)


def check_positive_count(name: str, value: Any) -> None:
    """Reject a count that isn't a positive whole number, or None for all."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise InputError(f"{name} is {value!r}", expected="a whole number, 1 or more, or None for all")


def sample_queries(
    queries: Iterable[str], limit: int | None = None, sample: int | None = None, seed: int = 0
) -> list[str]:
    """Return the first ``limit`` distinct queries, or a random ``sample`` of them, in their order."""
    check_positive_count("limit", limit)
    check_positive_count("sample", sample)
    every = list(dict.fromkeys(queries))
    if sample is not None and sample < len(every):
        lucky = set(random.Random(seed).sample(every, sample))
        every = [query for query in every if query in lucky]
    return every[:limit] if limit is not None else every


def sample_by_hash(queries: Iterable[str], sample: int, seed: int) -> set[str]:
    """So many of the queries, by a hash of each: a larger sample holds a smaller one, so that nothing is paid twice."""

    def place(query: str) -> bytes:
        return hashlib.sha256(f"{seed}\n{query}".encode()).digest()

    return set(sorted(set(queries), key=place)[:sample])


def sample_by_query(items: Sequence[T], limit: int | None, sample: int | None, seed: int = 0) -> list[T]:
    """Return the items of the first ``limit`` queries, or of a random ``sample`` of them."""
    kept = set(sample_queries((each.query for each in items), limit, sample, seed))
    return [each for each in items if each.query in kept]
