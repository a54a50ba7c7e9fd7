"""Executors, which run missing calls. Workers return values; the caller stores them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, Protocol

from ragworth.core.errors import RagworthError
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

    @property
    def note(self) -> str:
        """What the user should know about how the calls were run; empty if nothing."""
        ...


class Executor(Protocol):
    def open(self, model: Model) -> Workers: ...

    def close(self) -> None:
        """Release everything."""
        ...


class _Current:
    """The executor of all jobs of this process that are given no other."""

    executor: Executor | None = None


@contextmanager
def use_executor(executor: Executor | None) -> Iterator[None]:
    """Run calls by this executor while this is open, then close it. None changes nothing."""
    if executor is None:
        yield
        return
    before, _Current.executor = _Current.executor, executor
    try:
        yield
    finally:
        _Current.executor = before
        executor.close()


def current_executor() -> Executor | None:
    return _Current.executor
