"""How long calls take, from those in the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ragworth.calls.budget import TokenEstimate
from ragworth.calls.store import Store


class CallPace(NamedTuple):
    """Mean seconds and prompt tokens of calls of one kind."""

    seconds: float
    prompt_tokens: float


@dataclass
class PlannedCalls:
    """Number of calls of one kind, and the tokens that they read and write."""

    number: int = 0
    read: int = 0
    written: int = 0

    def add(self, tokens: TokenEstimate) -> None:
        self.number += 1
        self.read += tokens.read
        self.written += tokens.written


def stored_pace(store: Store, digest: bytes) -> dict[str, CallPace]:
    """The pace of a model by kind of call, from its calls in the store."""
    rows = store.query(
        "SELECT kind, avg(seconds), avg(prompt_tokens) FROM answers "
        "JOIN models ON models.number = answers.model WHERE digest = ? AND seconds > 0 GROUP BY kind",
        [digest],
    )
    return {str(kind): CallPace(float(seconds), float(tokens)) for kind, seconds, tokens in rows}


def expected_seconds(
    planned: Mapping[str, PlannedCalls], pace: Mapping[str, CallPace], concurrency: int = 1
) -> float | None:
    """Seconds that calls will take, by kind, or None if the pace of a kind is unknown. Longer prompts take longer."""
    total = 0.0
    for kind, calls in planned.items():
        if kind not in pace:
            return None
        known = pace[kind]
        longer = calls.read / calls.number / known.prompt_tokens if known.prompt_tokens else 1.0
        total += calls.number * known.seconds * longer
    return total / max(1, concurrency)
