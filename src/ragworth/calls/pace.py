"""How long calls take: from the calls in the store, or from a few calls to a model that is quick to start."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ragworth.calls.budget import TokenEstimate, estimate_tokens
from ragworth.calls.store import Store
from ragworth.errors import RagworthError
from ragworth.executors.local import answer_batch
from ragworth.llm.contract import Failure, Model, Request

SAMPLE_SIZE = 4
"""Calls of each kind that `measure_pace` makes."""

SAMPLED_FROM = 1000
"""Calls of each kind among which those of usual length are chosen: the first, because a plan may have millions."""


class CallPace(NamedTuple):
    """Mean seconds and prompt tokens of calls of one kind."""

    seconds: float
    prompt_tokens: float


@dataclass
class PlannedCalls:
    """Calls of one kind: how many, the tokens that they read and write, and the first of them."""

    number: int = 0
    read: int = 0
    written: int = 0
    first: list[Request] = field(default_factory=list)

    def add(self, request: Request, tokens: TokenEstimate) -> None:
        self.number += 1
        self.read += tokens.read
        self.written += tokens.written
        if len(self.first) < SAMPLED_FROM:
            self.first.append(request)


def stored_pace(store: Store, digest: bytes) -> dict[str, CallPace]:
    """The pace of a model by kind of call, from its calls in the store."""
    rows = store.query(
        "SELECT kind, avg(seconds), avg(prompt_tokens) FROM answers "
        "JOIN models ON models.number = answers.model WHERE digest = ? AND seconds > 0 GROUP BY kind",
        [digest],
    )
    return {str(kind): CallPace(float(seconds), float(tokens)) for kind, seconds, tokens in rows}


def measure_pace(model: Model, planned: Mapping[str, PlannedCalls]) -> dict[str, CallPace]:
    """The pace of a model by kind of call, from a few of these calls. A kind that fails has none."""
    found: dict[str, CallPace] = {}
    for kind, calls in planned.items():
        ordered = sorted(calls.first, key=lambda request: estimate_tokens(request).read)
        middle = ordered[len(ordered) // 2 :][:SAMPLE_SIZE]
        try:
            answer_batch(model, middle[:1])  # loads the model
            begun = time.perf_counter()
            outcomes = answer_batch(model, middle)
        except RagworthError:
            continue
        seconds = time.perf_counter() - begun
        if not any(isinstance(outcome, Failure) for outcome in outcomes):
            tokens = sum(estimate_tokens(request).read for request in middle)
            found[kind] = CallPace(seconds / len(middle), tokens / len(middle))
    return found


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
