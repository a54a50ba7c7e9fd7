"""Executors, which run missing calls. Workers return values; the caller stores them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ragworth.errors import RagworthError
from ragworth.llm.contract import Failure, Model, Request, Response


class FinishedBatch(NamedTuple):
    """Requests submitted together and their outcomes, or the error that ends the job."""

    requests: Sequence[Request]
    outcomes: Sequence[Response | Failure]
    error: RagworthError | None = None


class Workers(Protocol):
    """Calls under way."""

    @property
    def room(self) -> int:
        """Number of further batches that can be submitted."""
        ...

    @property
    def busy(self) -> int:
        """Number of batches under way."""
        ...

    def submit(self, requests: Sequence[Request]) -> None:
        """Start a batch: requests of one kind, at most as many as the model takes at once."""
        ...

    def wait(self, seconds: float) -> list[FinishedBatch]:
        """Return finished batches, waiting at most ``seconds`` for the first."""
        ...

    def close(self) -> None:
        """Release the workers without waiting for calls under way."""
        ...


class Executor(Protocol):
    def open(self, model: Model) -> Workers: ...
