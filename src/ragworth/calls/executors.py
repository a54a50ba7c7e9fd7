"""Executors, which run missing calls: here in threads of this process, in `ragworth.calls.ray` on a cluster.

Workers return values; only the job stores them.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, Protocol

from ragworth.calls.budget import TokenEstimate
from ragworth.calls.checks import call_model
from ragworth.core.errors import ModelError, RagworthError, ResourceError
from ragworth.core.resources import find_shortage
from ragworth.llm.contract import Failure, Model, Request, Response


class QueuedCall(NamedTuple):
    """A call to make, and its estimated tokens; the most that it may take if the job has a budget of tokens or cost."""

    key: bytes
    request: Request
    tokens: TokenEstimate


class FinishedBatch(NamedTuple):
    """Calls submitted together and their outcomes, or the error that ends the job."""

    calls: Sequence[QueuedCall]
    outcomes: Sequence[Response | Failure]
    error: RagworthError | None = None


class Workers(Protocol):
    """Calls under way of one job. ``note``: a sentence for the user on how they were run; empty if there is none."""

    @property
    def note(self) -> str: ...

    @property
    def room(self) -> int:
        """Number of further batches that can be submitted."""
        ...

    @property
    def busy(self) -> int:
        """Number of batches under way."""
        ...

    def submit(self, calls: Sequence[QueuedCall]) -> None:
        """Start a batch: calls of one kind, at most as many as the model takes at once."""
        ...

    def wait(self, seconds: float) -> list[FinishedBatch]:
        """Return finished batches, waiting at most ``seconds`` for the first."""
        ...

    def close(self) -> None:
        """Release the workers without waiting for calls under way."""
        ...


class Executor(Protocol):
    def open(self, model: Model) -> Workers: ...

    def close(self) -> None: ...


def failed_batch(calls: Sequence[QueuedCall], error: BaseException) -> FinishedBatch:
    """Return a batch in which the model raised: an error of ours ends the job, others are failures of these calls."""
    if isinstance(error, RagworthError):
        return FinishedBatch(calls, (), error)
    words = f"{type(error).__name__}: {error}"[:300]
    if not isinstance(error, Exception):  # such as SystemExit
        return FinishedBatch(calls, (), ModelError(f"the backend ended with {words}"))
    failure = Failure("out-of-memory" if find_shortage(error) == "memory" else "crashed", words)
    return FinishedBatch(calls, [failure] * len(calls))


class ThreadWorkers:
    """Threads of this process, as many as the model can serve at a time. They are daemons, so an early exit doesn't
    wait for them.
    """

    note = ""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._todo: queue.SimpleQueue[Sequence[QueuedCall] | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[FinishedBatch] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._busy = 0

    @property
    def room(self) -> int:
        return max(1, self._model.concurrency) - self._busy

    @property
    def busy(self) -> int:
        return self._busy

    def submit(self, calls: Sequence[QueuedCall]) -> None:
        if len(self._threads) <= self._busy:
            self._add_thread()
        self._busy += 1
        self._todo.put(calls)

    def _add_thread(self) -> None:
        """Start another thread. If the system allows none, the existing ones do all the work."""
        thread = threading.Thread(target=self._serve, name="ragworth-call", daemon=True)
        try:
            thread.start()
        except (RuntimeError, MemoryError) as error:
            if self._threads:
                return
            raise ResourceError(
                f"no thread can be started to call the model ({error}); close other programs, or raise the limit "
                "(ulimit -u, ulimit -v); answers so far are saved"
            ) from error
        self._threads.append(thread)

    def _serve(self) -> None:
        while (calls := self._todo.get()) is not None:
            try:
                outcomes = call_model(self._model, [call.request for call in calls])
                self._done.put(FinishedBatch(calls, outcomes))
            except BaseException as error:  # nothing may leave the job waiting
                self._done.put(failed_batch(calls, error))

    def wait(self, seconds: float) -> list[FinishedBatch]:
        ended: list[FinishedBatch] = []
        while self._busy:
            try:
                ended.append(self._done.get_nowait() if ended else self._done.get(timeout=seconds))
            except queue.Empty:
                break
            self._busy -= 1
        return ended

    def close(self) -> None:
        for _ in self._threads:
            self._todo.put(None)


_current: list[Executor] = []


@contextmanager
def use_executor(executor: Executor) -> Iterator[None]:
    """Run the calls of all jobs by this executor while this is open, then close it."""
    _current.append(executor)
    try:
        yield
    finally:
        _current.remove(executor)
        executor.close()


def current_executor() -> Executor | None:
    """Return the executor of all jobs of this process that are given no other."""
    return _current[-1] if _current else None
