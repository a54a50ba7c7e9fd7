"""The models of an evaluation and what is spent on them: opened when first needed, one budget for all stages."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from ragworth.calls.job import Job, Watcher
from ragworth.calls.spending import Limits, Price, Tally
from ragworth.calls.store import Store
from ragworth.config import Asked, Workspace
from ragworth.errors import Stopped, counted
from ragworth.llm import llm
from ragworth.llm.contract import Card, Model


@dataclass
class Spent:
    """What a stage came to."""

    calls: int = 0
    stored: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    new_tokens: int = 0
    cost: float | None = 0.0
    seconds: float = 0.0

    @classmethod
    def of(cls, tally: Tally, seconds: float) -> Spent:
        read, written = tally.prompt_tokens, tally.new_tokens
        return cls(tally.calls, tally.cached, tally.failed, read, written, tally.cost, seconds)

    def facts(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class Models:
    """All models that a workspace names, over one store."""

    space: Workspace
    watch: Callable[[str], Watcher | None]
    """Who is told how a stage goes, by its name."""
    plan: bool = False
    wait: float = 0.0
    limits: Limits = field(init=False)

    def __post_init__(self) -> None:
        budget = self.space.budget
        self.limits = Limits(budget.calls, budget.tokens, budget.cost)
        self._stack = ExitStack()
        self._open: dict[str, Model] = {}
        self._store: Store | None = None
        self._cards: dict[str, Card] = {}

    def __enter__(self) -> Models:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    @contextmanager
    def job(self, asked: Asked | None, stage: str) -> Iterator[Job]:
        """A job for one stage; what it spends is taken off the budget of those that follow."""
        wanted = asked or self.space.model
        price = self.space.budget.price
        job = Job(
            self._model(wanted),
            self._stored(),
            limits=self.limits,
            price=Price(*price) if price is not None else None,
            watcher=None if self.plan else self.watch(stage),
            wait=self.wait,
            only_plan=self.plan,
        )
        self._cards[str(job.card)] = job.card
        try:
            yield job
        finally:
            self.limits = self.limits.less(job.tally)
            if job.watcher is not None and job.tally.asked and hasattr(job.watcher, "done"):
                job.watcher.done(job.tally)

    @property
    def cards(self) -> list[Card]:
        """Those of all models that were asked or could have been."""
        return list(self._cards.values())

    def _model(self, asked: Asked) -> Model:
        name = f"{asked.use} {sorted(asked.options.items())}"
        if name not in self._open:
            model = llm(asked.use, **asked.options)
            self._stack.enter_context(closing(model))
            self._open[name] = model
        return self._open[name]

    def _stored(self) -> Store | None:
        path = self.space.path(self.space.store)
        if self._store is None and (not self.plan or path.exists()):
            self._store = Store(path)
            self._stack.enter_context(closing(self._store))
        return self._store


@contextmanager
def spending(job: Job, stage: str) -> Iterator[Spent]:
    """What a stage spends; a budget that ended it, or failures alone, end the evaluation."""
    begun, found = time.monotonic(), Spent()
    yield found
    tally = job.tally
    found.__dict__.update(Spent.of(tally, time.monotonic() - begun).__dict__)
    if job.stopped:
        raise Stopped(
            f"{stage}: the budget of {job.stopped} is spent; {counted(tally.not_asked, 'call')} left over\n"
            "  to do: run the same again with a larger budget to go on"
        )
    if tally.failed and not tally.done and not tally.cached:
        reasons = ", ".join(f"{reason} {number:,}" for reason, number in tally.reasons.most_common())
        raise Stopped(f"{stage}: all {counted(tally.failed, 'call')} failed: {reasons}\n  to do: mend it and run again")


def card_facts(card: Card) -> Mapping[str, Any]:
    """A model's card as what JSON can hold."""
    return {
        name: sorted(value) if isinstance(value, set | frozenset) else value for name, value in asdict(card).items()
    }
