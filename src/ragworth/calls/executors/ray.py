"""Run calls on a Ray cluster: actors build the model from its written form and return values; only the driver stores.

A batch whose actor or node dies, or takes longer than its deadline, is asked again by another actor under the same
keys, and what the lost one might still return is dropped. So every key gets one value, and a call may be made more than
once: at most two batches per lost actor.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ragworth.calls.executors import FinishedBatch
from ragworth.core.errors import InputError, MissingExtraError, ModelError, RagworthError, format_count
from ragworth.llm import OpenedModel, how_opened
from ragworth.llm.contract import Failure, Model, Request
from ragworth.workspace.config import ExecutorConfig

BATCHES_PER_ACTOR = 2
"""One that is worked on, and one that waits, so that an actor never idles."""

MAX_ATTEMPTS = 3
"""How often a batch is given to an actor before it counts as failed."""


NUMBERS = {"actors": int, "cpus": float, "gpus": float, "deadline": float, "patience": float}
"""Settings that are numbers."""


def parse_ray_settings(text: str) -> ExecutorConfig:
    """Parse ``ray:ADDRESS,actors=4,gpus=1``; everything after ``ray`` may be left out.

    >>> settings = parse_ray_settings("ray:10.0.0.1:6379,actors=4")
    >>> settings.address, settings.actors, settings.gpus
    ('10.0.0.1:6379', 4, 0.0)
    """
    where, *options = text.split(",")
    kind, _, address = where.partition(":")
    found: dict[str, Any] = {"address": address}
    for option in options:
        name, _, value = option.partition("=")
        try:
            found[name] = NUMBERS[name](value)
        except (KeyError, ValueError) as error:
            raise InputError(
                f"the executor has the option {option!r}", expected=f"NAME=NUMBER, with {', '.join(NUMBERS)}"
            ) from error
    if kind != "ray":
        raise InputError(f"the executor is {kind!r}", expected="ray, or ray:ADDRESS")
    settings = ExecutorConfig("ray", **found)
    if settings.actors < 1 or settings.deadline <= 0 or settings.patience <= 0:
        raise InputError(f"the executor is {text!r}", expected="one actor or more, and positive seconds")
    return settings


class RayExecutor:
    """Runs calls on a cluster. Its actors stay until it is closed, for all jobs of one model after another."""

    def __init__(self, settings: ExecutorConfig | None = None) -> None:
        if find_spec("ray") is None:
            raise MissingExtraError("ray", "ray", "running calls on a cluster")
        self.settings = settings or ExecutorConfig("ray")
        self._crews: dict[tuple[str, ...], RayCrew] = {}
        self._started = False

    def open(self, model: Model) -> RayWorkers:
        identity = model.card.identity
        if identity not in self._crews:
            self._connect()
            self._crews[identity] = RayCrew(how_opened(model), identity, self.settings)
        return RayWorkers(self._crews[identity])

    def _connect(self) -> None:
        ray = _import_ray()
        if ray.is_initialized():
            return
        options: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
        try:
            if self.settings.address:
                ray.init(address=self.settings.address, **options)
            else:
                ray.init(include_dashboard=False, **options)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise ModelError(
                f"the Ray cluster {self.settings.address or 'on this machine'} can't be used: {error}",
                remedy="start it (ray start --head), or check its address",
            ) from error
        self._started = True

    def close(self) -> None:
        """End the actors, and the connection if it was made here."""
        for crew in self._crews.values():
            crew.close()
        self._crews.clear()
        if self._started:
            _import_ray().shutdown()
            self._started = False


def _import_ray() -> Any:
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    import ray

    return ray


class RayCrew:
    """The actors of one model: those that are ready, and those that start."""

    def __init__(self, opened: OpenedModel, identity: tuple[str, ...], settings: ExecutorConfig) -> None:
        self._ray = _import_ray()
        self._opened, self._identity, self.settings = opened, identity, settings
        self._actor = _actor_class(self._ray)
        self.ready: list[Any] = []
        self._starting: dict[Any, Any] = {}
        """Actors by the reference to their identity."""
        self.lost = 0
        for _ in range(settings.actors):
            self._start()

    def _start(self) -> None:
        asked = self.settings
        options = {"num_cpus": asked.cpus, "num_gpus": asked.gpus, "resources": dict(asked.resources)}
        actor = self._actor.options(**options).remote(self._opened.spec, dict(self._opened.options), str(Path.cwd()))
        self._starting[actor.identity.remote()] = actor

    def poll(self, seconds: float = 0.0) -> None:
        """Take in actors that have started. One with another model is an error; one that dies is replaced."""
        if not self._starting:
            return
        done, _ = self._ray.wait(list(self._starting), num_returns=1, timeout=seconds)
        for reference in done:
            actor = self._starting.pop(reference)
            try:
                found = self._ray.get(reference)
            except self._ray.exceptions.RayActorError:
                self._replace_lost()
                continue
            if isinstance(found, RagworthError):
                raise found
            if tuple(found) != self._identity:
                raise ModelError(
                    f"an actor opened another model as {self._opened.spec!r}",
                    expected="the same weights, quantisation and template on every node",
                    remedy="copy the model's files to all nodes, and use the same version of ragworth",
                )
            self.ready.append(actor)

    def wait_for_one(self) -> None:
        """Wait until an actor is ready."""
        end = time.monotonic() + self.settings.patience
        while not self.ready:
            self.poll(0.2)
            if not self.ready and time.monotonic() > end:
                raise self.nobody()

    def nobody(self) -> ModelError:
        asked = self.settings
        needed = {"CPU": asked.cpus, "GPU": asked.gpus, **asked.resources}
        return ModelError(
            f"no actor started within {asked.patience:g} seconds",
            expected=f"a node with {', '.join(f'{number:g} {name}' for name, number in needed.items() if number)} free",
            remedy="add nodes, or ask for less under [executor]; answers so far are kept",
        )

    def dismiss(self, actor: Any) -> None:
        """Give up an actor that died or hangs, and start another."""
        if actor in self.ready:
            self.ready.remove(actor)
            self._ray.kill(actor)
            self._replace_lost()

    def _replace_lost(self) -> None:
        self.lost += 1
        self._start()

    def close(self) -> None:
        if self._ray.is_initialized():
            for actor in (*self.ready, *self._starting.values()):
                self._ray.kill(actor)
        self.ready, self._starting = [], {}


@dataclass(eq=False)
class FlyingBatch:
    """A batch and the actor that works on it; None while it waits for one."""

    requests: Sequence[Request]
    attempts: int = 0
    actor: Any = None
    since: float = 0.0


class RayWorkers:
    """Batches of one job under way on the actors of a crew."""

    def __init__(self, crew: RayCrew) -> None:
        self._ray = _import_ray()
        self._crew = crew
        self._flying: dict[Any, FlyingBatch] = {}
        self._waiting: deque[FlyingBatch] = deque()
        self._repeated = 0
        self._lost = crew.lost
        self._alone_since: float | None = None
        crew.wait_for_one()

    @property
    def room(self) -> int:
        return max(0, BATCHES_PER_ACTOR * len(self._crew.ready) - self.busy)

    @property
    def busy(self) -> int:
        return len(self._flying) + len(self._waiting)

    @property
    def note(self) -> str:
        lost = self._crew.lost - self._lost
        if not lost:
            return ""
        return (
            f"Ray: {format_count(lost, 'worker')} lost; {format_count(self._repeated, 'call')} asked again, and every "
            "call has one answer"
        )

    def submit(self, requests: Sequence[Request]) -> None:
        self._waiting.append(FlyingBatch(requests))
        self._assign()

    def _assign(self) -> None:
        """Give waiting batches to the actors with the fewest."""
        load = dict.fromkeys(self._crew.ready, 0)
        for batch in self._flying.values():
            load[batch.actor] = load.get(batch.actor, 0) + 1
        while self._waiting and self._crew.ready:
            actor = min(self._crew.ready, key=lambda one: load[one])
            if load[actor] >= BATCHES_PER_ACTOR:
                return
            batch = self._waiting.popleft()
            batch.actor, batch.since = actor, time.monotonic()
            batch.attempts += 1
            load[actor] += 1
            self._flying[actor.answer.remote(list(batch.requests))] = batch

    def wait(self, seconds: float) -> list[FinishedBatch]:
        try:
            self._crew.poll()
        except RagworthError as error:
            return [FinishedBatch((), (), error)]
        self._assign()
        if not self._flying:
            return self._wait_for_actors(seconds)
        self._alone_since = None
        done, _ = self._ray.wait(list(self._flying), num_returns=1, timeout=seconds)
        if done:
            done, _ = self._ray.wait(list(self._flying), num_returns=len(self._flying), timeout=0)
        ended = [found for reference in done if (found := self._take(reference)) is not None]
        return ended + self._end_hung()

    def _wait_for_actors(self, seconds: float) -> list[FinishedBatch]:
        """No actor is ready: wait for one, but not forever."""
        self._alone_since = self._alone_since or time.monotonic()
        if time.monotonic() - self._alone_since > self._crew.settings.patience:
            return [FinishedBatch((), (), self._crew.nobody())]
        try:
            self._crew.poll(seconds)
        except RagworthError as error:
            return [FinishedBatch((), (), error)]
        return []

    def _take(self, reference: Any) -> FinishedBatch | None:
        """The result of a finished batch; None if it will be asked again, or was already given up."""
        batch = self._flying.pop(reference, None)
        if batch is None:
            return None
        errors = self._ray.exceptions
        try:
            found = self._ray.get(reference)
        except errors.RayTaskError as error:
            failure = Failure("crashed", str(error.cause)[:300])
            return FinishedBatch(batch.requests, [failure] * len(batch.requests))
        except errors.RayError:
            return self._lose(batch)
        for other in self._flying.values():  # the actor's next batch begins now
            if other.actor is batch.actor:
                other.since = time.monotonic()
        if isinstance(found, RagworthError):
            return FinishedBatch(batch.requests, (), found)
        return FinishedBatch(batch.requests, found)

    def _end_hung(self) -> list[FinishedBatch]:
        """Give up actors whose oldest batch is past its deadline."""
        limit = time.monotonic() - self._crew.settings.deadline
        oldest: dict[Any, Any] = {}
        for reference, batch in self._flying.items():  # in the order of submission
            oldest.setdefault(batch.actor, reference)
        hung = [reference for reference in oldest.values() if self._flying[reference].since < limit]
        return [one for reference in hung if (one := self._lose(self._flying.pop(reference))) is not None]

    def _lose(self, batch: FlyingBatch) -> FinishedBatch | None:
        """Ask a batch again, and the others of its actor, which is given up."""
        self._crew.dismiss(batch.actor)
        others = [reference for reference, other in self._flying.items() if other.actor is batch.actor]
        for reference in others:
            other = self._flying.pop(reference)
            other.attempts -= 1  # it may not have begun
            self._repeated += len(other.requests)
            self._waiting.append(other)
        if batch.attempts >= MAX_ATTEMPTS:
            failure = Failure("crashed", f"its worker was lost {batch.attempts} times")
            return FinishedBatch(batch.requests, [failure] * len(batch.requests))
        self._repeated += len(batch.requests)
        self._waiting.appendleft(batch)
        self._assign()
        return None

    def close(self) -> None:
        """Drop calls under way: their actors go on with the next job."""
        self._flying.clear()
        self._waiting.clear()


def _actor_class(ray: Any) -> Any:
    """The class of actors, made here because Ray is imported late."""

    @ray.remote(max_restarts=0)
    class ModelActor:
        """A model in a process of its own. Errors of ours are returned, so that they stay what they are."""

        def __init__(self, spec: str, options: Mapping[str, Any], folder: str) -> None:
            from ragworth.llm import llm

            if Path(folder).is_dir():
                os.chdir(folder)  # paths in the written form may be relative
            try:
                self.model: Any = llm(spec, **options)
            except RagworthError as error:
                self.model = error

        def identity(self) -> tuple[str, ...] | RagworthError:
            if isinstance(self.model, RagworthError):
                return self.model
            try:
                identity: tuple[str, ...] = self.model.card.identity
                return identity
            except RagworthError as error:
                return error

        def answer(self, requests: list[Request]) -> Any:
            from ragworth.calls.executors.local import answer_batch

            try:
                return list(answer_batch(self.model, requests))
            except RagworthError as error:
                return error

    return ModelActor
