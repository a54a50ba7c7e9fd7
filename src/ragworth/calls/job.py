"""Running many requests against one model: each distinct one once, and never again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Protocol

from ragworth.calls.records import KINDS, key_of, model_digest, responses_from_json
from ragworth.calls.spending import Limits, Plan, Price, Tally, estimate, price_for
from ragworth.calls.store import Store
from ragworth.errors import ModelError, RagworthError, Stopped, StoreError, counted
from ragworth.executors import Executor, Finished, Work
from ragworth.executors.local import Local
from ragworth.llm.contract import Card, Failure, Generate, Model, Request, Response

WINDOW = 16384
"""Requests looked at together. Memory is bounded by this, not by the number of requests."""

PATIENCE = 25
"""Calls that may fail in a row, before any has succeeded, until a job gives up."""

BUDGET = "not-asked"
"""Status of a request that was left over when the budget was spent."""


class Watcher(Protocol):
    """Somebody who is told how a job goes."""

    def update(self, tally: Tally, waiting: int) -> None:
        """``waiting``: distinct calls of the present window that have not begun."""
        ...


class Job:
    """One model, one store, and what is asked through them.

    >>> from ragworth.llm.contract import Choose, Prompt
    >>> from ragworth.llm.scripted import Scripted
    >>> job = Job(Scripted(lambda request: {"yes": 0.8, "no": 0.1}))
    >>> [answer.probabilities for answer in job.run([Choose(Prompt.text("Is it?"), ("yes", "no"))] * 2)]
    [(0.8, 0.1), (0.8, 0.1)]
    >>> job.tally.calls
    1

    Parameters
    ----------
    store: where answers are kept; None keeps nothing.
    limits: how far to go. What is left over gets the failure ``not-asked``.
    price: what the endpoint charges.
    watcher: is told after every batch.
    wait: seconds to wait for another process that writes to the store.
    """

    def __init__(
        self,
        model: Model,
        store: Store | str | Path | None = None,
        *,
        limits: Limits | None = None,
        price: Price | None = None,
        watcher: Watcher | None = None,
        executor: Executor | None = None,
        wait: float = 0.0,
    ) -> None:
        self.model = model
        self._store = Store(store) if isinstance(store, str | Path) else store
        self._away: ModelError | None = None
        self.card = self._card()
        """The model's; that of its last visit, when an endpoint does not answer and the store knows it."""
        self.limits = limits or Limits()
        self.price = price_for(self.card, price)
        self.limits.check(self.price)
        self.tally = Tally(self.price)
        self.stopped = ""
        """Which limit ended the job, in words."""
        self.watcher = watcher
        self._executor = executor or Local()
        self._wait = wait
        self._digest = model_digest(self.card)
        self._failed: dict[bytes, Failure] = {}
        self._row = 0

    def _card(self) -> Card:
        """An endpoint that is away can still be known by name: what it has answered needs no asking."""
        try:
            return self.model.card
        except ModelError as error:
            partial = getattr(self.model, "partial", None)
            known = self._store.card_of(partial) if self._store is not None and partial is not None else None
            if known is None:
                raise
            self._away = error
            return known

    def plan(self, requests: Iterable[Request]) -> Plan:
        """What `run` would do with these requests. Nothing is asked and no weights are loaded."""
        asked = 0
        missing: dict[bytes, tuple[int, int]] = {}
        for request in requests:
            asked += 1
            self._able(request)
            missing.setdefault(key_of(self._digest, request), estimate(request))
        distinct = len(missing)
        if self._store is not None:
            for kept in self._store.look_up(list(missing)):
                for key, _, _ in kept:
                    del missing[key]
        tokens = [sum(part) for part in zip(*missing.values(), strict=True)] or [0, 0]
        return Plan(asked, distinct, distinct - len(missing), tokens[0], tokens[1], self.price)

    def run(self, requests: Iterable[Request]) -> Iterator[Response | Failure]:
        """What comes of each request, in their order.

        Equal requests are asked once; what the store has is not asked. Every answer is in the store before
        it is given out. An interrupt ends the job after the calls under way, which are kept as well.
        """
        if self._store is None:
            yield from self._run(iter(requests))
        else:
            with self._store.writing(self._wait):
                yield from self._run(iter(requests))

    def _run(self, requests: Iterator[Request]) -> Iterator[Response | Failure]:
        work = self._executor.open(self.model)
        try:
            while window := list(islice(requests, WINDOW)):
                keys = [key_of(self._digest, request) for request in window]
                found = self._known(keys)
                missing: dict[bytes, Request] = {}
                for key, request in zip(keys, window, strict=True):
                    if key not in found and key not in missing:
                        self._able(request)
                        missing[key] = request
                self.tally.asked += len(window)
                self.tally.distinct += len(found) + len(missing)
                self.tally.cached += len(found)
                found.update(self._ask(work, missing))
                for key in keys:
                    yield found[key]
        finally:
            work.close()

    def _known(self, keys: list[bytes]) -> dict[bytes, Response | Failure]:
        """What the store has for these keys, and what has failed in this job already."""
        distinct = list(dict.fromkeys(keys))
        known: dict[bytes, Response | Failure] = {}
        if self._store is not None:
            for kept in self._store.look_up(distinct):
                known.update(self._stored(kept))
        if self._failed:
            known.update((key, self._failed[key]) for key in distinct if key in self._failed)
        return known

    def _stored(self, kept: list[tuple[bytes, str, str]]) -> Iterator[tuple[bytes, Response | Failure]]:
        """Stored answers; one to a prompt that was cut is none when prompts are not to be cut."""
        cuts = self.card.cuts
        try:
            for key, response in responses_from_json(kept):
                lost = response.usage.cut
                if lost and not cuts:
                    yield key, Failure("too-long", f"an earlier call cut {lost} characters off the passages", False)
                else:
                    yield key, response
        except (ValueError, TypeError, IndexError) as error:
            raise StoreError(
                f"an answer in it cannot be read: {error}",
                file=str(self._store.path if self._store else ""),
                remedy="ragworth calls verify says which",
            ) from error

    def _ask(self, work: Work, missing: dict[bytes, Request]) -> dict[bytes, Response | Failure]:
        """Ask for what is missing and keep what comes."""
        if missing and self._away is not None:
            raise self._away
        outcomes: dict[bytes, Response | Failure] = {}
        keys = {id(request): key for key, request in missing.items()}
        queue = self._batches(missing)
        try:
            while True:
                while work.room > 0 and not self.stopped and (batch := next(queue, None)):
                    work.submit(batch)
                if not work.busy:
                    break
                ended = work.wait(0.2)
                self._keep(ended, keys, outcomes)
                self._tell(len(missing) - len(outcomes))
                for error in [batch.error for batch in ended if batch.error is not None]:
                    raise error
        except RagworthError:
            self._drain(work, keys, outcomes)
            raise
        except KeyboardInterrupt:
            self._drain(work, keys, outcomes)
            kept = "is kept: run the same again to go on" if self._store is not None else "was not kept: no store"
            raise Interrupted(f"interrupted after {counted(self.tally.calls, 'call')}; what was done {kept}") from None
        left = Failure(BUDGET, f"the budget of {self.stopped} is spent")
        for key in missing:
            if key not in outcomes:
                self.tally.not_asked += 1
                outcomes[key] = left
        return outcomes

    def _drain(self, work: Work, keys: dict[int, bytes], outcomes: dict[bytes, Response | Failure]) -> None:
        """Keep what comes of the calls that are under way; they are paid for."""
        while work.busy:
            self._keep(work.wait(0.2), keys, outcomes)

    def _batches(self, missing: dict[bytes, Request]) -> Iterator[Sequence[Request]]:
        """Batches of one kind and, for models that read several at once, of similar length."""
        requests = list(missing.values())
        if self.model.batch > 1:
            requests.sort(key=lambda request: (KINDS[type(request)], -sum(estimate(request))))
        batch: list[Request] = []
        for request in requests:
            if batch and (len(batch) >= self.model.batch or type(batch[0]) is not type(request)):
                yield batch
                batch = []
            self.stopped = self.stopped or self.tally.would_break(request, self.limits)
            if self.stopped:
                break
            self.tally.start(request)
            batch.append(request)
        if batch:
            yield batch

    def _keep(self, ended: list[Finished], keys: dict[int, bytes], outcomes: dict[bytes, Response | Failure]) -> None:
        """Commit what has ended, then count it as done."""
        done = [
            (keys[id(request)], request, outcome)
            for batch in ended
            for request, outcome in zip(batch.requests, batch.outcomes, strict=batch.error is None)
        ]
        if self._store is not None and done:
            self._store.commit(self.card, done)
        for key, request, outcome in done:
            outcomes[key] = outcome
            if isinstance(outcome, Failure):
                self.tally.end(request, None)
                self._failed[key] = outcome
                self._row += 1
            else:
                self.tally.end(request, outcome.usage)
        self._give_up(done[-1][2] if done else None)

    def _give_up(self, last: Response | Failure | None) -> None:
        """End a job of which nothing has come but failures."""
        if self._row >= PATIENCE and not self.tally.done and isinstance(last, Failure):
            self._row = 0  # calls under way are still to be kept
            raise Stopped(
                f"the first {self.tally.failed} calls all failed, the last one with: {last.reason} ({last.detail})\n"
                "  to do: mend the cause and run the same again"
            )

    def _able(self, request: Request) -> None:
        """Refuse what the model cannot do before anything is asked."""
        abilities = self.card.abilities
        kind = KINDS[type(request)]
        needs = [kind]
        if isinstance(request, Generate):
            needs += [request.detail] if request.detail != "text" else []
            needs += ["schema"] if request.schema else []
        if lacking := [need for need in needs if need not in abilities]:
            raise ModelError(
                f"the model {self.card.name!r} cannot do what is asked of it: {', '.join(lacking)}",
                expected=f"one of {', '.join(sorted(abilities))}",
                remedy="take another model (ragworth models lists the kinds)",
            )

    def _tell(self, waiting: int) -> None:
        if self.watcher is not None:
            self.watcher.update(self.tally, waiting)


class Interrupted(Stopped):
    """Somebody pressed Ctrl-C."""

    exit_code = 130


def ask(model: Model, requests: Iterable[Request], store: Store | str | Path | None = None) -> list[Response | Failure]:
    """The answers to some requests, each distinct one asked once; kept in a store if one is named."""
    return list(Job(model, store).run(requests))
