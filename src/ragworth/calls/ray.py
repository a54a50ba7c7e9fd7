"""Run calls on a Ray cluster: actors open the model by its written form and return values; only the driver stores.

A batch whose actor or node dies, or that takes longer than the deadline, is asked again by another actor, under the
same keys. So every key gets one value, and a call may be made more than once: those of at most two batches per lost
actor.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from ragworth.calls.checks import call_model
from ragworth.calls.executors import FinishedBatch, QueuedCall, failed_batch
from ragworth.core.errors import InputError, MissingExtraError, ModelError, RagworthError, format_count
from ragworth.core.nested_text import parse_toml
from ragworth.llm import OpenedModel, how_opened
from ragworth.llm.contract import Failure, Model, Request
from ragworth.workspace.config import ExecutorConfig
from ragworth.workspace.toml import check_toml

BATCHES_PER_ACTOR = 2
"""One that is worked on, and one that waits, so that an actor never idles."""

MAX_ATTEMPTS = 3
"""Number of actors lost while they worked on a batch after which it counts as failed."""


def parse_ray_settings(text: str) -> ExecutorConfig:
    """Parse ``ray:ADDRESS,actors=4,gpus=1``; everything after ``ray`` may be left out.

    >>> settings = parse_ray_settings("ray:10.0.0.1:6379,actors=4")
    >>> settings.address, settings.actors, settings.gpus
    ('10.0.0.1:6379', 4, 0.0)
    """
    where, *options = text.split(",")
    kind, _, address = where.partition(":")
    if kind != "ray":
        raise InputError(f"the executor is {kind!r}", expected="ray, or ray:ADDRESS")
    tables = parse_toml("\n".join(options), "", expected="ray:ADDRESS,NAME=NUMBER,…")
    return replace(check_toml(ExecutorConfig, tables), kind="ray", address=address)


class RayExecutor:
    """Runs calls on a cluster. Its actors stay until it is closed, for all jobs of one model after another."""

    def __init__(self, settings: ExecutorConfig | None = None) -> None:
        if find_spec("ray") is None:
            raise MissingExtraError("ray", "ray", "running calls on a cluster")
        self.settings = settings or ExecutorConfig("ray")
        self._crews: dict[tuple[str, ...], RayWorkers] = {}
        self._has_connected = False

    def open(self, model: Model) -> RayWorkers:
        identity = model.card.identity
        if identity not in self._crews:
            opened = how_opened(model)
            self._connect()
            self._crews[identity] = RayWorkers(opened, identity, self.settings)
        self._crews[identity].begin_job()
        return self._crews[identity]

    def _connect(self) -> None:
        ray = _import_ray()
        if ray.is_initialized():
            return
        where = {"address": self.settings.address} if self.settings.address else {"include_dashboard": False}
        try:
            ray.init(log_to_driver=False, configure_logging=False, **where)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise ModelError(
                f"the Ray cluster {self.settings.address or 'on this machine'} can't be used: {error}",
                remedy="start it (ray start --head), or check its address",
            ) from error
        self._has_connected = True

    def close(self) -> None:
        """End the actors, and the connection if it was made here."""
        for crew in self._crews.values():
            crew.end()
        self._crews.clear()
        if self._has_connected:
            _import_ray().shutdown()
            self._has_connected = False


def _import_ray() -> Any:
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    import ray

    return ray


class FlyingBatch(NamedTuple):
    """A batch, its actor, and since when that has worked on it. ``attempts``: actors lost while they worked on it."""

    calls: Sequence[QueuedCall]
    attempts: int = 0
    actor: Any = None
    since: float = 0.0


class RayWorkers:
    """The actors of one model, and the batches of one job on them."""

    def __init__(self, opened: OpenedModel, identity: tuple[str, ...], settings: ExecutorConfig) -> None:
        self._ray = _import_ray()
        self._opened, self._identity, self._settings = opened, identity, settings
        self._actor_class = self._ray.remote(max_restarts=0)(ModelActor)
        self.ready: list[Any] = []
        self._starting: dict[Any, Any] = {}
        """Actors by the reference to their identity."""
        self._flying: dict[Any, FlyingBatch] = {}
        """Batches by the reference to their outcomes, in the order in which they were sent."""
        self._waiting: list[FlyingBatch] = []
        """Batches whose actor was lost."""
        for _ in range(settings.actors):
            self._start_actor()

    def begin_job(self) -> None:
        """Wait until an actor is ready."""
        self._lost = self._repeated = 0
        self._alone_since = time.monotonic()
        while not self.ready:
            self._take_in(0.2)

    def _start_actor(self) -> None:
        settings = self._settings
        actor = self._actor_class.options(
            num_cpus=settings.cpus, num_gpus=settings.gpus, resources=dict(settings.resources)
        ).remote(self._opened.spec, dict(self._opened.options), str(Path.cwd()))
        self._starting[actor.identity.remote()] = actor

    def _take_in(self, seconds: float) -> None:
        """Take in actors that have started. One with another model is an error; one that dies is replaced."""
        started = self._ray.wait(list(self._starting), num_returns=1, timeout=seconds)[0] if self._starting else []
        for reference in started:
            actor = self._starting.pop(reference)
            try:
                identity = _value(self._ray.get(reference))
            except self._ray.exceptions.RayActorError:
                self._replace_lost()
                continue
            if tuple(identity) != self._identity:
                raise ModelError(
                    f"an actor opened another model as {self._opened.spec!r}",
                    expected="the same weights, quantisation and template on every node",
                    remedy="copy the model's files to all nodes, and use the same version of ragworth",
                )
            self.ready.append(actor)
        if self.ready:
            self._alone_since = time.monotonic()
        elif time.monotonic() - self._alone_since > self._settings.patience:
            settings = self._settings
            needed = {"CPU": settings.cpus, "GPU": settings.gpus, **settings.resources}
            words = ", ".join(f"{number:g} {name}" for name, number in needed.items() if number)
            raise ModelError(
                f"no actor started within {settings.patience:g} seconds",
                expected=f"a node with {words} free",
                remedy="add nodes, or ask for less under [executor]; answers so far are kept",
            )

    def _replace_lost(self) -> None:
        self._lost += 1
        self._start_actor()

    @property
    def room(self) -> int:
        return BATCHES_PER_ACTOR * len(self.ready) - self.busy

    @property
    def busy(self) -> int:
        return len(self._flying) + len(self._waiting)

    @property
    def note(self) -> str:
        again = f"{format_count(self._repeated, 'call')} asked again, and every call has one answer"
        return f"Ray: {format_count(self._lost, 'worker')} lost; {again}" if self._lost else ""

    def submit(self, calls: Sequence[QueuedCall]) -> None:
        self._send(FlyingBatch(calls))

    def _send(self, batch: FlyingBatch) -> None:
        """Give a batch to the actor with the fewest."""
        actors = [flying.actor for flying in self._flying.values()]
        actor = min(self.ready, key=actors.count)
        reference = actor.answer.remote([call.request for call in batch.calls])
        self._flying[reference] = batch._replace(actor=actor, since=time.monotonic())

    def wait(self, seconds: float) -> list[FinishedBatch]:
        self._take_in(0.0 if self._flying else seconds)
        while self._waiting and self.ready:
            self._send(self._waiting.pop())
        references = list(self._flying)
        if references and self._ray.wait(references, num_returns=1, timeout=seconds)[0]:
            references, _ = self._ray.wait(references, num_returns=len(references), timeout=0)
        else:
            references = []
        ended = [self._finish(reference) for reference in references if reference in self._flying]
        limit = time.monotonic() - self._settings.deadline
        hung = {batch.actor for batch in self._flying.values() if batch.since < limit}
        ended += [self._give_up(actor) for actor in hung]
        return [batch for batch in ended if batch is not None]

    def _finish(self, reference: Any) -> FinishedBatch | None:
        """Return a finished batch, or None if it will be asked again because its actor died."""
        batch, errors = self._flying[reference], self._ray.exceptions
        try:
            finished = FinishedBatch(batch.calls, _value(self._ray.get(reference)))
        except RagworthError as error:
            finished = failed_batch(batch.calls, error)
        except errors.RayTaskError as error:
            finished = failed_batch(batch.calls, error.cause)
        except errors.RayError:
            return self._give_up(batch.actor)
        del self._flying[reference]
        for other, waiting in self._flying.items():
            if waiting.actor is batch.actor:  # its next batch begins now
                self._flying[other] = waiting._replace(since=time.monotonic())
        return finished

    def _give_up(self, actor: Any) -> FinishedBatch | None:
        """Kill and replace an actor, whose batches will be asked again. The oldest, which it worked on, may be what it
        died of: return it as failed after several attempts.
        """
        self.ready.remove(actor)
        self._ray.kill(actor)
        self._replace_lost()
        references = [reference for reference, batch in self._flying.items() if batch.actor is actor]
        oldest, *others = [self._flying.pop(reference) for reference in references]
        oldest = oldest._replace(attempts=oldest.attempts + 1)
        has_failed = oldest.attempts >= MAX_ATTEMPTS
        again = others if has_failed else [*others, oldest]
        self._repeated += sum(len(batch.calls) for batch in again)
        self._waiting += again
        if not has_failed:
            return None
        failure = Failure("crashed", f"its worker was lost {oldest.attempts} times")
        return FinishedBatch(oldest.calls, [failure] * len(oldest.calls))

    def close(self) -> None:
        """Drop calls under way: their actors go on with the next job."""
        self._flying.clear()
        self._waiting.clear()

    def end(self) -> None:
        """End the actors."""
        if self._ray.is_initialized():
            for actor in (*self.ready, *self._starting.values()):
                self._ray.kill(actor)


class ModelActor:
    """A model in a process of its own. Errors of ours are returned, because Ray would turn them into its own."""

    def __init__(self, spec: str, options: Mapping[str, Any], folder: str) -> None:
        from ragworth.llm import llm

        if Path(folder).is_dir():
            os.chdir(folder)  # paths in the written form may be relative
        try:
            self.model: Any = llm(spec, **options)
        except RagworthError as error:
            self.model = error

    def identity(self) -> tuple[str, ...] | RagworthError:
        try:
            identity: tuple[str, ...] = _value(self.model).card.identity
            return identity
        except RagworthError as error:
            return error

    def answer(self, requests: list[Request]) -> Any:
        try:
            return call_model(_value(self.model), requests)
        except RagworthError as error:
            return error


def _value(result: Any) -> Any:
    """Raise an error that an actor returned."""
    if isinstance(result, RagworthError):
        raise result
    return result
