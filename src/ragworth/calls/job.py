"""Run many requests against a model, each distinct one only once."""

from __future__ import annotations

import signal
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from itertools import islice
from pathlib import Path
from types import FrameType, TracebackType
from typing import Protocol

from ragworth.calls.budget import (
    CallPlan,
    JobLimits,
    JobTally,
    Price,
    estimate_tokens,
    price_for,
    unreported_tokens,
    upper_bound_tokens,
)
from ragworth.calls.checks import read_stored_response
from ragworth.calls.executors import Executor, FinishedBatch, QueuedCall, ThreadWorkers, Workers, current_executor
from ragworth.calls.serialization import REQUEST_KINDS, call_key, model_digest
from ragworth.calls.store import Store
from ragworth.core.errors import JobStopped, ModelError, format_count, format_list, quote_short
from ragworth.core.interrupts import handle
from ragworth.llm.contract import Card, Failure, Generate, Model, PromptMessage, Request, Response

REQUEST_WINDOW = 16384
"""Requests handled together. This bounds memory, whatever the number of requests."""

MAX_FAILURES_IN_A_ROW = 25
"""Failures in a row after which a job gives up, if they are transient or of these kinds."""
SURE_TO_FAIL = ("unauthorised", "no-text", "reasons-first", "truncated")
"""Reasons for which most other calls to the same model will fail too."""

MEMORY_REMEDY = "lower the model's context_length, batch_tokens or concurrency (-O NAME=VALUE)"
"""Remedy when a model runs out of memory."""

NOT_ASKED = "not-asked"
"""Status of a request left over when the budget was spent."""

USUAL_REQUEST_TOKENS = 400
"""Tokens of an ordinary request; longer requests are sent in smaller batches."""


class JobObserver(Protocol):
    """Receives a job's progress."""

    def update(self, tally: JobTally, waiting: int) -> None:
        """``waiting``: distinct calls of the current window that haven't started."""
        ...


class JobInterrupted(JobStopped):
    """Ctrl-C was pressed; ``hurried`` means twice, so calls under way were not awaited."""

    exit_code = 130

    def __init__(self, message: str, hurried: bool = False) -> None:
        self.hurried = hurried
        super().__init__(message)


