"""What a local decoder must compute. `engine` builds all requests from these few steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ragworth.llm.contract import Generate

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class TokenRow(NamedTuple):
    """A sequence to read after the shared prefix, and the tokens whose probability is wanted.

    ``wanted[j]`` are the token ids to look up in the distribution after token ``first + j`` of ``ids``; with n entries,
    n consecutive distributions are read.
    """

    ids: list[int]
    first: int
    wanted: list[list[int]]


class RowLogprobs(NamedTuple):
    """Log-probabilities of a row's wanted tokens, in order, and the entropy of each distribution (nats), if known."""

    logprobs: list[list[float]]
    entropies: list[float]


class SamplingDraw(NamedTuple):
    """How to pick the next token of a row: greedily at temperature 0, else where ``uniform`` falls among the tokens in
    descending order of probability, cut to ``top_p``.
    """

    temperature: float
    top_p: float
    uniform: float


class NextTokens(NamedTuple):
    """The tokens picked for the rows of a decoding state, with log-probability and entropy under the model's own
    distribution (temperature 1, not truncated).
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
    """How the weights are stored and computed with; part of the model's identity."""

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
