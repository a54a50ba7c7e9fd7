"""Held-out conversations: turns of one conversation share their history, so they are never on both sides."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ragworth.errors import InputError, format_count


class Split(NamedTuple):
    """Turns to train on and turns to choose by, and the conversations of the latter."""

    train: list[str]
    held_out: list[str]
    conversations: tuple[str, ...]


def split_by_conversation(queries: Sequence[str], conversation: Mapping[str, str], share: float, seed: int) -> Split:
    """Hold out a share of the conversations, at least one if the share isn't 0.

    Which ones depends on the seed and the ids of the conversations, not on their order.
    """
    if not 0 <= share < 1:
        raise InputError(f"the share of held-out conversations is {share:g}", expected="at least 0, below 1")
    names = sorted({conversation[query] for query in queries}, key=lambda name: _rank(name, seed))
    number = max(1, round(share * len(names))) if share else 0
    if number >= len(names):
        raise InputError(
            f"{format_count(len(names), 'conversation')}, and {number:,} would be held out",
            expected="at least one to train on",
            remedy="give more conversations, or hold none out (--held-out 0)",
        )
    held = frozenset(names[:number])
    train = [query for query in queries if conversation[query] not in held]
    return Split(train, [query for query in queries if conversation[query] in held], tuple(sorted(held)))


def _rank(name: str, seed: int) -> str:
    return hashlib.sha256(f"{seed} {name}".encode("utf-8", "surrogatepass")).hexdigest()
