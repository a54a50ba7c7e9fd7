"""The interface of runtimes of local models, batches of rows for them, and next tokens drawn from logits."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ragworth.llm.contract import Generate
from ragworth.llm.local.prompt_encoding import PromptEncoder

Floats = NDArray[np.float64]


class TokenRow(NamedTuple):
    """A sequence to read after the shared prefix, and the tokens whose probability is wanted.

    ``wanted[j]`` are the token ids to look up in the distribution after token ``first + j`` of ``ids``.
    """

    ids: list[int]
    first: int
    wanted: list[list[int]]


class RowLogprobs(NamedTuple):
    """Log-probabilities of a row's wanted tokens, in order, and the entropy of each distribution (nats), if known."""

    logprobs: list[list[float]]
    entropies: list[float]


class SamplingDraw(NamedTuple):
    """A way to pick a row's next token: greedily at temperature 0, else where ``uniform`` falls among the tokens in
    descending order of probability (equal ones in the order of their ids), cut to ``top_p``.
    """

    temperature: float
    top_p: float
    uniform: float
    detail: Literal["text", "logprobs", "entropies"] = "entropies"


NO_TOKEN = -1
"""Stands for a token where the largest logit, divided by the temperature, is not finite."""


class NextTokens(NamedTuple):
    """The tokens picked for rows, with log-probability and entropy under the model's own distribution (temperature 1,
    not truncated). They may be NaN where a draw doesn't ask for them. The id is `NO_TOKEN` where none can be picked.
    """

    ids: list[int]
    logprobs: list[float]
    entropies: list[float]


class Decoding(Protocol):
    """Sequences being extended, one token per step."""

    def pick(self, draws: Sequence[SamplingDraw]) -> NextTokens:
        """Pick the next token of every row from the current distributions."""
        ...

    def step(self, ids: Sequence[int], keep: Sequence[int]) -> None:
        """Continue with the rows ``keep`` (indices into the current rows), each extended by its token."""
        ...


class ReadingRuntime(Protocol):
    """A loaded model. ``prefix`` is a result of `prefix()`, shared by all rows of a batch, or None."""

    name: str
    """The form that the weights are stored and computed in; part of the model's identity."""

    tokens: int
    """Number of tokens it has weights for."""

    def prefix(self, ids: Sequence[int]) -> Any:
        """Read a prefix once, to be shared by the following batches."""
        ...

    def read(self, rows: Sequence[TokenRow], prefix: Any = None) -> list[RowLogprobs]:
        """Read all rows in one batch."""
        ...


class Runtime(ReadingRuntime, Protocol):
    """A loaded decoder, which extends rows token by token."""

    def decode(self, rows: Sequence[list[int]], prefix: Any = None) -> Decoding:
        """Read all rows in one batch, ready to extend them."""
        ...


class Continuation(NamedTuple):
    """Tokens that an engine wrote after a prompt, and why it ended: ``stop`` or ``length``."""

    ids: list[int]
    logprobs: list[float]
    finish: str


@runtime_checkable
class GeneratingRuntime(ReadingRuntime, Protocol):
    """A loaded model that extends rows to their end itself."""

    def generate(self, asked: Sequence[tuple[Generate, list[int], int]]) -> list[Continuation]:
        """Continue each prompt once, as its request says, with a seed."""
        ...

    def close(self) -> None:
        """Stop its processes."""
        ...


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


@dataclass(frozen=True)
class LoadedModel:
    """A model in memory, and the size of its batches."""

    runtime: Runtime | GeneratingRuntime
    writer: PromptEncoder
    budget: BatchBudget

    def close(self) -> None:
        """Stop an engine that runs in processes of its own."""
        if isinstance(self.runtime, GeneratingRuntime):
            self.runtime.close()


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
    groups: dict[tuple[int, ...], list[int]] = {}
    for row, tokens in enumerate(ids):
        groups.setdefault(tuple(tokens[:least]) if share else (), []).append(row)
    for rows in groups.values():
        rows.sort(key=lambda row: len(ids[row]), reverse=True)
        shared = 0
        if share and len(rows) > 1:
            # What the first and the last in order have in common, all have.
            low, high = min(ids[row] for row in rows), max(ids[row] for row in rows)
            most = min(len(low), len(high), *(firsts[row] for row in rows))
            shared = next((at for at in range(most) if low[at] != high[at]), most)
        yield PrefixGroup(rows, shared if shared >= least else 0)


LOG_GAPS = (8.0, 16.0, 1000.0)
"""Tokens are drawn among those whose logits are this near to the largest, if they are likely enough together. Nothing
is left beyond the last.
"""


def log_softmax(logits: NDArray[np.floating]) -> Floats:
    """Natural log-probabilities over the last axis, in double precision."""
    logs = logits.astype(np.float64)
    logs -= logs.max(axis=-1, keepdims=True)
    logs -= np.log(np.exp(logs).sum(axis=-1, keepdims=True))
    return logs


def entropy(logs: Floats) -> Floats:
    """Entropy in nats from log-probabilities; a token of probability 0 adds nothing."""
    probabilities = np.exp(logs)
    terms = np.multiply(probabilities, logs, where=probabilities > 0, out=np.zeros_like(logs))
    return np.asarray(-terms.sum(axis=-1))


def select_logprobs(logs: Floats, wanted: Sequence[Sequence[int]]) -> list[list[float]]:
    """Log-probabilities of some tokens in each of several distributions."""
    return [[float(row[token]) for token in tokens] for row, tokens in zip(logs, wanted, strict=True)]


def pick_token(logits: NDArray[np.floating], draw: SamplingDraw) -> tuple[int, float, float]:
    """Pick the next token; its log-probability and the entropy are NaN unless the draw asks for them."""
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = logits if draw.temperature <= 0 else logits.astype(np.float64) / draw.temperature
    if not np.isfinite(scaled.max()):
        return NO_TOKEN, math.nan, math.nan
    token = int(logits.argmax()) if draw.temperature <= 0 else _sample(scaled, draw)
    if draw.detail == "text":
        return token, math.nan, math.nan
    logs = log_softmax(logits)
    return token, float(logs[token]), float(entropy(logs)) if draw.detail == "entropies" else math.nan


def _sample(scaled: NDArray[np.floating], draw: SamplingDraw) -> int:
    """Draw a token from logits divided by the temperature, sorting only as many of the likeliest as it takes."""
    scaled = scaled - scaled.max()
    weights = np.exp(scaled)
    total = float(weights.sum())
    needed = total * (draw.top_p if draw.top_p < 1 else draw.uniform)
    for gap in LOG_GAPS:
        tokens = np.flatnonzero(scaled >= -gap)
        tokens = tokens[np.argsort(-weights[tokens], kind="stable")]
        reached = np.cumsum(weights[tokens])
        if reached[-1] > needed:
            break
    if draw.top_p < 1:
        # The smallest set with probability top_p: all tokens whose predecessors sum to less.
        reached = reached[: max(1, int((reached - weights[tokens] < needed).sum()))]
        total = float(reached[-1])
    place = int(np.searchsorted(reached, draw.uniform * total, side="right"))
    return int(tokens[min(place, len(reached) - 1)])
