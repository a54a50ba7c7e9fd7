"""Asking models for the steps of a pipeline: for real, or only to see what it would take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from ragworth.calls.job import Job
from ragworth.calls.programs import NoValue, Steps, forecast, run
from ragworth.calls.serialization import key_of, model_digest
from ragworth.calls.store import Store
from ragworth.errors import counted
from ragworth.llm.contract import Card, Model, Request
from ragworth.tasks.models import opened

T = TypeVar("T")


class Told(NamedTuple):
    """What a step would take, in words, and the system that it is run for first."""

    system: str
    step: str
    words: str


class Foreseen(NamedTuple, Generic[T]):
    """What comes of work as far as the store has the answers, None where it lacks one; and what is to be asked."""

    found: list[T | NoValue | None]
    words: str


class Asker:
    """A model, unless a step names another, and a store. With ``plan`` nothing is asked, and `told` says what would be.

    ``store``: file in which every answer is kept; None keeps none.
    """

    def __init__(
        self,
        model: Model | str | None = None,
        store: Store | str | Path | None = None,
        prompts: Path | None = None,
        *,
        plan: bool = False,
    ) -> None:
        self.store, self.prompts, self.plan = store, prompts, plan
        self.told: list[Told] = []
        self._system = ""
        self._counted: set[bytes] = set()
        self._opened = cache(lambda name: opened(name or model))

    def card(self, model: str) -> Card:
        with self._job(model) as job:
            return job.card

    def turn(self, system: str) -> None:
        self._system = system

    def ask(
        self, model: str, work: Callable[[Card], Sequence[Steps[T]]], *, step: str, most: int
    ) -> list[T | NoValue | None]:
        with self._job(model) as job:
            if not self.plan:
                return list(run(job, work(job.card)))
            # Without a store, nothing that a step has asked is there for the next one.
            seen = foreseen(job, work(job.card), most, self._counted if self.store is not None else set())
        self.told.append(Told(self._system, step, seen.words))
        return seen.found

    def _job(self, model: str) -> Job:
        # A store that is not there yet has no answers to look for.
        store = (
            None if self.plan and isinstance(self.store, str | Path) and not Path(self.store).exists() else self.store
        )
        return Job(self._opened(model), store, only_plan=self.plan)


def foreseen(job: Job, work: Sequence[Steps[T]], most: int, before: set[bytes]) -> Foreseen[T]:
    """What `run` would do, without asking.

    ``most``: calls that all of the work may take together. ``before``: keys of the requests of steps before it, to
    which its own are added: their answers will be in the store by then.
    """
    found: list[T | NoValue | None] = [None] * len(work)
    asked: list[Request] = []

    def noted(number: int, steps: Steps[T]) -> Steps[T]:
        try:
            made = yield from _listened(steps, asked)
        except NoValue as none:
            found[number] = none
            raise
        found[number] = made
        return made

    plan = forecast(job, [noted(number, steps) for number, steps in enumerate(work)]).plan
    keys = {key_of(model_digest(job.card), request): request for request in asked}
    fresh = job.plan(request for key, request in keys.items() if key not in before)
    shared = plan.missing - fresh.missing
    before.update(keys)
    plan = plan._replace(
        cached=plan.cached + shared, prompt_tokens=fresh.prompt_tokens, most_new_tokens=fresh.most_new_tokens
    )
    words = str(plan)
    if shared:
        words += f"; {counted(shared, 'of the answers comes', 'of the answers come')} from steps before it"
    if None in found and most > plan.asked:
        words += "; tokens and cost are those of these calls alone: "
        words += f"with those that depend on the answers, {counted(most, 'request')} at most"
    return Foreseen(found, words)


def _listened(steps: Steps[T], asked: list[Request]) -> Steps[T]:
    """The same work; what it asks is written down."""
    try:
        requests = next(steps)
        while True:
            asked.extend(requests)
            requests = steps.send((yield requests))
    except StopIteration as end:
        made: T = end.value
        return made
