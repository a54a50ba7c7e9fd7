"""Batch the rows of a local model: rows with a common prefix, sorted by length, within a token budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

MIN_SHARED_PREFIX = 16
"""Minimum common prefix in tokens that is worth reading separately."""


class PrefixGroup(NamedTuple):
    """Indices of rows, longest first, and the length of their common prefix."""

    rows: list[int]
    shared: int


def group_by_prefix(
    ids: Sequence[list[int]], firsts: Sequence[int], share: bool = True, least: int = MIN_SHARED_PREFIX
) -> Iterator[PrefixGroup]:
    """Group rows by their prefix of at least so many tokens.

    ``firsts`` are the positions from which a distribution is needed: a prefix ends before the least of them.
    """
    alike: dict[tuple[int, ...], list[int]] = {}
    for row, tokens in enumerate(ids):
        alike.setdefault(tuple(tokens[:least]) if share else (), []).append(row)
    for rows in alike.values():
        shared = _common_prefix_length(ids, firsts, rows) if share and len(rows) > 1 else 0
        rows.sort(key=lambda row: len(ids[row]), reverse=True)
        yield PrefixGroup(rows, shared if shared >= least else 0)


@dataclass
class BatchBudget:
    """Maximum size of a batch. It shrinks when the device runs out of memory."""

    tokens: int
    rows: int

    def batches(self, lengths: Sequence[int], work: Callable[[int, int], None]) -> None:
        """Call ``work(start, end)`` over items sorted by length, longest first, a batch at a time.

        A batch that runs out of memory is retried in halves, and later batches stay that small.
        """
        start = 0
        while start < len(lengths):
            longest = max(1, lengths[start])
            size = max(1, min(self.rows, self.tokens // longest, len(lengths) - start))
            try:
                work(start, start + size)
            except MemoryError:
                if size == 1:
                    raise
                self.tokens, self.rows = size * longest // 2, max(1, size // 2)
                continue
            start += size


def _common_prefix_length(ids: Sequence[list[int]], firsts: Sequence[int], rows: list[int]) -> int:
    """Length of the prefix shared by all rows; comparing the first and last in order is enough."""
    low, high = min(ids[row] for row in rows), max(ids[row] for row in rows)
    most = min(firsts[row] for row in rows)
    length = 0
    while length < min(most, len(low), len(high)) and low[length] == high[length]:
        length += 1
    return length
