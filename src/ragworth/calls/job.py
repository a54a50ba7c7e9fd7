"""Run many requests against a model, each distinct one only once."""

from __future__ import annotations

import weakref
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Protocol

from ragworth.calls.batches import Batches, PlannedCalls, defer_interrupt, expected_seconds, stored_pace
from ragworth.calls.budget import (
    CallPlan,
    JobLimits,
    JobTally,
    Price,
    estimate_tokens,
    price_for,
    reasoning_tokens,
    unreported_tokens,
)
from ragworth.calls.executors import Executor, FinishedBatch, Workers, current_executor
from ragworth.calls.executors.local import LocalExecutor
from ragworth.calls.serialization import REQUEST_KINDS, call_key, model_digest
from ragworth.calls.store import Store, read_answer
from ragworth.core.errors import JobStopped, ModelError, format_count, format_list, quote_short
from ragworth.llm.contract import Card, Failure, Generate, Model, Request, Response

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


class JobObserver(Protocol):
    """Receives a job's progress."""

    def update(self, tally: JobTally, waiting: int) -> None:
        """``waiting``: distinct calls of the current window that haven't started."""
        ...


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
        self.card = self._card()
        """The model's card; if an endpoint doesn't respond, the one that the store last saw."""
        self.limits = limits or JobLimits()
        self.price = price_for(self.card, price)
        self.limits.check(self.price)
        self.tally = JobTally(self.price)
        self._executor_note = ""
        self.watcher = watcher
        self._executor = executor or current_executor() or LocalExecutor()
        self._wait = wait
        self._digest = model_digest(self.card)
        self._choice = int(getattr(model, "choice_tokens", 1))
        self._batches = Batches(model, self.tally, self._choice)
        self._kept: dict[bytes, Response | Failure] = {}
        """Failures of this run; without a store, all outcomes."""
        self._seen: set[bytes] = set()
        self._names: set[str] = set()
        """Names under which an endpoint answered."""
        self._damaged: dict[bytes, str] = {}
        """Stored answers that can't be used, and why."""
        self._failures = 0
        self._pending: list[tuple[bytes, Request, Response | Failure]] = []

    @property
    def stopped(self) -> str:
        """The limit that ended the job."""
        return self._batches.stopped

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences that a user should know about how the job went."""
        notes = [self._executor_note] if self._executor_note else []
        notes += getattr(self.model, "warnings", ())
        if self._names - {self.card.name}:
            names = format_list([quote_short(name) for name in sorted(self._names)], 5)
            several = ": these may be different models" if len(self._names) > 1 else ""
            notes.append(f"{quote_short(self.card.name)} was asked for, and the endpoint answered as {names}{several}")
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

    def _card(self) -> Card:
        """Fall back to the store's card if an endpoint is away: its stored answers need no call."""
        partial: Card | None = getattr(self.model, "partial", None)
        known = self._store.card_of(partial) if self._store is not None and partial is not None else None
        if self._only_plan and partial is not None:
            return known or partial
        try:
            return self.model.card
        except ModelError as error:
            if known is None:
                raise
            self._away = error
            return known

    def plan(self, requests: Iterable[Request]) -> CallPlan:
        """Plan what `run` would do, without calls."""
        asked, cached, seen = 0, 0, set[bytes]()
        missing: defaultdict[str, PlannedCalls] = defaultdict(PlannedCalls)
        waiting = iter(requests)
        while window := list(islice(waiting, REQUEST_WINDOW)):
            asked += len(window)
            fresh: dict[bytes, Request] = {}
            for request in window:
                self._check_abilities(request)
                if (key := call_key(self._digest, request)) not in seen:
                    fresh.setdefault(key, request)
            seen.update(fresh)
            stored = self._find_known(fresh)
            cached += len(stored)
            for key, request in fresh.items():
                if key not in stored:
                    tokens = estimate_tokens(request, self._choice, reasoning_tokens(self.model))
                    missing[REQUEST_KINDS[type(request)]].add(tokens)
        read, written = (sum(getattr(calls, kind) for calls in missing.values()) for kind in ("read", "written"))
        return CallPlan(asked, len(seen), cached, read, written, self.price, self._expected_seconds(missing))

    def _expected_seconds(self, missing: Mapping[str, PlannedCalls]) -> float | None:
        """Seconds that these calls will take, if the store has calls of these kinds."""
        if not missing or self._store is None:
            return None
        return expected_seconds(missing, stored_pace(self._store, self._digest), self.model.concurrency)

    def peek(self, requests: Sequence[Request]) -> list[Response | Failure | None]:
        """Known outcomes of requests, or None if the model would have to be called. Nothing is counted."""
        keys = [call_key(self._digest, request) for request in requests]
        stored = self._find_known(dict(zip(keys, requests, strict=True)))
        return [stored.get(key) for key in keys]

    def run(self, requests: Iterable[Request]) -> Iterator[Response | Failure]:
        """Yield the outcome of each request, in order.

        Equal requests are sent once, and answers in the store are reused. Every answer is stored before it is yielded.
        An interrupt ends the job after the calls under way, which are stored too. Calls that failed in an earlier run
        are retried.
        """
        self._kept = {key: found for key, found in self._kept.items() if not isinstance(found, Failure)}
        if self._store is None:
            yield from self._run(iter(requests))
        else:
            with self._store.writing(self._wait):
                yield from self._run(iter(requests))

    def _run(self, requests: Iterator[Request]) -> Iterator[Response | Failure]:
        work = self._executor.open(self.model)
        try:
            while window := list(islice(requests, REQUEST_WINDOW)):
                keys = [call_key(self._digest, request) for request in window]
                responses = self._find_known(dict(zip(keys, window, strict=True)))
                missing: dict[bytes, Request] = {}
                for key, request in zip(keys, window, strict=True):
                    if key not in responses and key not in missing:
                        self._check_abilities(request)
                        missing[key] = request
                self._count(len(window), responses, missing)
                responses.update(self._ask(work, missing))
                for key in keys:
                    yield responses[key]
        finally:
            work.close()
            self._executor_note = work.note

    def _count(self, asked: int, found: Mapping[bytes, Response | Failure], missing: Iterable[bytes]) -> None:
        """Count a window, ignoring what earlier windows of the job counted."""
        cached = found.keys() - self._seen
        self._seen.update(cached)
        before = len(self._seen)
        self._seen.update(missing)
        self.tally.asked += asked
        self.tally.cached += len(cached)
        self.tally.distinct += len(cached) + len(self._seen) - before
        self._count_names(found[key] for key in cached)

    def _count_names(self, outcomes: Iterable[Response | Failure]) -> None:
        self._names.update(outcome.usage.model for outcome in outcomes if outcome.usage.model)

    def _find_known(self, requests: Mapping[bytes, Request]) -> dict[bytes, Response | Failure]:
        """Outcomes of these requests in the store, and failures of this job.

        An answer to a truncated prompt is reused only by a model that would truncate it the same way. One that is
        damaged is asked for again.
        """
        stored: dict[bytes, Response | Failure] = {}
        limit = (self.card.context_length or 0) if self.card.cuts else -1
        for key, text in self._store.look_up(list(requests)) if self._store is not None else ():
            response = read_answer(REQUEST_KINDS[type(requests[key])], text, requests[key])
            if isinstance(response, Failure):
                self._damaged[key] = response.detail
            elif not response.usage.cut or response.usage.limit == limit:
                stored[key] = response
        if self._kept:
            stored.update((key, self._kept[key]) for key in requests if key in self._kept)
        return stored

    def _ask(self, work: Workers, missing: dict[bytes, Request]) -> dict[bytes, Response | Failure]:
        """Send the missing requests and store their outcomes."""
        if missing and self._away is not None:
            raise self._away
        outcomes: dict[bytes, Response | Failure] = {}
        keys = {id(request): key for key, request in missing.items()}
        queue = self._batches.queue(missing.values(), self.limits)
        with defer_interrupt() as interrupted:
            try:
                while not interrupted():
                    while work.room > 0 and not self.stopped and (batch := self._batches.next(queue, self.limits)):
                        work.submit(batch)
                    if not work.busy:
                        break
                    ended = work.wait(0.2)
                    self._commit(ended, keys, outcomes)
                    if self.watcher is not None:
                        self.watcher.update(self.tally, len(missing) - len(outcomes))
                    self._give_up(ended)
            except Exception:  # our own error, or the machine's, such as out of memory
                self._drain(work, keys, outcomes)
                raise
            except KeyboardInterrupt:
                self._end(work, keys, outcomes)
            if interrupted():
                self._end(work, keys, outcomes)
        left = Failure(NOT_ASKED, f"the budget of {self.stopped} is spent")
        for key in missing:
            if key not in outcomes:
                self.tally.not_asked += 1
                outcomes[key] = left
        return outcomes

    def _end(self, work: Workers, keys: dict[int, bytes], outcomes: dict[bytes, Response | Failure]) -> None:
        """Wait for calls under way, unless they are free or Ctrl-C came twice, and say how to continue."""
        hurried = getattr(self.model, "abandons_calls", False)
        try:
            if (hurry := getattr(self.model, "hurry", None)) is not None:
                hurry()
            self._drain(work, keys, outcomes, wait=not hurried)
        except KeyboardInterrupt:
            hurried = True
        kept = "is kept: run the same again to go on" if self._store is not None else "was not kept: there is no store"
        raise JobInterrupted(
            f"interrupted after {format_count(self.tally.calls, 'call')}; what was done {kept}", hurried
        )

    def _drain(
        self, work: Workers, keys: dict[int, bytes], outcomes: dict[bytes, Response | Failure], *, wait: bool = True
    ) -> None:
        """Store the outcomes of calls under way; they are paid for."""
        self._commit([], keys, outcomes)  # an interrupt may have come before the last commit
        while wait and work.busy:
            self._commit(work.wait(0.2), keys, outcomes)

    def _commit(
        self, ended: list[FinishedBatch], keys: dict[int, bytes], outcomes: dict[bytes, Response | Failure]
    ) -> None:
        """Commit finished calls, then count them as done."""
        self._pending += [
            (keys[id(request)], request, outcome)
            for batch in ended
            for request, outcome in zip(batch.requests, batch.outcomes, strict=batch.error is None)
        ]
        if self._store is not None and self._pending:
            self._store.commit(self.card, self._pending)
        done, self._pending = self._pending, []
        self._count_names(outcome for _, _, outcome in done)
        for key, request, outcome in done:
            outcomes[key] = outcome
            response = None if isinstance(outcome, Failure) else outcome
            estimated = response and unreported_tokens(request, response, self.model, self._choice)
            self.tally.end(self._batches.upper_bounds.pop(id(request)), outcome, estimated)
            if isinstance(outcome, Failure) or self._store is None:
                self._kept[key] = outcome
            if not isinstance(outcome, Failure):
                self._failures = 0
            elif outcome.retry or outcome.reason in SURE_TO_FAIL:
                self._failures += 1

    def _give_up(self, ended: list[FinishedBatch]) -> None:
        """End the job if the backend ended, or if calls keep failing for transient reasons."""
        for error in [batch.error for batch in ended if batch.error is not None]:
            raise error
        last = ended[-1].outcomes[-1] if ended else None
        if self._failures >= MAX_FAILURES_IN_A_ROW and isinstance(last, Failure):
            remedy = MEMORY_REMEDY if last.reason == "out-of-memory" else "fix the cause"
            raise JobStopped(
                f"{self._failures} calls in a row have failed, the last one with: {last.reason} ({last.detail})\n"
                f"  to do: {remedy} and run the same again"
            )

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


class JobInterrupted(JobStopped):
    """Ctrl-C was pressed; ``hurried`` means twice, so calls under way were not awaited."""

    exit_code = 130

    def __init__(self, message: str, hurried: bool = False) -> None:
        self.hurried = hurried
        super().__init__(message)


def ask(model: Model, requests: Iterable[Request], store: Store | str | Path | None = None) -> list[Response | Failure]:
    """Answer requests, each distinct one once, storing the answers if a store is given."""
    with Job(model, store) as job:
        return list(job.run(requests))
