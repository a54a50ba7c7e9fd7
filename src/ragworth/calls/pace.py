"""How long calls take: from the calls in the store, or from a few calls to a model that is quick to start."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ragworth.calls.budget import estimate_tokens
from ragworth.calls.serialization import REQUEST_KINDS
from ragworth.calls.store import Store
from ragworth.errors import RagworthError
from ragworth.executors.local import answer_batch
from ragworth.llm.contract import Failure, Model, Request

SAMPLE_SIZE = 4
"""Calls of each kind that `measure_pace` makes."""

VALID = "typeof(seconds) IN ('real', 'integer') AND seconds > 0 AND typeof(prompt_tokens) = 'integer'"
"""Calls that can be averaged; a damaged store can contain anything."""


class CallPace(NamedTuple):
    """Mean seconds and prompt tokens of calls of one kind."""

    seconds: float
    prompt_tokens: float


def stored_pace(store: Store, digest: bytes) -> dict[str, CallPace]:
    """The pace of a model by kind of call, from its calls in the store."""
    rows = store.query(
        "SELECT kind, avg(min(seconds, 3600.0)), avg(min(prompt_tokens, 10000000)) FROM answers "
        f"JOIN models ON models.number = answers.model WHERE digest = ? AND {VALID} GROUP BY kind",
        [digest],
    )
    return {str(kind): CallPace(float(seconds), float(tokens)) for kind, seconds, tokens in rows}


def measure_pace(model: Model, requests: Iterable[Request]) -> dict[str, CallPace]:
    """The pace of a model by kind of call, from a few of these requests. A kind that fails has none."""
    found: dict[str, CallPace] = {}
    for kind, same in _by_kind(requests).items():
        middle = sorted(same, key=lambda request: estimate_tokens(request).read)[len(same) // 2 :][:SAMPLE_SIZE]
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


def expected_seconds(requests: Iterable[Request], pace: Mapping[str, CallPace], concurrency: int = 1) -> float | None:
    """Seconds that requests will take, or None if the pace of a kind is unknown. Longer prompts take longer."""
    total = 0.0
    for kind, same in _by_kind(requests).items():
        if kind not in pace:
            return None
        tokens = sum(estimate_tokens(request).read for request in same) / len(same)
        known = pace[kind]
        total += len(same) * known.seconds * (tokens / known.prompt_tokens if known.prompt_tokens else 1.0)
    return total / max(1, concurrency)


def _by_kind(requests: Iterable[Request]) -> Mapping[str, Sequence[Request]]:
    found: dict[str, list[Request]] = defaultdict(list)
    for request in requests:
        found[REQUEST_KINDS[type(request)]].append(request)
    return found
