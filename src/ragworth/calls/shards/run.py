"""Run one shard: ask for what has no answer in the shard's folder, and add files of answers to it."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from typing import Any, NamedTuple

import polars as pl

from ragworth.calls.budget import JobLimits, JobTally, Price
from ragworth.calls.job import Job, JobObserver
from ragworth.calls.seals import seal
from ragworth.calls.serialization import (
    REQUEST_KINDS,
    model_digest,
    request_from_json,
    response_to_json,
)
from ragworth.calls.shards.plan import Shard, ShardPlan, to_parquet
from ragworth.errors import InputError, ModelError
from ragworth.executors import Executor
from ragworth.llm.contract import Card, Failure, Model, Request, Response
from ragworth.storage.places import Place, files_in, write_whole

PART_ROWS = 1500
"""Answers in a file: as many as a crash may cost."""

PART: dict[str, Any] = {
    "key": pl.Binary,
    "model": pl.Binary,
    "kind": pl.String,
    "response": pl.String,
    "prompt_tokens": pl.Int64,
    "new_tokens": pl.Int64,
    "seconds": pl.Float64,
    "made": pl.Float64,
    "seal": pl.Binary,
    "reason": pl.String,
    "detail": pl.String,
}
"""A row for each call: an answer with its seal, or the reason of a failure."""


class ShardRun(NamedTuple):
    """What a run of a shard did. ``done`` calls had an answer before."""

    shard: Shard
    done: int
    tally: JobTally
    stopped: str


class PartFiles:
    """The answers of a shard in files, each written once and whole. Only what was planned is asked."""

    def __init__(self, folder: Place, requests: Place, planned: Set[bytes]) -> None:
        self.path = folder
        self._requests = requests
        self._planned = planned
        self._rows: list[tuple[Any, ...]] = []

    def done(self) -> set[bytes]:
        """Keys that have an answer."""
        found: set[bytes] = set()
        for path in part_files(self.path):
            found.update(read_part(path).filter(pl.col("response").is_not_null())["key"])
        return found

    @contextmanager
    def writing(self, wait: float = 0.0) -> Iterator[None]:
        """Write what is left when a job ends, however it ends. Several processes may write at a time."""
        try:
            yield
        finally:
            self.flush()

    def card_of(self, partial: Card) -> Card | None:
        return None

    def look_up(self, keys: Sequence[bytes]) -> Iterator[list[tuple[bytes, str, str]]]:
        """Nothing: only calls without an answer are run. A key that wasn't planned is an error."""
        if strange := next((key for key in keys if key not in self._planned), None):
            raise InputError(
                f"a request has the key {strange.hex()}, which is not in the file",
                file=str(self._requests),
                remedy="plan again with this version of ragworth",
            )
        return iter(())

    def commit(self, card: Card, done: Iterable[tuple[bytes, Request, Response | Failure]]) -> None:
        now, model = time.time(), model_digest(card)
        for key, request, outcome in done:
            kind = REQUEST_KINDS[type(request)]
            if isinstance(outcome, Failure):
                detail = outcome.detail.encode("utf-8", "backslashreplace").decode()
                self._rows.append((key, model, kind, None, 0, 0, 0.0, now, None, outcome.reason, detail))
            else:
                text = response_to_json(outcome)
                usage = outcome.usage.bounded()[:3]
                self._rows.append((key, model, kind, text, *usage, now, seal(key, kind, text), None, None))
        if len(self._rows) >= PART_ROWS:
            self.flush()

    def flush(self) -> None:
        if self._rows:
            data = to_parquet(pl.DataFrame(self._rows, schema=PART, orient="row"))
            write_whole(self.path / f"part-{hashlib.sha256(data).hexdigest()}.parquet", data)
            self._rows = []


def part_files(folder: Place) -> list[Place]:
    """Finished files of answers."""
    return files_in(folder, "part-*.parquet")


def read_part(path: Place) -> pl.DataFrame:
    """Read a file of answers. Its name is its hash; a file that doesn't match it is an error."""
    data = path.read_bytes()
    if path.stem != f"part-{hashlib.sha256(data).hexdigest()}":
        raise InputError(
            "it changed after it was written",
            file=str(path),
            remedy="copy it again, or remove it and run the shard again",
        )
    frame = pl.read_parquet(data)
    if dict(frame.schema) != PART:
        raise InputError("it has other columns than answers have", file=str(path), remedy="remove it")
    return frame


def run_shard(
    plan: ShardPlan,
    number: int,
    model: Model,
    *,
    limits: JobLimits | None = None,
    price: Price | None = None,
    watcher: JobObserver | None = None,
    executor: Executor | None = None,
) -> ShardRun:
    """Ask the model for everything in a shard that has no answer there. It must be the model of the plan."""
    shard = plan.shard(number)
    planned = plan.card(shard)
    if model_digest(model.card) != model_digest(planned):
        differ = [f"{name}: {ours!r}, planned {theirs!r}" for name, ours, theirs in _differences(model.card, planned)]
        raise ModelError(
            f"it is another model than the planned one ({'; '.join(differ)})",
            expected=f"{planned.backend} {planned.name}",
            remedy="open the model with the same name, files and options as for the plan",
        )
    requests = plan.requests(shard)
    parts = PartFiles(plan.answers(shard), plan.folder / shard.file, set(requests["key"].to_list()))
    done = parts.done()
    job = Job(model, parts, limits=limits, price=price, watcher=watcher, executor=executor)
    for _ in job.run(request_from_json(text) for key, text in requests.iter_rows() if key not in done):
        pass
    return ShardRun(shard, len(done), job.tally, job.stopped)


def _differences(one: Card, other: Card) -> Iterator[tuple[str, Any, Any]]:
    for name in ("backend", "name", "revision", "quantisation", "template", "endpoint"):
        if getattr(one, name) != getattr(other, name):
            yield name, getattr(one, name), getattr(other, name)
