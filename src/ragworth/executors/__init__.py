"""Where missing calls run. Workers return values; whoever waits for them keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ragworth.errors import RagworthError
from ragworth.llm.contract import Failure, Model, Request, Response


class FinishedBatch(NamedTuple):
    """Requests that were handed over together, and what came of each; or the error that ends the job."""

    requests: Sequence[Request]
    outcomes: Sequence[Response | Failure]
    error: RagworthError | None = None


class Workers(Protocol):
    """Calls under way."""

    @property
    def room(self) -> int:
        """How many more batches could be under way."""
        ...

    @property
    def busy(self) -> int:
        """How many batches are under way."""
        ...

    def submit(self, requests: Sequence[Request]) -> None:
        """Begin a batch: requests of one kind, at most as many as the model takes at once."""
        ...

    def wait(self, seconds: float) -> list[FinishedBatch]:
        """Batches that have ended, waiting at most so long for the first."""
        ...

    def close(self) -> None:
        """Let go of the workers. Calls under way are not waited for."""
        ...


class Executor(Protocol):
    def open(self, model: Model) -> Workers: ...
