"""Compute log-probabilities, entropies and the next token from logits, in NumPy and double precision."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ragworth.llm.local.runtime import SamplingDraw

Floats = NDArray[np.float64]


def log_softmax(logits: NDArray[np.floating]) -> Floats:
    """Natural log-probabilities over the last axis."""
    wide = logits.astype(np.float64)
    wide -= wide.max(axis=-1, keepdims=True)
    wide -= np.log(np.exp(wide).sum(axis=-1, keepdims=True))
    return wide


def entropy(logs: Floats) -> Floats:
    """Entropy in nats from log-probabilities; a token of probability 0 adds nothing."""
    probabilities = np.exp(logs)
    found: Floats = -np.multiply(probabilities, logs, where=probabilities > 0, out=np.zeros_like(logs)).sum(axis=-1)
    return found


def pick_token(logits: NDArray[np.floating], draw: SamplingDraw) -> int:
    """Pick the next token: greedy, or where the uniform number falls among the tokens in descending order."""
    if draw.temperature <= 0:
        return int(logits.argmax())
    probabilities = np.exp(log_softmax(logits.astype(np.float64) / draw.temperature))
    order = np.argsort(-probabilities, kind="stable")
    reached = np.cumsum(probabilities[order])
    if draw.top_p < 1:
        # The smallest set with probability top_p: all tokens whose predecessors sum to less.
        reached = reached[: int((reached - probabilities[order] < draw.top_p).sum())]
    place = int(np.searchsorted(reached, draw.uniform * reached[-1], side="right"))
    return int(order[min(place, len(reached) - 1)])


def select_logprobs(logs: Floats, wanted: Sequence[Sequence[int]]) -> list[list[float]]:
    """Log-probabilities of some tokens in each of several distributions."""
    return [[float(row[token]) for token in tokens] for row, tokens in zip(logs, wanted, strict=True)]
