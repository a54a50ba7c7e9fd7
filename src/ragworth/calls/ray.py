"""Run calls on a Ray cluster: actors open the model by its written form and return values; only the driver stores.

A batch whose actor or node dies is asked again by another actor, under the same keys. So every key gets one value, and
a call may be made more than once: those of at most two batches per lost actor.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from ragworth.calls.checks import check_outcomes
from ragworth.calls.executors import FinishedBatch, QueuedCall, failed_batch
from ragworth.calls.serialization import REQUEST_KINDS
from ragworth.core.errors import InputError, MissingExtraError, ModelError, RagworthError, format_count
from ragworth.llm import how_opened
from ragworth.llm.contract import Failure, Model, Request
from ragworth.workspace.config import ExecutorConfig

BATCHES_PER_ACTOR = 2
"""One that is worked on, and one that waits, so that an actor never idles."""

MAX_ATTEMPTS = 3
"""How often a batch is given to an actor before it counts as failed."""

NUMBERS = {"actors": int, "cpus": float, "gpus": float, "patience": float}
"""Settings that are numbers."""


def parse_ray_settings(text: str) -> ExecutorConfig:
    """Parse ``ray:ADDRESS,actors=4,gpus=1``; everything after ``ray`` may be left out.

    >>> settings = parse_ray_settings("ray:10.0.0.1:6379,actors=4")
    >>> settings.address, settings.actors, settings.gpus
    ('10.0.0.1:6379', 4, 0.0)
    """
    where, *options = text.split(",")
    kind, _, address = where.partition(":")
    values: dict[str, Any] = {"address": address}
    for option in options:
        name, _, value = option.partition("=")
        try:
            values[name] = NUMBERS[name](value)
        except (KeyError, ValueError) as error:
            raise InputError(
                f"the executor has the option {option!r}", expected=f"NAME=NUMBER, with {', '.join(NUMBERS)}"
            ) from error
    settings = ExecutorConfig("ray", **values)
    if kind != "ray" or settings.actors < 1 or settings.patience <= 0:
        raise InputError(f"the executor is {text!r}", expected="ray or ray:ADDRESS, one actor or more, some patience")
    return settings


class RayExecutor:
    """Runs calls on a cluster. Its actors stay until it is closed, for all jobs of one model after another."""

    def __init__(self, settings: ExecutorConfig | None = None) -> None:
        if find_spec("ray") is None:
            raise MissingExtraError("ray", "ray", "running calls on a cluster")
        self.settings = settings or ExecutorConfig("ray")
        self._crews: dict[tuple[str, ...], RayCrew] = {}
        self._has_connected = False

    def open(self, model: Model) -> RayWorkers:
        identity = model.card.identity
        if identity not in self._crews:
            opened = how_opened(model)
            self._connect()
            self._crews[identity] = RayCrew(opened.spec, opened.options, identity, self.settings)
        return RayWorkers(self._crews[identity])

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
            crew.close()
        self._crews.clear()
        if self._has_connected:
            _import_ray().shutdown()
            self._has_connected = False


def _import_ray() -> Any:
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    import ray

    return ray


class RayCrew:
    """The actors of one model: those that are ready, and those that start."""

    def __init__(
        self, spec: str, options: Mapping[str, Any], identity: tuple[str, ...], settings: ExecutorConfig
    ) -> None:
        self.ray = _import_ray()
        self._spec, self._options, self._identity, self._settings = spec, dict(options), identity, settings
        self._actor_class = self.ray.remote(max_restarts=0)(ModelActor)
        self.ready: list[Any] = []
        self._starting: dict[Any, Any] = {}
        """Actors by the reference to their identity."""
        self.lost = 0
        self._alone_since = time.monotonic()
        """When there was no actor for the first time."""
        for _ in range(settings.actors):
            self._start()

    def _start(self) -> None:
        resources = {"num_cpus": self._settings.cpus, "num_gpus": self._settings.gpus}
        actor = self._actor_class.options(**resources, resources=dict(self._settings.resources)).remote(
            self._spec, self._options, str(Path.cwd())
        )
        self._starting[actor.identity.remote()] = actor

    def poll(self, seconds: float = 0.0) -> None:
        """Take in actors that have started. One with another model is an error; one that dies is replaced."""
        started = self.ray.wait(list(self._starting), num_returns=1, timeout=seconds)[0] if self._starting else []
        for reference in started:
            actor = self._starting.pop(reference)
            try:
                identity = _value(self.ray.get(reference))
            except self.ray.exceptions.RayActorError:
                self._replace_lost()
                continue
            if tuple(identity) != self._identity:
                raise ModelError(
                    f"an actor opened another model as {self._spec!r}",
                    expected="the same weights, quantisation and template on every node",
                    remedy="copy the model's files to all nodes, and use the same version of ragworth",
                )
            self.ready.append(actor)
        if self.ready:
            self._alone_since = time.monotonic()
        elif time.monotonic() - self._alone_since > self._settings.patience:
            raise self._no_actor()

    def _no_actor(self) -> ModelError:
        needed = {"CPU": self._settings.cpus, "GPU": self._settings.gpus, **self._settings.resources}
        return ModelError(
            f"no actor started within {self._settings.patience:g} seconds",
            expected=f"a node with {', '.join(f'{number:g} {name}' for name, number in needed.items() if number)} free",
            remedy="add nodes, or ask for less under [executor]; answers so far are kept",
        )

    def replace(self, actor: Any) -> None:
        """Give up an actor that died, and start another."""
        if actor in self.ready:
            self.ready.remove(actor)
            self._replace_lost()

    def _replace_lost(self) -> None:
        self.lost += 1
        self._start()

    def close(self) -> None:
        if self.ray.is_initialized():
            for actor in (*self.ready, *self._starting.values()):
                self.ray.kill(actor)
        self.ready, self._starting = [], {}


class FlyingBatch(NamedTuple):
    """A batch, how often it was given to an actor, and the last of these."""

    calls: Sequence[QueuedCall]
    attempts: int = 0
    actor: Any = None


class RayWorkers:
    """Batches of one job under way on the actors of a crew."""

    def __init__(self, crew: RayCrew) -> None:
        self._crew = crew
        self._flying: dict[Any, FlyingBatch] = {}
        """Batches by the reference to their outcomes."""
        self._waiting: list[FlyingBatch] = []
        """Batches whose actor died."""
        self._repeated = 0
        self._lost_before = crew.lost
        while not crew.ready:
            crew.poll(0.2)

    @property
    def room(self) -> int:
        return BATCHES_PER_ACTOR * len(self._crew.ready) - self.busy

    @property
    def busy(self) -> int:
        return len(self._flying) + len(self._waiting)

    @property
    def note(self) -> str:
        lost = self._crew.lost - self._lost_before
        again = f"{format_count(self._repeated, 'call')} asked again, and every call has one answer"
        return f"Ray: {format_count(lost, 'worker')} lost; {again}" if lost else ""

    def submit(self, calls: Sequence[QueuedCall]) -> None:
        self._send(FlyingBatch(calls))

    def _send(self, batch: FlyingBatch) -> None:
        """Give a batch to the actor with the fewest."""
        actors = [flying.actor for flying in self._flying.values()]
        actor = min(self._crew.ready, key=actors.count)
        reference = actor.answer.remote([call.request for call in batch.calls])
        self._flying[reference] = FlyingBatch(batch.calls, batch.attempts + 1, actor)

    def wait(self, seconds: float) -> list[FinishedBatch]:
        self._crew.poll(0.0 if self._flying else seconds)
        while self._waiting and self._crew.ready:
            self._send(self._waiting.pop())
        if not self._flying:
            return []
        ray, references = self._crew.ray, list(self._flying)
        if ray.wait(references, num_returns=1, timeout=seconds)[0]:
            done, _ = ray.wait(references, num_returns=len(references), timeout=0)
            return [batch for reference in done if (batch := self._take(reference)) is not None]
        return []

    def _take(self, reference: Any) -> FinishedBatch | None:
        """Return a finished batch, or None if it will be asked again because its actor died."""
        batch, errors = self._flying.pop(reference), self._crew.ray.exceptions
        try:
            return FinishedBatch(batch.calls, _value(self._crew.ray.get(reference)))
        except RagworthError as error:
            return failed_batch(batch.calls, error)
        except errors.RayTaskError as error:
            return failed_batch(batch.calls, error.cause)
        except errors.RayError:
            self._crew.replace(batch.actor)
        if batch.attempts >= MAX_ATTEMPTS:
            failure = Failure("crashed", f"its worker was lost {batch.attempts} times")
            return FinishedBatch(batch.calls, [failure] * len(batch.calls))
        self._repeated += len(batch.calls)
        self._waiting.append(batch)
        return None

    def close(self) -> None:
        """Drop calls under way: their actors go on with the next job."""
        self._flying.clear()
        self._waiting.clear()


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
            outcomes = getattr(self.model, REQUEST_KINDS[type(requests[0])])(requests)
            return check_outcomes(self.model.card, requests, outcomes)
        except RagworthError as error:
            return error


def _value(result: Any) -> Any:
    """Raise an error that an actor returned."""
    if isinstance(result, RagworthError):
        raise result
    return result
