"""Batches in which the requests of a job go to its model: their size, their pace, and Ctrl-C between them."""

from __future__ import annotations

import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import NamedTuple

from ragworth.calls.budget import NO_TOKENS, JobLimits, JobTally, TokenEstimate, estimate_tokens, upper_bound_tokens
from ragworth.calls.serialization import REQUEST_KINDS
from ragworth.calls.store import Store
from ragworth.core.interrupts import handle
from ragworth.llm.contract import Generate, Model, PromptMessage, Request


@contextmanager
def defer_interrupt() -> Iterator[Callable[[], bool]]:
    """Note a first Ctrl-C instead of raising; the yielded function returns whether it came. A second one interrupts.

    Does nothing outside the main thread, or if the program handles Ctrl-C itself.
    """
    pressed = threading.Event()
    own = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT)
    if not own or before not in (signal.default_int_handler, handle):
        yield pressed.is_set
        return

    def note(number: int, frame: FrameType | None) -> None:
        if pressed.is_set():
            raise KeyboardInterrupt
        pressed.set()

    signal.signal(signal.SIGINT, note)
    try:
        yield pressed.is_set
    finally:
        signal.signal(signal.SIGINT, before)


class CallPace(NamedTuple):
    """Mean seconds and prompt tokens of calls of one kind."""

    seconds: float
    prompt_tokens: float


@dataclass
class PlannedCalls:
    """Number of calls of one kind, and the tokens that they read and write."""

    number: int = 0
    read: int = 0
    written: int = 0

    def add(self, tokens: TokenEstimate) -> None:
        self.number += 1
        self.read += tokens.read
        self.written += tokens.written


def stored_pace(store: Store, digest: bytes) -> dict[str, CallPace]:
    """The pace of a model by kind of call, from its calls in the store."""
    rows = store.query(
        "SELECT kind, avg(seconds), avg(prompt_tokens) FROM answers "
        "JOIN models ON models.number = answers.model WHERE digest = ? AND seconds > 0 GROUP BY kind",
        [digest],
    )
    return {str(kind): CallPace(float(seconds), float(tokens)) for kind, seconds, tokens in rows}


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


USUAL_REQUEST_TOKENS = 400
"""Tokens of an ordinary request; longer requests are sent in smaller batches."""

FIRST_BATCH = 2
"""Requests in the first batch of a job."""


class Batches:
    """Picks batches that suit the model and stay within the limits of a job."""

    def __init__(self, model: Model, tally: JobTally, choice_tokens: int) -> None:
        self.model, self.tally = model, tally
        self._choice = choice_tokens
        self.stopped = ""
        """The limit that ended the job."""
        self.upper_bounds: dict[int, TokenEstimate] = {}
        """The most tokens that each request under way may take, by the id of its object."""
        self._largest_batch = FIRST_BATCH
        """Doubles with each batch, so that progress shows early even if a whole batch takes long."""

    def queue(self, requests: Iterable[Request], limits: JobLimits) -> deque[tuple[Request, int]]:
        """Order the requests: a model that batches gets those of one kind and similar length together. One that reads
        the common beginning of prompts only once gets those that begin alike together, except to write texts.

        If a limit may end the job, the order stays. Returns requests with their estimated tokens.
        """
        sized = [(request, sum(estimate_tokens(request))) for request in requests]
        by_prompt = getattr(self.model, "sort_by_prompt", False)

        def position(request: Request, tokens: int) -> tuple[str, tuple[PromptMessage, ...], int]:
            alike = by_prompt and not isinstance(request, Generate)
            return REQUEST_KINDS[type(request)], request.prompt.messages if alike else (), -tokens

        if self.model.batch > 1 and limits == JobLimits():
            sized.sort(key=lambda one: position(*one))
        return deque(sized)

    def next(self, queue: deque[tuple[Request, int]], limits: JobLimits) -> list[Request]:
        """Next requests to submit, within the budget.

        Calls under way count at their upper bound; if only that is in the way, wait for them.
        """
        batch: list[Request] = []
        bounded = limits != JobLimits(limits.calls)
        size = max(1, min(self.model.batch, self._largest_batch))
        room = size * USUAL_REQUEST_TOKENS
        while queue and len(batch) < size and (not batch or (type(queue[0][0]) is type(batch[0]) and room > 0)):
            request, estimated = queue[0]
            room -= estimated
            tokens = upper_bound_tokens(request, self.model, self._choice) if bounded else NO_TOKENS
            reason = self.tally.would_break(limits, tokens)
            if reason:
                self.stopped = "" if self.tally.flying else reason
                break
            self.tally.start(tokens)
            self.upper_bounds[id(request)] = tokens
            batch.append(queue.popleft()[0])
        if size < self.model.batch and (len(batch) == size or room <= 0):
            self._largest_batch *= 2
        return batch