class Job:
    """Asks one model through one store.

    >>> from ragworth.llm.contract import Choose, Prompt
    >>> from ragworth.llm.scripted import Scripted
    >>> job = Job(Scripted(lambda request: {"yes": 0.8, "no": 0.1}))
    >>> [answer.probabilities for answer in job.run([Choose(Prompt.text("Is it?"), ("yes", "no"))] * 2)]
    [(0.8, 0.1), (0.8, 0.1)]
    >>> job.tally.calls
    1

    Parameters
    ----------
    store: where answers are stored; a store given by path is closed with the job. Without one, answers last as long as
        the job.
    limits: when to stop. Requests left over get the failure ``not-asked``.
    price: what the endpoint charges.
    watcher: receives the tally after every batch.
    wait: seconds to wait for another process that writes to the store.
    only_plan: make no calls, not even to ask an endpoint for its capabilities.
    """

    def __init__(
        self,
        model: Model,
        store: Store | str | Path | None = None,
        *,
        limits: JobLimits | None = None,
        price: Price | None = None,
        watcher: JobObserver | None = None,
        executor: Executor | None = None,
        wait: float = 0.0,
        only_plan: bool = False,
    ) -> None:
        self.model = model
        self._only_plan = only_plan
        self._store: Store | None
        if isinstance(store, str | Path):
            self._store = opened = Store(store)
            self._closing = weakref.finalize(self, opened.close)
        else:
            self._store = store
        self._away: ModelError | None = None
        """Why an endpoint can't be asked, if the store has its card."""
        self.card = self._card()
        """The model's card; if an endpoint doesn't respond, the one that the store last saw."""
        self.limits = limits or JobLimits()
        self.price = price_for(self.card, price)
        self.limits.check(self.price)
        self.tally = JobTally(self.price)
        self.watcher = watcher
        self.stopped = ""
        """The limit that ended the job."""
        executor = executor or current_executor()
        self._open_workers: Callable[[Model], Workers] = executor.open if executor is not None else ThreadWorkers
        self._executor_note = ""
        self._wait = wait
        self._digest = model_digest(self.card)
        self._outcomes: dict[bytes, Response | Failure] = {}
        """Failures of this run; without a store, all outcomes."""
        self._seen: set[bytes] = set()
        self._names: set[str] = set()
        """Names under which an endpoint answered."""
        self._damaged: dict[bytes, str] = {}
        """Stored answers that can't be used, and why."""
        self._failures_in_a_row = 0
        self._ended: list[FinishedBatch] = []
        """Batches whose outcomes aren't stored yet."""

    def _card(self) -> Card:
        """Fall back to the store's card if an endpoint is away: its stored answers need no call."""
        partial: Card | None = getattr(self.model, "partial", None)
        stored = self._store.card_of(partial) if self._store is not None and partial is not None else None
        if self._only_plan and partial is not None:
            return stored or partial
        try:
            return self.model.card
        except ModelError as error:
            if stored is None:
                raise
            self._away = error
            return stored

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences that a user should know about how the job went."""
        notes = [self._executor_note] if self._executor_note else []
        notes += getattr(self.model, "warnings", ())
        names = sorted(self._names - {""})
        if names not in ([], [self.card.name]):
            words = format_list([quote_short(name) for name in names], 5)
            several = ": these may be different models" if len(names) > 1 else ""
            notes.append(f"{quote_short(self.card.name)} was asked for, and the endpoint answered as {words}{several}")
        if self._damaged and self._store is not None:
            key, detail = next(iter(self._damaged.items()))
            notes.append(
                f"{self._store.path} has {format_count(len(self._damaged), 'damaged answer')}, such as that of call "
                f"{key.hex()} ({detail}): the model is asked again"
            )
        return tuple(notes)

    def close(self) -> None:
        """Close the store if the job opened it."""
        if hasattr(self, "_closing"):
            self._closing()

    def __enter__(self) -> Job:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def plan(self, requests: Iterable[Request]) -> CallPlan:
        """Plan the calls of `run`, without making any."""
        asked = cached = read = written = 0
        seen: set[bytes] = set()
        waiting = iter(requests)
        while window := list(islice(waiting, REQUEST_WINDOW)):
            asked += len(window)
            fresh: dict[bytes, Request] = {}
            for request in window:
                self._check_abilities(request)
                if (key := call_key(self._digest, request)) not in seen:
                    fresh[key] = request
            seen.update(fresh)
            stored = self._recall(fresh)
            cached += len(stored)
            for key in fresh.keys() - stored.keys():
                tokens = estimate_tokens(fresh[key], self.model)
                read += tokens.read
                written += tokens.written
        return CallPlan(asked, len(seen), cached, read, written, self.price)

    def peek(self, requests: Sequence[Request]) -> list[Response | Failure | None]:
        """Return known outcomes of requests, or None if the model would have to be called. Nothing is counted."""
        keys = [call_key(self._digest, request) for request in requests]
        stored = self._recall(dict(zip(keys, requests, strict=True)))
        return [stored.get(key) for key in keys]

    def run(self, requests: Iterable[Request]) -> Iterator[Response | Failure]:
        """Yield the outcome of each request, in order.

        Equal requests are sent once, and answers in the store are reused. Every answer is stored before it is yielded.
        An interrupt ends the job after the calls under way, which are stored too. Calls that failed in an earlier run
        are retried.
        """
        self._outcomes = {key: outcome for key, outcome in self._outcomes.items() if not isinstance(outcome, Failure)}
        waiting = iter(requests)
        with (
            nullcontext() if self._store is None else self._store.writing(self._wait),
            closing(self._open_workers(self.model)) as workers,
        ):
            while window := list(islice(waiting, REQUEST_WINDOW)):
                keys = [call_key(self._digest, request) for request in window]
                asked = dict(zip(keys, window, strict=True))
                outcomes = self._recall(asked)
                missing = {key: request for key, request in asked.items() if key not in outcomes}
                self._count(len(window), outcomes, missing)
                queue = self._queue(missing)
                with self._keep_outcomes(workers, outcomes) as interrupted:
                    while not interrupted():
                        while workers.room > 0 and (batch := self._next_batch(queue)):
                            workers.submit(batch)
                        if not workers.busy:
                            break
                        ended = workers.wait(0.2)
                        self._keep(ended, outcomes)
                        if self.watcher is not None:
                            self.watcher.update(self.tally, len(asked) - len(outcomes))
                        self._give_up(ended)
                left_over = asked.keys() - outcomes.keys()
                self.tally.not_asked += len(left_over)
                outcomes.update(dict.fromkeys(left_over, Failure(NOT_ASKED, f"the budget of {self.stopped} is spent")))
                self._executor_note = workers.note
                yield from map(outcomes.__getitem__, keys)

    def _recall(self, requests: Mapping[bytes, Request]) -> dict[bytes, Response | Failure]:
        """Return outcomes of these requests in the store, and failures of this job.

        An answer to a truncated prompt is reused only by a model that would truncate it the same way. One that is
        damaged is asked for again.
        """
        outcomes: dict[bytes, Response | Failure] = {}
        limit = (self.card.context_length or 0) if self.card.cuts else -1
        for key, text in self._store.look_up(list(requests)) if self._store is not None else ():
            response = read_stored_response(REQUEST_KINDS[type(requests[key])], text, requests[key])
            if isinstance(response, Failure):
                self._damaged[key] = response.detail
            elif not response.usage.cut or response.usage.limit == limit:
                outcomes[key] = response
        if self._outcomes:
            outcomes.update((key, self._outcomes[key]) for key in requests if key in self._outcomes)
        return outcomes

    def _count(self, asked: int, outcomes: Mapping[bytes, Response | Failure], missing: Iterable[bytes]) -> None:
        """Count a window, ignoring what earlier windows of the job counted."""
        cached = outcomes.keys() - self._seen
        self.tally.asked += asked
        self.tally.cached += len(cached)
        self._names.update(outcomes[key].usage.model for key in cached)
        self._seen.update(cached, missing)
        self.tally.distinct = len(self._seen)

    def _queue(self, missing: Mapping[bytes, Request]) -> deque[QueuedCall]:
        """Order the missing calls: a model that batches gets those of one kind and similar length together. One that
        reads the common beginning of prompts only once gets those that begin alike together, except to write texts. If
        a limit may end the job, the order stays.
        """
        if missing and self._away is not None:
            raise self._away
        for request in missing.values():
            self._check_abilities(request)
        is_bounded = self.limits != JobLimits(self.limits.calls)
        count = upper_bound_tokens if is_bounded else estimate_tokens
        calls = [QueuedCall(key, request, count(request, self.model)) for key, request in missing.items()]
        by_prompt = getattr(self.model, "sort_by_prompt", False)

        def position(call: QueuedCall) -> tuple[str, tuple[PromptMessage, ...], int]:
            alike = by_prompt and not isinstance(call.request, Generate)
            messages = call.request.prompt.messages if alike else ()
            return REQUEST_KINDS[type(call.request)], messages, -sum(call.tokens)

        if self.model.batch > 1 and self.limits == JobLimits():
            calls.sort(key=position)
        return deque(calls)

    def _check_abilities(self, request: Request) -> None:
        """Reject requests that the model can't handle before sending any."""
        if self._only_plan:
            return
        abilities = self.card.abilities
        needs = [REQUEST_KINDS[type(request)]]
        if isinstance(request, Generate):
            needs += [request.detail] if request.detail != "text" else []
            needs += ["schema"] if request.schema else []
        if lacking := [need for need in needs if need not in abilities]:
            raise ModelError(
                f"the model {self.card.name!r} lacks a capability: {', '.join(lacking)}",
                expected=f"one of {', '.join(sorted(abilities))}",
                remedy="use another model (ragworth models lists the backends)",
            )

    def _next_batch(self, queue: deque[QueuedCall]) -> list[QueuedCall]:
        """Take the next calls to submit off the queue, within the budget.

        Calls under way count at their upper bound; if only that is in the way, wait for them.
        """
        batch: list[QueuedCall] = []
        room = self.model.batch * USUAL_REQUEST_TOKENS
        while queue and not self.stopped and len(batch) < self.model.batch:
            call = queue[0]
            if batch and (room <= 0 or type(call.request) is not type(batch[0].request)):
                break
            if reason := self.tally.would_break(self.limits, call.tokens):
                self.stopped = "" if self.tally.flying else reason
                break
            self.tally.start(call.tokens)
            batch.append(queue.popleft())
            room -= sum(call.tokens)
        return batch

    def _keep(self, ended: list[FinishedBatch], outcomes: dict[bytes, Response | Failure]) -> None:
        """Commit finished calls, then count them as done."""
        self._ended += ended
        calls = [pair for batch in self._ended for pair in zip(batch.calls, batch.outcomes, strict=not batch.error)]
        answers = [(call.key, call.request, outcome) for call, outcome in calls if not isinstance(outcome, Failure)]
        if self._store is not None and answers:
            self._store.commit(self.card, answers)
        self._ended = []
        self._names.update(outcome.usage.model for _, outcome in calls)
        for call, outcome in calls:
            outcomes[call.key] = outcome
            if isinstance(outcome, Failure):
                estimated = None
                self._failures_in_a_row += outcome.retry or outcome.reason in SURE_TO_FAIL
            else:
                estimated = unreported_tokens(call.request, outcome, self.model)
                self._failures_in_a_row = 0
            self.tally.end(call.tokens, outcome, estimated)
            if self._store is None or isinstance(outcome, Failure):
                self._outcomes[call.key] = outcome

    def _give_up(self, ended: list[FinishedBatch]) -> None:
        """End the job if the backend ended, or if calls keep failing for transient reasons."""
        for error in [batch.error for batch in ended if batch.error is not None]:
            raise error
        last = ended[-1].outcomes[-1] if ended else None
        if self._failures_in_a_row >= MAX_FAILURES_IN_A_ROW and isinstance(last, Failure):
            remedy = MEMORY_REMEDY if last.reason == "out-of-memory" else "fix the cause"
            raise JobStopped(
                f"{self._failures_in_a_row} calls in a row have failed, the last one with: {last.reason} "
                f"({last.detail})\n  to do: {remedy} and run the same again"
            )

    @contextmanager
    def _keep_outcomes(
        self, workers: Workers, outcomes: dict[bytes, Response | Failure]
    ) -> Iterator[Callable[[], bool]]:
        """Keep what comes of calls under way however the block ends: they are paid for.

        After Ctrl-C, this waits for them, unless they are free or Ctrl-C comes again, and says how to continue.
        """
        with defer_interrupt() as interrupted:
            try:
                yield interrupted
                if not interrupted():
                    return
            except Exception:  # our own error, or the machine's, such as out of memory
                self._drain(workers, outcomes)
                raise
            except KeyboardInterrupt:
                pass
            hurried = getattr(self.model, "abandons_calls", False)
            try:
                if (hurry := getattr(self.model, "hurry", None)) is not None:
                    hurry()
                self._drain(workers, outcomes, wait=not hurried)
            except KeyboardInterrupt:
                hurried = True
        kept = "is kept: run the same again to go on" if self._store is not None else "was not kept: there is no store"
        raise JobInterrupted(
            f"interrupted after {format_count(self.tally.calls, 'call')}; what was done {kept}", hurried
        )

    def _drain(self, workers: Workers, outcomes: dict[bytes, Response | Failure], *, wait: bool = True) -> None:
        self._keep([], outcomes)  # an interrupt may have come before the last commit
        while wait and workers.busy:
            self._keep(workers.wait(0.2), outcomes)


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


def ask(model: Model, requests: Iterable[Request], store: Store | str | Path | None = None) -> list[Response | Failure]:
    """Answer requests, each distinct one once, storing the answers if a store is given."""
    with Job(model, store) as job:
        return list(job.run(requests))
