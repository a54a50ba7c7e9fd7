"""Run calls in this process: one thread for a local model, which batches; many for an endpoint, which waits."""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence

from ragworth.calls.executors import FinishedBatch
from ragworth.calls.executors.checks import check_outcome
from ragworth.core.errors import ModelError, RagworthError, ResourceError, quote_short
from ragworth.core.resources import find_shortage
from ragworth.llm.contract import (
    Choose,
    Chosen,
    Failure,
    Generate,
    Generated,
    Model,
    Request,
    Response,
    Score,
    Scored,
)


class LocalExecutor:
    """The default executor: threads in this process."""

    def open(self, model: Model) -> ThreadWorkers:
        return ThreadWorkers(model)

    def close(self) -> None:
        """Threads end with their job."""


class ThreadWorkers:
    """As many threads as the model can serve at a time. They are daemons, so an early exit doesn't wait for them."""

    note = ""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._todo: queue.SimpleQueue[Sequence[Request] | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[FinishedBatch] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._busy = 0

    @property
    def room(self) -> int:
        return max(1, self._model.concurrency) - self._busy

    @property
    def busy(self) -> int:
        return self._busy

    def submit(self, requests: Sequence[Request]) -> None:
        self._busy += 1
        if len(self._threads) < self._busy:
            self._add_thread()
        self._todo.put(requests)

    def _add_thread(self) -> None:
        """Start another thread. If the system allows none, the existing ones do all the work."""
        thread = threading.Thread(target=self._serve, name="ragworth-call", daemon=True)
        try:
            thread.start()
        except (RuntimeError, MemoryError) as error:
            if self._threads:
                return
            self._busy -= 1
            raise ResourceError(
                f"no thread can be started to call the model ({error}); close other programs, or raise the limit "
                "(ulimit -u, ulimit -v); answers so far are saved"
            ) from error
        self._threads.append(thread)

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

    def _serve(self) -> None:
        while (requests := self._todo.get()) is not None:
            try:
                self._done.put(FinishedBatch(requests, answer_batch(self._model, requests)))
            except RagworthError as error:
                self._done.put(FinishedBatch(requests, (), error))
            except MemoryError as error:
                self._done.put(_failed_batch(requests, Failure("out-of-memory", str(error)[:300])))
            except Exception as error:
                reason = "out-of-memory" if find_shortage(error) == "memory" else "crashed"
                self._done.put(_failed_batch(requests, Failure(reason, f"{type(error).__name__}: {error}"[:300])))
            except BaseException as error:  # a backend that ends its thread must not leave the job waiting
                ended = ModelError(f"the backend ended with {type(error).__name__}: {error}")
                self._done.put(FinishedBatch(requests, (), ended))


def _failed_batch(requests: Sequence[Request], failure: Failure) -> FinishedBatch:
    return FinishedBatch(requests, [failure] * len(requests))


RESPONSE_TYPES: dict[type, type] = {Generate: Generated, Score: Scored, Choose: Chosen}
"""The type of response for each type of request."""


def answer_batch(model: Model, requests: Sequence[Request]) -> Sequence[Response | Failure]:
    """Send a model one batch of requests of one kind, and check the types of its responses."""
    kind = type(requests[0])
    name = {Generate: "generate", Score: "score", Choose: "choose"}[kind]
    method = getattr(model, name, None)
    if method is None:
        raise ModelError(f"the model {model.card.name!r} cannot {name}")
    outcomes: Sequence[Response | Failure] = method(requests)
    if len(outcomes) != len(requests):
        raise ModelError(
            f"the backend {model.card.backend!r} gave {len(outcomes)} responses to {len(requests)} requests"
        )
    for outcome in outcomes:
        if not isinstance(outcome, RESPONSE_TYPES[kind] | Failure):
            raise ModelError(
                f"the backend {model.card.backend!r} gave {quote_short(outcome)} instead of a response to {name}",
                expected=f"{RESPONSE_TYPES[kind].__name__} or Failure",
            )
    return [check_outcome(request, outcome) for request, outcome in zip(requests, outcomes, strict=True)]
