"""Call models for the steps of a pipeline, or only plan the calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeVar

from ragworth.calls.job import Job
from ragworth.calls.programs import NoValue, Program, forecast_programs, run_programs
from ragworth.calls.serialization import call_key, model_digest
from ragworth.calls.store import Store
from ragworth.core.errors import format_count
from ragworth.judging.contract import resolve_model
from ragworth.llm.contract import Card, Model, Request

T = TypeVar("T")


class StepForecast(NamedTuple):
    """What a step would take, in words, and the first system that needs it."""

    system: str
    step: str
    words: str


class StepAsker:
    """Asks a default model, unless a step names another, through a store, so that nothing is asked twice.

    With ``plan``, no calls are made, and `forecasts` lists what they would be. ``store``: file in which every answer is
    saved, or None. ``prompts``: folder of the user's own prompts. The model ``""`` is the default one.
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
        self.forecasts: list[StepForecast] = []
        self._system = ""
        # Without a store, nothing that a step has asked is there for the next one.
        self._counted: set[bytes] | None = set() if store is not None else None
        self._opened = cache(lambda name: resolve_model(name or model))

    def card(self, model: str) -> Card:
        """Return the model's card, without loading weights."""
        with self._job(model) as job:
            return job.card

    def begin_system(self, system: str) -> None:
        """Attribute the following calls to this system."""
        self._system = system

    def ask(
        self, model: str, work: Callable[[Card], Sequence[Program[T]]], *, step: str, max_calls: int
    ) -> list[T | NoValue | None]:
        """Return the results of programs; None where planning lacks an answer.

        ``max_calls``: maximum calls of all programs together.
        """
        with self._job(model) as job:
            if not self.plan:
                return self._run(job, step, lambda: list(run_programs(job, work(job.card))))
            return self._forecast(job, step, work(job.card), max_calls)

    def _run(self, job: Job, step: str, work: Callable[[], list[T | NoValue | None]]) -> list[T | NoValue | None]:
        """Do a step's work with a job; a subclass may measure it."""
        return work()

    def _job(self, model: str) -> AbstractContextManager[Job]:
        # A store that doesn't exist yet has no answers.
        missing = self.plan and isinstance(self.store, str | Path) and not Path(self.store).exists()
        return Job(self._opened(model), None if missing else self.store, only_plan=self.plan)

    def _forecast(self, job: Job, step: str, work: Sequence[Program[T]], max_calls: int) -> list[T | NoValue | None]:
        """Plan what `ask` would do. Answers to requests of earlier steps will be in the store by then."""
        results: list[T | NoValue | None] = [None] * len(work)
        requests: list[Request] = []

        def recorded(number: int, program: Program[T]) -> Program[T]:
            try:
                results[number] = result = yield from _record_requests(program, requests)
            except NoValue as none:
                results[number] = none
                raise
            return result

        plan = forecast_programs(job, [recorded(number, program) for number, program in enumerate(work)]).plan
        keys = {call_key(model_digest(job.card), request): request for request in requests}
        before = self._counted if self._counted is not None else set()
        fresh = job.plan(request for key, request in keys.items() if key not in before)
        shared = plan.missing - fresh.missing
        before.update(keys)
        plan = plan._replace(
            cached=plan.cached + shared, prompt_tokens=fresh.prompt_tokens, most_new_tokens=fresh.most_new_tokens
        )
        words = str(plan)
        if shared:
            words += f"; {format_count(shared, 'of the answers comes', 'of the answers come')} from steps before it"
        if None in results and max_calls > plan.asked:
            words += "; tokens and cost are those of these calls alone: "
            words += f"with those that depend on the answers, {format_count(max_calls, 'request')} at most"
        self.forecasts.append(StepForecast(self._system, step, words))
        return results


def _record_requests(program: Program[T], recorded: list[Request]) -> Program[T]:
    """Run the same program, recording its requests."""
    try:
        requests = next(program)
        while True:
            recorded.extend(requests)
            requests = program.send((yield requests))
    except StopIteration as end:
        result: T = end.value
        return result
